//! Runs a program as another user, with none of this process's rights, files or variables. The program may be in
//! the hands of that user: nothing here waits for it longer than it lives, or reads more than it may say.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Weak};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, SealFlags};
use rustix::process::{Pid, PidfdFlags, Signal};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use super::cgroup::{Cgroup, KeptCgroup};
use super::counters::Counters;
use super::watch::{Overdue, TimeLimit, Watch};
use crate::{Result, clock, with_context};

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
    /// None in the cgroup of this process.
    cgroup: Option<Arc<Cgroup>>,
}

/// Ends a program of another user, also after it ended by itself.
#[derive(Debug, Clone)]
pub struct Killer {
    handle: Arc<OwnedFd>,
    cgroup: Weak<Cgroup>,
}

/// How a program of another user ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserResult {
    /// The begin of its standard output.
    pub output: Vec<u8>,
    /// Its exit code; none if a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The limit at which it was killed; none if it was not.
    pub overdue: Option<Overdue>,
}

/// What a program of another user can become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rights {
    /// It keeps the rights of the user.
    OfUser,
    /// It can start programs of other users, such as fusermount.
    WithSetuid,
}

/// A program of another user that goes on when this process has ended.
#[derive(Debug)]
pub struct Service {
    child: Child,
    program: PathBuf,
}

/// Makes this process one of the user, for good. Call it before a thread is started.
///
/// # Errors
/// As setresuid(2): only root may become another user.
pub fn become_user(who: &Credentials) -> Result<()> {
    let shown = who.user.to_string();
    with_context(drop_rights(who), "become the user", Path::new(&shown))
}

/// Keeps other processes of the same user from tracing this one or reading its memory.
pub fn close_to_debuggers() {
    // It is a further hurdle for a user's own processes; the work does not rest on it.
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable).ok();
}

/// Names this process in lists of processes.
pub fn set_name(name: &str) {
    name_thread(&std::ffi::CString::new(name).unwrap_or_default());
}

