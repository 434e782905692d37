//! Finds processes in /proc, and signals them.
//! A scan can miss a process that starts meanwhile. Searches never return this process or the keeper of a view.

use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use procfs_core::FromRead;
use procfs_core::process::Stat;
use rustix::process::{Pid, Signal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::send::{own_pid, send};
use crate::{Result, files, with_context};

/// Identifies one process, even if its PID is reused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Identity {
    /// The PID.
    pub pid: i32,
    /// The start time in clock ticks since boot.
    pub started_ticks: u64,
}

impl Identity {
    /// The identity of this process.
    pub fn ours() -> Result<Self> {
        Self::of(own_pid())
    }

    /// The identity of the process that has this PID now.
    pub fn of(pid: i32) -> Result<Self> {
        let path = PathBuf::from(format!("/proc/{pid}/stat"));
        let stat = Stat::from_read(files::open_to_read(&path)?).map_err(std::io::Error::other);
        let started_ticks = with_context(stat, "read", &path)?.starttime;
        Ok(Self { pid, started_ticks })
    }

    /// Whether the process exists and is not a zombie. A process that /proc hides counts as alive, also if
    /// another one has its PID now.
    pub fn is_alive(self) -> bool {
        self.presence() != Presence::Gone
    }

    /// Whether it still holds a view. A killed keeper counts as alive while the kernel frees the
    /// memory of the view, although no process can reach that memory.
    pub fn holds_view(self) -> bool {
        // At exit, the root goes away before the namespaces.
        let root = std::fs::read_link(format!("/proc/{}/root", self.pid));
        let has_root = !root.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound);
        let presence = self.presence();
        presence == Presence::Hidden || presence == Presence::Alive && has_root
    }

    /// The mount namespace in which it is, as /proc names it; none if it is gone, or of another user.
    pub fn mount_namespace(self) -> Option<String> {
        let link = std::fs::read_link(format!("/proc/{}/ns/mnt", self.pid)).ok()?;
        let name = link.into_os_string().into_string().ok()?;
        self.is_alive().then_some(name) // else its PID may have been reused
    }

    /// Whether it runs as this process's user, and as no other user at the same time.
    pub fn is_of_our_user(self) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid));
        let ours = rustix::process::geteuid().as_raw().to_string();
        let is_ours = |status: String| {
            let users = status.lines().find_map(|line| line.strip_prefix("Uid:"));
            users.is_some_and(|users| users.split_whitespace().all(|user| user == ours))
        };
        status.is_ok_and(is_ours) && self.is_alive()
    }

    /// Kills the process if it is alive.
    pub fn kill(self) {
        let pid = Pid::from_raw(self.pid).filter(|_| self.presence() == Presence::Alive);
        if let Some(pid) = pid {
            rustix::process::kill_process(pid, Signal::KILL).ok(); // it may have ended
        }
    }

    fn presence(self) -> Presence {
        match stat_of(self.pid) {
            Some(stat) if stat.starttime == self.started_ticks && !has_ended(&stat) => {
                Presence::Alive
            }
            None if exists(self.pid) => Presence::Hidden,
            _ => Presence::Gone,
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Presence {
    Alive,
    /// By the option `hidepid` of /proc. In a view of the job, the user's processes outside of it are
    /// hidden too. See proc(5).
    Hidden,
    Gone,
}

/// Whether /proc hides processes of others. Those of this user outside of its user namespace are hidden too.
pub fn some_are_hidden() -> bool {
    exists(1) && stat_of(1).is_none()
}

/// Whether there is a process with this PID, whoever may look at it.
fn exists(pid: i32) -> bool {
    let asked = Pid::from_raw(pid).map(rustix::process::test_kill_process);
    asked.is_some_and(|asked| asked != Err(rustix::io::Errno::SRCH))
}

/// None if the process is gone or hidden.
fn stat_of(pid: i32) -> Option<Stat> {
    let file = std::fs::File::open(format!("/proc/{pid}/stat")).ok()?;
    Stat::from_read(file).ok()
}

/// Whether its first thread has ended.
fn has_ended(stat: &Stat) -> bool {
    matches!(stat.state, 'Z' | 'X')
}

/// Whether a signal has stopped it. While a debugger traces it, it is not stopped.
pub(super) fn is_stopped(process: u32) -> bool {
    let stat = i32::try_from(process).ok().and_then(stat_of);
    stat.is_some_and(|stat| stat.state == 'T')
}

/// The mask of signals in a line of a process's status. Bit N-1 means signal N.
pub(super) fn signals_of(process: &str, line: &str) -> Result<u64> {
    let path = PathBuf::from(format!("/proc/{process}/status"));
    let text = files::read_to_string(&path)?;
    let mask = text.lines().find_map(|text| text.strip_prefix(line));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    let missing = || std::io::Error::other(format!("it has no line {line}"));
    with_context(mask.ok_or_else(missing), "read", &path)
}

/// The name of processes that hold views. They do not belong to jobs.
pub(crate) const KEEPER: &CStr = c"forebay-keeper";

/// Marks processes that lead to the nodes of a job, or that serve them. They do not belong to jobs, also if
/// the one that started them has died and this process has become their parent.
pub const SERVES_JOB_VARIABLE: &str = "FOREBAY_SERVES_JOB";

fn serves_job(pid: i32) -> bool {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let has_name = |variable: &[u8]| {
        let rest = variable.strip_prefix(SERVES_JOB_VARIABLE.as_bytes());
        rest.is_some_and(|rest| rest.starts_with(b"="))
    };
    environment.split(|byte| *byte == 0).any(has_name)
}

/// Living processes, not older than `since`, that started with this value in a variable with values
/// separated by colons.
///
/// # Errors
/// If /proc or a process of this user cannot be read.
pub fn with_env(name: &str, value: &OsStr, since: Identity) -> Result<Vec<i32>> {
    with_env_where(name, &|one| one == value, since)
}

/// The same for any value that is wanted.
///
/// # Errors
/// As [`with_env`].
pub fn with_env_where(
    name: &str,
    is_value: &dyn Fn(&OsStr) -> bool,
    since: Identity,
) -> Result<Vec<i32>> {
    let name = [name.as_bytes(), b"="].concat();
    let is_wanted = |pid: i32| {
        let environment = read_of_process(pid, "environ", |path| std::fs::read(path))?;
        let environment = environment.unwrap_or_default();
        let mut variables = environment.split(|byte| *byte == 0);
        let values = variables.find_map(|variable| variable.strip_prefix(name.as_slice()));
        let mut values = values.unwrap_or_default().split(|byte| *byte == b':');
        Ok(values.any(|one| is_value(OsStr::from_bytes(one))))
    };
    matching(since, is_wanted)
}

/// Whether a thread that waits in the kernel renames a file; none if this process must not know (ptrace(2)).
pub fn is_renaming(thread: u32) -> Option<bool> {
    let text = std::fs::read_to_string(format!("/proc/{thread}/syscall")).ok()?;
    let call: i64 = text.split(' ').next()?.parse().ok()?;
    #[cfg(target_arch = "x86_64")]
    let calls = [libc::SYS_rename, libc::SYS_renameat, libc::SYS_renameat2];
    #[cfg(not(target_arch = "x86_64"))]
    let calls = [libc::SYS_renameat, libc::SYS_renameat2];
    Some(calls.contains(&call))
}

/// Living processes that this user can look at and that started with this value in a variable.
///
/// # Errors
/// If /proc cannot be read.
pub fn started_with(name: &str, value: &OsStr) -> Result<Vec<i32>> {
    let wanted = [name.as_bytes(), b"=", value.as_bytes()].concat();
    let is_wanted = |pid: &i32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == wanted)
    };
    Ok(processes()?.workers(Identity::default()).filter(is_wanted).collect())
}

