//! Runs a program as another user, with none of this process's rights, files or variables. The program may be in
//! the hands of that user: nothing here waits for it longer than it lives, or reads more than it may say.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, SealFlags};
use rustix::process::{Pid, PidfdFlags, Signal};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use super::counters::Counters;
use crate::{Result, clock, files, on};

/// Bytes read at a time.
const PORTION_BYTES: usize = 8192;

/// A user and the groups in which a process runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The user's ID.
    pub user: u32,
    /// The group of the process.
    pub group: u32,
    /// The supplementary groups.
    pub groups: Vec<u32>,
}

/// A running program of another user.
#[derive(Debug)]
pub struct UserProcess {
    child: Child,
    handle: Arc<OwnedFd>,
    program: PathBuf,
}

/// Ends a program of another user, also after it ended by itself.
#[derive(Debug, Clone)]
pub struct Killer(Arc<OwnedFd>);

/// How a program of another user ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserResult {
    /// The begin of its standard output.
    pub output: Vec<u8>,
    /// Its exit code; none if a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Whether it was killed because of its time limit.
    pub is_late: bool,
}

/// When a program of another user is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeLimit {
    /// After this time.
    Whole(Duration),
    /// After it used no processor for this time: its user may have stopped it, or a file system hangs.
    Idle(Duration),
}

/// Makes this process one of the user, for good. Call it before a thread is started.
///
/// # Errors
/// As setresuid(2): only root may become another user.
pub fn become_user(who: &Credentials) -> Result<()> {
    let shown = who.user.to_string();
    on(drop_rights(who), "become the user", Path::new(&shown))
}

/// Keeps other processes of the same user from tracing this one or reading its memory.
pub fn close_to_debuggers() {
    // It is a further hurdle for a user's own processes; the work does not rest on it.
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable).ok();
}

/// Raw system calls, which allocate nothing and leave other threads alone.
fn drop_rights(who: &Credentials) -> io::Result<()> {
    use rustix::fs::{Gid, Uid};
    let groups = who.groups.as_slice();
    // SAFETY: `Gid` is a transparent wrapper of the same number.
    let groups = unsafe { std::slice::from_raw_parts(groups.as_ptr().cast::<Gid>(), groups.len()) };
    let (user, group) = (Uid::from_raw(who.user), Gid::from_raw(who.group));
    set_thread_groups(groups)?;
    set_thread_res_gid(group, group, group)?;
    set_thread_res_uid(user, user, user)?;
    Ok(())
}

/// Starts the command as another user: in a session of its own, in the root directory, with the variables that the
/// command sets and no others, and without a way to new rights. It reads `input`, inherits the descriptor of `counters`,
/// and ends with this thread.
pub fn start_as_user(
    mut command: Command,
    who: Credentials,
    input: &[u8],
    counters: Option<&Counters>,
) -> Result<UserProcess> {
    let program = Path::new(command.get_program()).to_owned();
    let input = on(sealed(input), "hand its input to", &program)?;
    command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::null()).current_dir("/");
    let parent = rustix::process::getpid();
    let inherited = counters.map(Counters::descriptor);
    let prepare = move || {
        rustix::process::setsid()?;
        close_at_exec();
        if let Some(inherited) = inherited {
            // SAFETY: changes the flags of a descriptor only.
            unsafe { libc::fcntl(inherited, libc::F_SETFD, 0) };
        }
        rustix::process::umask(Mode::from_raw_mode(0o077));
        drop_rights(&who)?;
        rustix::thread::set_no_new_privs(true)?;
        // A change of the user clears it, so it comes last.
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        if rustix::process::getppid() != Some(parent) {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        Ok(())
    };
    // SAFETY: the closure makes system calls only and allocates nothing: signal-safety(7).
    unsafe { command.pre_exec(prepare) };
    let mut child = on(command.spawn(), "run", &program)?;
    let opened = rustix::process::pidfd_open(Pid::from_child(&child), PidfdFlags::empty());
    match opened {
        Ok(handle) => Ok(UserProcess { child, handle: Arc::new(handle), program }),
        Err(error) => {
            child.kill().ok();
            child.wait().ok(); // it was killed
            on(Err(error), "watch", &program)
        }
    }
}