/// As [`set_name`], without allocating memory.
pub(crate) fn name_thread(name: &std::ffi::CStr) {
    rustix::thread::set_name(name).ok(); // for display only
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
/// command sets and no others. It reads `input`, inherits the descriptor of `counters`, and ends with this thread. What
/// it started ends with it if it has a cgroup.
pub fn start_as_user(
    mut command: Command,
    who: Credentials,
    rights: Rights,
    input: &[u8],
    counters: Option<&Counters>,
    cgroup: Option<Cgroup>,
) -> Result<UserProcess> {
    let program = Path::new(command.get_program()).to_owned();
    let input = with_context(sealed(input), "hand its input to", &program)?;
    command.stdin(input).stdout(Stdio::piped());
    confine(
        &mut command,
        Confinement {
            who,
            rights,
            inherited: counters.map(Counters::descriptor),
            procs_file: cgroup.as_ref().map(Cgroup::procs_file).transpose()?,
            parent: Some(rustix::process::getpid()),
        },
    );
    let mut child = with_context(command.spawn(), "run", &program)?;
    let opened = rustix::process::pidfd_open(Pid::from_child(&child), PidfdFlags::empty());
    match opened {
        Ok(handle) => {
            let (handle, cgroup) = (Arc::new(handle), cgroup.map(Arc::new));
            Ok(UserProcess { child, handle, program, cgroup })
        }
        Err(error) => {
            child.kill().ok();
            child.wait().ok(); // it was killed
            with_context(Err(error), "watch", &program)
        }
    }
}

/// Starts the command as another user, as [`start_as_user`], but in a cgroup that stays, and with the standard input and
/// output that the command has. It can start setuid programs, and goes on when this process has ended.
pub fn start_service_as_user(
    mut command: Command,
    who: Credentials,
    cgroup: &KeptCgroup,
) -> Result<Service> {
    let program = Path::new(command.get_program()).to_owned();
    confine(
        &mut command,
        Confinement {
            who,
            rights: Rights::WithSetuid,
            inherited: None,
            procs_file: Some(cgroup.procs_file()?),
            parent: None,
        },
    );
    Ok(Service { child: with_context(command.spawn(), "run", &program)?, program })
}

/// Standard input that nobody can change.
pub fn sealed_input(content: &[u8]) -> Result<Stdio> {
    with_context(sealed(content), "hand its input to", Path::new("a program")).map(Stdio::from)
}

/// What a program of another user gets of this process.
struct Confinement {
    who: Credentials,
    rights: Rights,
    /// A descriptor.
    inherited: Option<RawFd>,
    /// The file of its cgroup.
    procs_file: Option<File>,
    /// It ends with the thread of this process that starts it.
    parent: Option<Pid>,
}

fn confine(command: &mut Command, how: Confinement) {
    command.stderr(Stdio::null()).current_dir("/");
    let prepare = move || {
        if let Some(procs_file) = &how.procs_file {
            rustix::io::write(procs_file, b"0")?;
        }
        rustix::process::setsid()?;
        close_at_exec();
        if let Some(inherited) = how.inherited {
            // SAFETY: changes the flags of a descriptor only.
            unsafe { libc::fcntl(inherited, libc::F_SETFD, 0) };
        }
        rustix::process::umask(Mode::from_raw_mode(0o077));
        drop_rights(&how.who)?;
        if how.rights == Rights::OfUser {
            rustix::thread::set_no_new_privs(true)?;
        }
        if let Some(parent) = how.parent {
            // A change of the user clears it, so it comes last.
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            if rustix::process::getppid() != Some(parent) {
                return Err(io::Error::from_raw_os_error(libc::ESRCH));
            }
        }
        Ok(())
    };
    // SAFETY: the closure makes system calls only and allocates nothing: signal-safety(7).
    unsafe { command.pre_exec(prepare) };
}

impl Service {
    /// What it prints; none if its output leads elsewhere.
    pub fn take_output(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// Waits for its end; its exit code, none if a signal ended it.
    pub fn wait(mut self) -> Result<Option<i32>> {
        with_context(self.child.wait(), "wait for", &self.program).map(|status| status.code())
    }
}

impl UserProcess {
    /// What ends it from another thread.
    pub fn killer(&self) -> Killer {
        let cgroup = self.cgroup.as_ref().map_or_else(Weak::new, Arc::downgrade);
        Killer { handle: Arc::clone(&self.handle), cgroup }
    }

    /// Waits for its end, and kills it at the limit. What it left in its cgroup is killed. Reads at most
    /// `output_bytes_max` of its standard output.
    pub fn finish(mut self, output_bytes_max: usize, limit: TimeLimit) -> Result<UserResult> {
        let output = self.output(output_bytes_max, limit);
        let (output, overdue) = with_context(output, "read the output of", &self.program)?;
        let status = with_context(self.child.wait(), "wait for", &self.program)?;
        Ok(UserResult { output, code: status.code(), signal: status.signal(), overdue })
    }

    /// The output, and the limit at which the process was killed. Another process of the user may hold the pipe
    /// open, so its end is not waited for.
    fn output(
        &mut self,
        bytes_max: usize,
        limit: TimeLimit,
    ) -> io::Result<(Vec<u8>, Option<Overdue>)> {
        let mut output = Vec::new();
        let mut portion = [0; PORTION_BYTES];
        let mut watch = Watch::of(self.child.id(), limit);
        let Some(mut pipe) = self.child.stdout.take() else {
            return Ok((output, None));
        };
        let mut is_open = true;
        loop {
            if watch.check_overdue() {
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
                return Ok((output, watch.overdue()));
            }
            if ended && !is_open {
                return Ok((output, watch.overdue()));
            }
        }
    }
}

fn time_left(deadline: Instant) -> io::Result<Timespec> {
    let left = deadline.saturating_duration_since(clock::now());
    Timespec::try_from(left).map_err(io::Error::other)
}

impl Killer {
    /// Ends the program, and all in its cgroup, with SIGKILL.
    pub fn kill(&self) {
        // It may have ended already.
        rustix::process::pidfd_send_signal(&*self.handle, Signal::KILL).ok();
        self.cgroup.upgrade().iter().for_each(|cgroup| cgroup.kill());
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
    use std::time::Duration;

    use super::*;
    use crate::process::{Cgroups, Identity, command};
    use crate::{cgroup, files, threads, users};

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
        let started = start_as_user(shell(script), nobody(), Rights::OfUser, b"in\n", None, None)
            .expect("start");
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
        let talks =
            start_as_user(shell("yes"), nobody(), Rights::OfUser, b"", None, None).expect("start");
        let killer = talks.killer();
        let waiting = threads::spawn(move || talks.finish(10, LONG)).expect("thread");
        killer.kill();
        let ended = waiting.join().expect("thread").expect("end");
        assert!(ended.output.len() <= 10 && ended.signal == Some(libc::SIGKILL));
        killer.kill(); // after its end
        let left =
            start_as_user(shell("sleep 60 & echo $!"), nobody(), Rights::OfUser, b"", None, None)
                .expect("start");
        let ended = left.finish(1000, LONG).expect("end");
        assert_eq!(ended.code, Some(0));
        let pid = String::from_utf8(ended.output).expect("text").trim().parse().expect("number");
        let pid = Pid::from_raw(pid).expect("a process");
        rustix::process::kill_process(pid, Signal::KILL).expect("it was left behind");
    }

    #[test]
    fn program_that_its_user_stopped_or_that_is_idle_is_killed() {
        if !users::is_root() {
            return; // only root can become another user
        }
        let (soon, never) = (Duration::from_millis(100), Duration::from_secs(600));
        let work = |idle_max, stopped_max| TimeLimit::Work { idle_max, stopped_max };
        let (idle, stopped) = (work(soon, never), work(never, soon));
        let killed = |script: &str, limit| {
            let started = start_as_user(shell(script), nobody(), Rights::OfUser, b"", None, None)
                .expect("start");
            let ended = started.finish(1000, limit).expect("end");
            assert_eq!(ended.signal, Some(libc::SIGKILL), "{script}");
            ended.overdue
        };
        for script in ["echo first; kill -STOP $$", "kill -STOP $$", "exec >&-; kill -STOP $$"] {
            assert_eq!(killed(script, TimeLimit::Whole(soon)), Some(Overdue::Late(soon)));
            assert_eq!(killed(script, stopped), Some(Overdue::Stopped(soon)));
        }
        assert_eq!(killed("exec sleep 600", idle), Some(Overdue::Idle(soon)));
        // Its user lets it go on for moments.
        let moments =
            "(while kill -CONT $$; do sleep 0.02; done) & while :; do kill -STOP $$; done";
        assert_eq!(killed(moments, stopped), Some(Overdue::Stopped(soon)));
        // It works for longer than the limit, which is longer than a busy machine lets it wait for a processor.
        let busy = "i=0; while [ $i -lt 1200000 ]; do i=$((i+1)); done; exit 4";
        let started =
            start_as_user(shell(busy), nobody(), Rights::OfUser, b"", None, None).expect("start");
        assert_eq!(started.finish(1000, work(10 * soon, soon)).expect("end").code, Some(4));
        let started = start_as_user(shell("exit 3"), nobody(), Rights::OfUser, b"", None, None)
            .expect("start");
        let ended = started.finish(1000, LONG).expect("end");
        assert_eq!((ended.code, ended.overdue), (Some(3), None));
    }

    #[test]
    fn all_that_a_program_started_ends_with_it_in_its_cgroup() {
        let name = format!("forebay-test-{}", std::process::id());
        let made = cgroup::of_this_process().and_then(|ours| Cgroups::make(&ours, &name));
        let Ok(cgroups) = made else {
            return; // this process may make no cgroups
        };
        let is_empty = || {
            files::kinds_in(cgroups.path())
                .expect("list")
                .iter()
                .all(|(_, kind)| *kind != files::Kind::Directory)
        };
        let run = |script: &str, limit| {
            let cgroup = cgroups.add("7.1").expect("cgroup");
            let started =
                start_as_user(shell(script), nobody(), Rights::OfUser, b"", None, Some(cgroup));
            started.expect("start").finish(1000, limit).expect("end")
        };
        let stopped = Duration::from_millis(100);
        let stopped = TimeLimit::Work { idle_max: Duration::from_secs(600), stopped_max: stopped };
        // The child leaves the session, and ignores signals that it can.
        let child = "trap '' TERM HUP; cat /proc/self/cgroup; setsid sleep 600 & echo $!;";
        for (end, code) in [("exit 0", Some(0)), ("kill -STOP $$", None)] {
            let ended = run(&format!("{child} {end}"), stopped);
            assert_eq!(ended.code, code);
            let output = String::from_utf8(ended.output).expect("text");
            assert!(output.contains(&format!("{name}/7.1-")), "{output}");
            let pid = output.lines().last().expect("a line").parse().expect("a number");
            assert!(!Identity::of(pid).is_ok_and(Identity::is_alive));
            assert!(is_empty());
        }
        // A former process was killed before it removed the cgroup.
        let left = cgroups.add("7.2").expect("cgroup");
        let started =
            start_as_user(shell("exec sleep 600"), nobody(), Rights::OfUser, b"", None, Some(left))
                .expect("start");
        let parent = cgroups.path().parent().expect("a parent");
        Cgroups::make(parent, &name).expect("again");
        assert_eq!(started.finish(10, LONG).expect("end").signal, Some(libc::SIGKILL));
        assert!(is_empty());
        std::fs::remove_dir(cgroups.path()).expect("remove");
    }
}