/// Living processes of a user, not older than `since`.
///
/// # Errors
/// If /proc cannot be read.
pub fn of_user(user: u32, since: Identity) -> Result<Vec<i32>> {
    let owner = |pid: i32| std::fs::metadata(format!("/proc/{pid}")).map(|found| found.uid());
    matching(since, |pid| Ok(owner(pid).is_ok_and(|owner| owner == user)))
}

/// Living processes, not older than `since`, in the mount namespace with this name.
pub fn in_mount_namespace(name: &str, since: Identity) -> Result<Vec<i32>> {
    let namespace = |pid| read_of_process(pid, "ns/mnt", |path| std::fs::read_link(path));
    matching(since, |pid| Ok(namespace(pid)?.is_some_and(|found| found == Path::new(name))))
}

/// Living processes, not older than `since`, with a working directory or open file in `directory`.
pub fn using_directory(directory: &Path, since: Identity) -> Result<Vec<i32>> {
    let leads_there = |target: PathBuf| target.starts_with(directory);
    let is_there = |pid: i32| {
        let cwd = read_of_process(pid, "cwd", |path| std::fs::read_link(path))?;
        let listed = |path: &Path| files::names_in(path).map_err(|error| error.source);
        let open = read_of_process(pid, "fd", |path| listed(path))?;
        let mut open = open.into_iter().flatten();
        let descriptors = PathBuf::from(format!("/proc/{pid}/fd"));
        Ok(cwd.is_some_and(leads_there)
            || open.any(|name| std::fs::read_link(descriptors.join(name)).is_ok_and(leads_there)))
    };
    matching(since, is_there)
}

/// Living processes, not older than `since`, that match a condition.
fn matching(since: Identity, mut is_wanted: impl FnMut(i32) -> Result<bool>) -> Result<Vec<i32>> {
    let mut found = Vec::new();
    for pid in processes()?.workers(since) {
        if is_wanted(pid)? {
            found.push(pid);
        }
    }
    Ok(found)
}

/// A process of this user may be unreadable for a short time, while it ends or changes its user.
/// Forebay retries this often, with a wait that doubles, for half a second in total.
const READS: u32 = 8;
const FIRST_WAIT: Duration = Duration::from_millis(2);

fn has_readable_parent(pid: i32) -> bool {
    let parent = stat_of(pid).map(|stat| format!("/proc/{}/environ", stat.ppid));
    parent.is_some_and(|parent| std::fs::read(parent).is_ok())
}

