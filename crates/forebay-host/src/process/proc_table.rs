//! The processes of the machine, from /proc.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use procfs_core::FromRead;
use procfs_core::process::Stat;
use rustix::process::{Pid, Signal};
use serde::{Deserialize, Serialize};

use super::send::{send, us};
use crate::{Result, files, on};

/// One process and no later one with the same number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Its number.
    pub pid: i32,
    /// When it was started, in clock ticks since the machine was.
    pub started_ticks: u64,
}

impl Identity {
    /// This process.
    pub fn ours() -> Result<Self> {
        Self::of(us())
    }

    /// The process that has this number now.
    pub fn of(pid: i32) -> Result<Self> {
        let path = PathBuf::from(format!("/proc/{pid}/stat"));
        let stat = Stat::from_read(files::open_to_read(&path)?).map_err(std::io::Error::other);
        let started_ticks = on(stat, "read", &path)?.starttime;
        Ok(Self { pid, started_ticks })
    }

    /// Is it there, and not only as the remains that its parent has not looked at?
    pub fn is_alive(self) -> bool {
        stat_of(self.pid)
            .is_some_and(|stat| stat.starttime == self.started_ticks && !has_ended(&stat))
    }

    /// Does it hold a view of its own still? One that is killed counts as alive while the memory that only it held
    /// is freed; nobody can reach that any more.
    pub fn holds_view(self) -> bool {
        // Its root goes before its name spaces do.
        let root = std::fs::read_link(format!("/proc/{}/root", self.pid));
        self.is_alive() && !root.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
    }

    /// Kills it, if it is there.
    pub fn kill(self) {
        if let Some(pid) = Pid::from_raw(self.pid).filter(|_| self.is_alive()) {
            rustix::process::kill_process(pid, Signal::KILL).ok(); // it may have ended just now
        }
    }
}

/// None if the process is gone: it may end while we look.
fn stat_of(pid: i32) -> Option<Stat> {
    let file = std::fs::File::open(format!("/proc/{pid}/stat")).ok()?;
    Stat::from_read(file).ok()
}

/// Has its first thread ended?
fn has_ended(stat: &Stat) -> bool {
    matches!(stat.state, 'Z' | 'X')
}

/// Bit N-1 is set if signal N is in this line of a process's status.
pub(super) fn signals_of(process: &str, line: &str) -> Result<u64> {
    let path = PathBuf::from(format!("/proc/{process}/status"));
    let text = files::read_to_string(&path)?;
    let mask = text.lines().find_map(|text| text.strip_prefix(line));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    let missing = || std::io::Error::other(format!("it has no line {line}"));
    on(mask.ok_or_else(missing), "read", &path)
}

/// Name of the processes that hold views: they are nobody's job.
pub(crate) const KEEPER: &str = "forebay-keeper";

/// Living processes, not older than `since`, which were started with this value in a variable that
/// lists values between colons.
///
/// # Errors
/// If /proc cannot be read, or a process of ours is closed to us.
pub fn with_env(name: &str, value: &OsStr, since: Identity) -> Result<Vec<i32>> {
    let name = [name.as_bytes(), b"="].concat();
    let is_wanted = |pid: i32| {
        let environment = look(pid, "environ", |path| std::fs::read(path))?;
        let environment = environment.unwrap_or_default();
        let mut variables = environment.split(|byte| *byte == 0);
        let values = variables.find_map(|variable| variable.strip_prefix(name.as_slice()));
        let mut values = values.unwrap_or_default().split(|byte| *byte == b':');
        Ok(values.any(|one| one == value.as_bytes()))
    };
    matching(since, is_wanted)
}

/// Living processes, not older than `since`, in the view of a keeper.
pub fn in_mount_namespace(keeper: Identity, since: Identity) -> Result<Vec<i32>> {
    let view = |pid| look(pid, "ns/mnt", |path| std::fs::read_link(path));
    let wanted = view(keeper.pid)?;
    matching(since, |pid| Ok(wanted.is_some() && view(pid)? == wanted))
}