impl UserProcess {
    /// What ends it from another thread.
    pub fn killer(&self) -> Killer {
        Killer(Arc::clone(&self.handle))
    }

    /// Waits for its end, and kills it at the limit. Reads at most `output_bytes_max` of its standard output.
    pub fn finish(mut self, output_bytes_max: usize, limit: TimeLimit) -> Result<UserResult> {
        let output = self.output(output_bytes_max, limit);
        let (output, is_late) = on(output, "read the output of", &self.program)?;
        let status = on(self.child.wait(), "wait for", &self.program)?;
        Ok(UserResult { output, code: status.code(), signal: status.signal(), is_late })
    }

    /// The output, and whether the process was killed at the limit. Another process of the user may hold the pipe
    /// open, so its end is not waited for.
    fn output(&mut self, bytes_max: usize, limit: TimeLimit) -> io::Result<(Vec<u8>, bool)> {
        let mut output = Vec::new();
        let mut portion = [0; PORTION_BYTES];
        let mut watch = Watch::of(self.child.id(), limit);
        let Some(mut pipe) = self.child.stdout.take() else {
            return Ok((output, false));
        };
        let mut is_open = true;
        loop {
            if watch.is_over() {
                self.killer().kill();
            }
            let (readable, ended) = {
                let mut waited =
                    [PollFd::new(&*self.handle, PollFlags::IN), PollFd::new(&pipe, PollFlags::IN)];
                let count = if is_open { 2 } else { 1 };
                let left = watch.next().map(time_left).transpose()?;
                rustix::io::retry_on_intr(|| poll(&mut waited[..count], left.as_ref()))?;
                (is_open && !waited[1].revents().is_empty(), !waited[0].revents().is_empty())
            };
            if readable {
                let read = pipe.read(&mut portion)?;
                let taken = read.min(bytes_max.saturating_sub(output.len()));
                output.extend_from_slice(&portion[..taken]);
                is_open = read > 0 && output.len() < bytes_max;
            } else if ended {
                return Ok((output, watch.is_late));
            }
            if ended && !is_open {
                return Ok((output, watch.is_late));
            }
        }
    }
}

/// Looks whether a program has reached its limit.
struct Watch {
    process: u32,
    limit: TimeLimit,
    used: Option<u64>,
    deadline: Instant,
    is_late: bool,
}

impl Watch {
    fn of(process: u32, limit: TimeLimit) -> Self {
        let (TimeLimit::Whole(time_max) | TimeLimit::Idle(time_max)) = limit;
        let used = processor_time(process);
        Self { process, limit, used, deadline: clock::now() + time_max, is_late: false }
    }

    /// Whether the program is to be killed. True once.
    fn is_over(&mut self) -> bool {
        if self.is_late {
            return false;
        }
        if let TimeLimit::Idle(time_max) = self.limit {
            let used = processor_time(self.process);
            // Where the kernel does not say it, no program is idle.
            if used.is_none() || used != self.used {
                (self.used, self.deadline) = (used, clock::now() + time_max);
            }
        }
        self.is_late = clock::now() >= self.deadline;
        self.is_late
    }

    /// When to look again.
    fn next(&self) -> Option<Instant> {
        let soon = match self.limit {
            TimeLimit::Whole(_) => self.deadline,
            TimeLimit::Idle(time_max) => self.deadline.min(clock::now() + time_max / 4),
        };
        (!self.is_late).then_some(soon)
    }
}