/// Reads a file of a process; none if the process is gone or belongs to another user. An unreadable
/// process of this user, such as one outside a container, is an error.
fn read_of_process<T>(
    pid: i32,
    name: &str,
    read: impl Fn(&Path) -> std::io::Result<T>,
) -> Result<Option<T>> {
    let path = PathBuf::from(format!("/proc/{pid}/{name}"));
    // The kernel gives the files, not the directory, of a process that changed its user to root: `sshd` of a
    // session, for example. It is none that a job's program started. Nor does it let a user look at a
    // process with another primary group, as `newgrp` starts it; its parent tells where it belongs.
    let ours = || {
        let owner = std::fs::metadata(format!("/proc/{pid}/environ"));
        let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
        owner.is_ok_and(|owner| {
            owner.uid() == user.as_raw()
                && (owner.gid() == group.as_raw() || !has_readable_parent(pid))
        })
    };
    // An ending process is unreadable too. It soon has no memory, and writes nothing.
    let has_memory = || {
        let memory = std::fs::read_to_string(format!("/proc/{pid}/statm"));
        memory.is_ok_and(|memory| !memory.starts_with("0 "))
    };
    let mut attempt = 0;
    loop {
        match read(&path) {
            Ok(found) => return Ok(Some(found)),
            Err(error) if error.kind() != std::io::ErrorKind::PermissionDenied => return Ok(None),
            Err(_) if !(ours() && has_memory()) => return Ok(None),
            Err(error) if attempt == READS => return with_context(Err(error), "look at", &path),
            Err(_) => std::thread::sleep(FIRST_WAIT * (1 << attempt)),
        }
        attempt += 1;
    }
}

/// The memory that a process uses (its resident set), in bytes; none if it is gone.
pub fn memory_bytes(pid: i32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib * 1024)
}

/// Sends SIGTERM or, with `at_once`, SIGKILL to processes.
pub fn terminate(pids: &[i32], at_once: bool) -> Result<()> {
    let signal = if at_once { Signal::KILL } else { Signal::TERM };
    let mut pids = pids.iter().filter_map(|pid| Pid::from_raw(*pid));
    pids.try_for_each(|pid| send(pid, signal))
}

/// Sends SIGINT, which also reaches those that postpone SIGTERM.
///
/// # Errors
/// If the kernel refuses.
pub fn interrupt(pids: &[i32]) -> Result<()> {
    let mut pids = pids.iter().filter_map(|pid| Pid::from_raw(*pid));
    pids.try_for_each(|pid| send(pid, Signal::INT))
}

/// The children of each process, and the processes with a living thread.
#[derive(Default)]
pub(super) struct Processes {
    pub(super) children: HashMap<i32, Vec<i32>>,
    pub(super) alive: HashSet<i32>,
    started_ticks: HashMap<i32, u64>,
    /// Processes that hold a view, including those of nested jobs.
    pub(super) keepers: HashSet<i32>,
    /// Children of this process that serve the nodes of a job.
    pub(super) servers: HashSet<i32>,
}

impl Processes {
    /// All living processes not older than `since`, except keepers and this process.
    fn workers(self, since: Identity) -> impl Iterator<Item = i32> {
        let ours = own_pid();
        let young = |pid: &i32| self.started_ticks.get(pid) >= Some(&since.started_ticks);
        let mut workers: Vec<_> = self.alive.iter().copied().collect();
        workers.retain(|pid| *pid != ours && young(pid) && !self.keepers.contains(pid));
        workers.sort_unstable();
        workers.into_iter()
    }
}

pub(super) fn processes() -> Result<Processes> {
    let mut found = Processes::default();
    for name in files::names_in(Path::new("/proc"))? {
        let Some(pid) = name.to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        let Some(stat) = stat_of(pid) else {
            continue;
        };
        found.children.entry(stat.ppid).or_default().push(pid);
        found.started_ticks.insert(pid, stat.starttime);
        if stat.comm.as_bytes() == KEEPER.to_bytes() {
            found.keepers.insert(pid);
        }
        if stat.ppid == own_pid() && serves_job(pid) {
            found.servers.insert(pid);
        }
        // The first thread of a process may have ended while others live.
        let tasks = PathBuf::from(format!("/proc/{pid}/task"));
        let threads = || files::names_in(&tasks).map_or(0, |threads| threads.len());
        if !has_ended(&stat) || threads() > 1 {
            found.alive.insert(pid);
        }
    }
    Ok(found)
}

/// All descendants of a process, except keepers, servers of its nodes, `excluded` processes, and theirs.
pub(super) fn children_of(
    ancestor: i32,
    excluded: &HashSet<i32>,
    processes: &Processes,
) -> Vec<i32> {
    let mut found = Vec::new();
    let mut open = vec![ancestor];
    while let Some(parent) = open.pop() {
        for &child in processes.children.get(&parent).into_iter().flatten() {
            let is_other = |set: &HashSet<i32>| set.contains(&child);
            if ![excluded, &processes.keepers, &processes.servers].into_iter().any(is_other) {
                open.push(child);
                found.push(child);
            }
        }
    }
    found
}