/// Living processes, not older than `since`, whose working directory or an open file is in a directory.
pub fn using_directory(directory: &Path, since: Identity) -> Result<Vec<i32>> {
    let leads_there = |target: PathBuf| target.starts_with(directory);
    let is_there = |pid: i32| {
        let cwd = look(pid, "cwd", |path| std::fs::read_link(path))?;
        let files = look(pid, "fd", |path| std::fs::read_dir(path))?;
        let mut files = files.into_iter().flatten().flatten();
        Ok(cwd.is_some_and(leads_there)
            || files.any(|file| std::fs::read_link(file.path()).is_ok_and(leads_there)))
    };
    matching(since, is_there)
}

/// Of all living processes that are not older than `since`.
fn matching(since: Identity, mut is_wanted: impl FnMut(i32) -> Result<bool>) -> Result<Vec<i32>> {
    let mut found = Vec::new();
    for pid in processes()?.workers(since) {
        if is_wanted(pid)? {
            found.push(pid);
        }
    }
    Ok(found)
}

/// A process of this user that is closed to it but has memory may be about to end, or to start another program after
/// a change of user: it is read so often again, after a wait that doubles, half a second in all.
const READS: u32 = 8;
const FIRST_WAIT: Duration = Duration::from_millis(2);

/// Looks at a file of a process; none if the process is gone or another user's. One of our own that is
/// closed to us, as those outside of a container are, must not be taken for one that is not there.
fn look<T>(pid: i32, name: &str, read: impl Fn(&Path) -> std::io::Result<T>) -> Result<Option<T>> {
    let path = PathBuf::from(format!("/proc/{pid}/{name}"));
    let ours = || {
        let owner = std::fs::metadata(format!("/proc/{pid}")).map(|found| found.uid());
        owner.is_ok_and(|owner| owner == rustix::process::geteuid().as_raw())
    };
    // One that is just ending is closed to everybody, has no memory soon after, and writes nothing.
    let has_memory = || {
        let memory = std::fs::read_to_string(format!("/proc/{pid}/statm"));
        memory.is_ok_and(|memory| !memory.starts_with("0 "))
    };
    for attempt in 0..READS {
        match read(&path) {
            Ok(found) => return Ok(Some(found)),
            Err(error) if error.kind() != std::io::ErrorKind::PermissionDenied => return Ok(None),
            Err(_) if !(ours() && has_memory()) => return Ok(None),
            Err(_) => std::thread::sleep(FIRST_WAIT * (1 << attempt)),
        }
    }
    on(read(&path).map(Some), "look at", &path)
}

/// Asks processes to end, with SIGTERM or, if `at_once`, with SIGKILL.
pub fn end(pids: &[i32], at_once: bool) -> Result<()> {
    let signal = if at_once { Signal::KILL } else { Signal::TERM };
    let mut pids = pids.iter().filter_map(|pid| Pid::from_raw(*pid));
    pids.try_for_each(|pid| send(pid, signal))
}

/// Who is whose child, and who has a living thread.
#[derive(Default)]
pub(super) struct Processes {
    pub(super) children: HashMap<i32, Vec<i32>>,
    pub(super) alive: HashSet<i32>,
    started_ticks: HashMap<i32, u64>,
    /// Those that hold a view, also of a job within the job.
    pub(super) keepers: HashSet<i32>,
}

impl Processes {
    /// All living processes not older than one, but keepers and ourselves.
    fn workers(self, since: Identity) -> impl Iterator<Item = i32> {
        let ours = us();
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
        if stat.comm == KEEPER {
            found.keepers.insert(pid);
        }
        // The first thread of a process may have ended while others live.
        let threads = || std::fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
        if !has_ended(&stat) || threads() > 1 {
            found.alive.insert(pid);
        }
    }
    Ok(found)
}

/// All descendants of a process, leaving out keepers, and some others with theirs.
pub(super) fn children_of(
    ancestor: i32,
    excluded: &HashSet<i32>,
    processes: &Processes,
) -> Vec<i32> {
    let mut found = Vec::new();
    let mut open = vec![ancestor];
    while let Some(parent) = open.pop() {
        for &child in processes.children.get(&parent).into_iter().flatten() {
            if !excluded.contains(&child) && !processes.keepers.contains(&child) {
                open.push(child);
                found.push(child);
            }
        }
    }
    found
}
