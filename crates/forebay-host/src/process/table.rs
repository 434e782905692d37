//! The processes of the machine, from /proc.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal};
use serde::{Deserialize, Serialize};

use super::send;
use crate::{Result, files, on};

/// One process and no later one with the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Its number.
    pub pid: i32,
    /// When it was started, in clock ticks since the machine was.
    pub started_ticks: u64,
}

impl Identity {
    /// This process.
    ///
    /// # Errors
    /// If /proc is not mounted.
    pub fn ours() -> Result<Self> {
        Self::of(super::us())
    }

    /// The process that has this number now.
    ///
    /// # Errors
    /// If there is none.
    pub fn of(pid: i32) -> Result<Self> {
        let path = PathBuf::from(format!("/proc/{pid}/stat"));
        let stat = files::read_to_string(&path)?;
        let missing = || std::io::Error::other("it has no time of start");
        let stat = on(Stat::parse(&stat).ok_or_else(missing), "read", &path)?;
        let started_ticks = stat.started_ticks;
        Ok(Self { pid, started_ticks })
    }

    /// Is it there, and not only as the remains that its parent has not looked at?
    #[must_use]
    pub fn is_alive(self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid));
        let stat = stat.ok().and_then(|text| Stat::parse(&text));
        stat.is_some_and(|stat| stat.started_ticks == self.started_ticks && !stat.ended)
    }

    /// Kills it, if it is there.
    pub fn kill(self) {
        if let Some(pid) = Pid::from_raw(self.pid).filter(|_| self.is_alive()) {
            rustix::process::kill_process(pid, Signal::KILL).ok(); // it may have ended just now
        }
    }
}

/// Name of the processes that hold views: they are nobody's job.
pub(crate) const KEEPER: &str = "forebay-keeper";

/// Living processes which were started with this variable in their environment.
///
/// # Errors
/// If /proc cannot be read.
pub fn with_variable(name: &str, value: &OsStr) -> Result<Vec<i32>> {
    let wanted = [name.as_bytes(), b"=", value.as_bytes()].concat();
    let is_wanted = |pid: &i32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let mut variables = environment.split(|byte| *byte == 0);
        variables.any(|variable| variable == wanted)
    };
    Ok(processes()?.workers().filter(is_wanted).collect())
}

/// Living processes in the view of a keeper.
///
/// # Errors
/// If /proc cannot be read.
pub fn in_view_of(keeper: Identity) -> Result<Vec<i32>> {
    let view = |pid: i32| std::fs::read_link(format!("/proc/{pid}/ns/mnt")).ok();
    let wanted = view(keeper.pid);
    let is_there = |pid: &i32| wanted.is_some() && view(*pid) == wanted;
    Ok(processes()?.workers().filter(is_there).collect())
}

/// Living processes whose working directory or an open file is in a directory.
///
/// # Errors
/// If /proc cannot be read.
pub fn at_work_in(directory: &Path) -> Result<Vec<i32>> {
    let leads_there = |link: PathBuf| {
        let target = std::fs::read_link(link);
        target.is_ok_and(|target| target.starts_with(directory))
    };
    let is_there = |pid: &i32| {
        let process = PathBuf::from(format!("/proc/{pid}"));
        let files = std::fs::read_dir(process.join("fd")).into_iter().flatten();
        let mut files = files.flatten().map(|file| file.path());
        leads_there(process.join("cwd")) || files.any(leads_there)
    };
    Ok(processes()?.workers().filter(is_there).collect())
}

/// Asks processes to end, with SIGTERM or, if `at_once`, with SIGKILL.
///
/// # Errors
/// If one may not be signalled.
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
    /// Those that hold a view, also of a job within the job.
    pub(super) keepers: HashSet<i32>,
}

impl Processes {
    /// All living processes but keepers and ourselves.
    fn workers(self) -> impl Iterator<Item = i32> {
        let Self { alive, keepers, .. } = self;
        let ours = super::us();
        let mut workers: Vec<_> = alive.into_iter().collect();
        workers.retain(|pid| *pid != ours && !keepers.contains(pid));
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
        // A process may end while we look: its file is gone then, and so is the process.
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
            continue;
        };
        let Some(stat) = Stat::parse(&stat) else {
            continue;
        };
        found.children.entry(stat.parent).or_default().push(pid);
        if stat.name == KEEPER {
            found.keepers.insert(pid);
        }
        // The first thread of a process may have ended while others live.
        let threads = || std::fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
        if !stat.ended || threads() > 1 {
            found.alive.insert(pid);
        }
    }
    Ok(found)
}

/// All descendants of a process, leaving out keepers, and some others with theirs.
pub(super) fn children_of(
    ancestor: i32,
    left_out: &HashSet<i32>,
    processes: &Processes,
) -> Vec<i32> {
    let mut found = Vec::new();
    let mut open = vec![ancestor];
    while let Some(parent) = open.pop() {
        for &child in processes.children.get(&parent).into_iter().flatten() {
            if !left_out.contains(&child) && !processes.keepers.contains(&child) {
                open.push(child);
                found.push(child);
            }
        }
    }
    found
}

/// What we read of a /proc/PID/stat line (proc_pid_stat(5)).
struct Stat {
    name: String,
    /// Its first thread has ended.
    ended: bool,
    parent: i32,
    started_ticks: u64,
}

impl Stat {
    fn parse(text: &str) -> Option<Self> {
        let (before, behind_the_name) = text.rsplit_once(") ")?;
        let (_, name) = before.split_once('(')?;
        let mut fields = behind_the_name.split(' ');
        let state = fields.next()?; // field 3
        let parent = fields.next()?.parse().ok()?;
        let started_ticks = fields.nth(17)?.parse().ok()?; // field 22
        Some(Self {
            name: name.to_owned(),
            ended: matches!(state, "Z" | "X"),
            parent,
            started_ticks,
        })
    }
}