/// The processor time of all threads of a process, in a unit of the kernel; none if it cannot be read.
fn processor_time(process: u32) -> Option<u64> {
    let threads = files::names_in(Path::new(&format!("/proc/{process}/task"))).ok()?;
    let of_thread = |name: &std::ffi::OsString| {
        let path = Path::new("/proc").join(process.to_string()).join("task").join(name);
        // The first number of sched-stats: nanoseconds on a processor.
        let text = files::read_to_string(&path.join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    };
    threads.iter().map(of_thread).sum()
}

fn time_left(deadline: Instant) -> io::Result<Timespec> {
    let left = deadline.saturating_duration_since(clock::now());
    Timespec::try_from(left).map_err(io::Error::other)
}

impl Killer {
    /// Ends the program with SIGKILL.
    pub fn kill(&self) {
        // It may have ended already.
        rustix::process::pidfd_send_signal(&*self.0, Signal::KILL).ok();
    }
}

/// No file of this process but the standard ones reaches the program. Files that the standard library opened do not
/// anyway, so a kernel before Linux 5.11, which cannot do this, is no error.
fn close_at_exec() {
    // SAFETY: changes flags of descriptors only.
    unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
}

/// A file in memory that nobody can change.
fn sealed(content: &[u8]) -> io::Result<File> {
    let flags = rustix::fs::MemfdFlags::CLOEXEC | rustix::fs::MemfdFlags::ALLOW_SEALING;
    let mut file = File::from(rustix::fs::memfd_create("forebay", flags)?);
    file.write_all(content)?;
    file.rewind()?;
    let seals = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
    rustix::fs::fcntl_add_seals(&file, seals)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::command;
    use crate::{threads, users};

    const NOBODY: u32 = 65534;
    const LONG: TimeLimit = TimeLimit::Whole(Duration::from_secs(600));

    fn nobody() -> Credentials {
        Credentials { user: NOBODY, group: NOBODY, groups: vec![NOBODY, 7] }
    }

    fn shell(script: &str) -> Command {
        let mut command = command("/bin/sh");
        command.args(["-c", script]).env_clear().env("PATH", "/usr/bin:/bin");
        command
    }

    #[test]
    fn program_has_the_users_rights_only() {
        if !users::is_root() {
            return; // only root can become another user
        }
        let script = "cat; id -u; id -g; id -G; pwd; umask; env | grep -c HOME; \
                      grep NoNewPrivs /proc/self/status; ls /proc/self/fd | wc -l";
        let started = start_as_user(shell(script), nobody(), b"in\n", None).expect("start");
        let ended = started.finish(1000, LONG).expect("end");
        let output = String::from_utf8(ended.output).expect("text");
        let wanted = "in\n65534\n65534\n65534 7\n/\n0077\n0\nNoNewPrivs:\t1\n4\n";
        assert_eq!((output.as_str(), ended.code), (wanted, Some(0)));
    }

    #[test]
    fn neither_a_talking_program_nor_one_that_leaves_its_output_open_holds_the_caller() {
        if !users::is_root() {
            return; // only root can become another user
        }
        let talks = start_as_user(shell("yes"), nobody(), b"", None).expect("start");
        let killer = talks.killer();
        let waiting = threads::spawn(move || talks.finish(10, LONG)).expect("thread");
        killer.kill();
        let ended = waiting.join().expect("thread").expect("end");
        assert!(ended.output.len() <= 10 && ended.signal == Some(libc::SIGKILL));
        killer.kill(); // after its end
        let left = start_as_user(shell("sleep 60 & echo $!"), nobody(), b"", None).expect("start");
        let ended = left.finish(1000, LONG).expect("end");
        assert_eq!(ended.code, Some(0));
        let pid = String::from_utf8(ended.output).expect("text").trim().parse().expect("number");
        let pid = Pid::from_raw(pid).expect("a process");
        rustix::process::kill_process(pid, Signal::KILL).expect("it was left behind");
    }

    #[test]
    fn program_that_its_user_stopped_is_killed() {
        if !users::is_root() {
            return; // only root can become another user
        }
        for script in ["echo first; kill -STOP $$", "kill -STOP $$", "exec >&-; kill -STOP $$"] {
            let soon = Duration::from_millis(100);
            for limit in [TimeLimit::Whole(soon), TimeLimit::Idle(soon)] {
                let started = start_as_user(shell(script), nobody(), b"", None).expect("start");
                let ended = started.finish(1000, limit).expect("end");
                assert_eq!((ended.signal, ended.is_late), (Some(libc::SIGKILL), true), "{script}");
            }
        }
        // It works for longer than the limit.
        let busy = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; exit 4";
        let started = start_as_user(shell(busy), nobody(), b"", None).expect("start");
        let ended = started.finish(1000, TimeLimit::Idle(Duration::from_millis(100)));
        assert_eq!(ended.expect("end").code, Some(4));
        let started = start_as_user(shell("exit 3"), nobody(), b"", None).expect("start");
        let ended = started.finish(1000, LONG).expect("end");
        assert_eq!((ended.code, ended.is_late), (Some(3), false));
    }
}
