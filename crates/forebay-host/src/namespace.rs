//! Private mounts that only Forebay and its children see. A *keeper*, a child process, creates the
//! mount namespace (for an ordinary user within a user namespace) and keeps it alive. Forebay and
//! its later children enter it. It ends with its last process.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind_recursive, mount_change,
    mount_move, mount_remount, unmount,
};
use rustix::thread::{
    CapabilitySet, CapabilitySets, LinkNameSpaceType, UnshareFlags, capabilities,
    move_into_link_name_space, remove_capability_from_bounding_set, set_capabilities,
    unshare_unsafe,
};

use crate::files::{self, Kind};
use crate::process::{CommandLine, Identity, KEEPER, name_thread};
use crate::{Result, with_context};

/// The maximum number of names bound again to add a path that does not exist.
const ENTRIES_BOUND_MAX: usize = 1000;

/// The size of the memory file system for these names, which hold no data.
const NAMES_BYTES: u64 = 16 << 20;

/// One mount of the view. Forebay creates mounts in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mount {
    /// A memory file system.
    Memory {
        /// The mount point. If missing, it is created in the view only.
        at: PathBuf,
        /// A hard limit: writes beyond it fail with ENOSPC.
        size_bytes: u64,
        /// Uses huge pages (2 MiB): faster for few large files, wasteful for many small ones.
        huge: bool,
        /// Directories to create in it.
        directories: Vec<PathBuf>,
    },
    /// A directory under a second path.
    Directory {
        /// The mount point. If missing, it is created in the view only.
        at: PathBuf,
        /// The directory to show. Created if missing.
        from: PathBuf,
    },
}

/// The process that holds a view. Dropping this value does not end the process. In the view, this
/// user's and group's IDs stay the same, but other users' files belong to "nobody", and set-user-ID
/// programs have no effect (user_namespaces(7)).
#[derive(Debug)]
pub struct Keeper {
    identity: Identity,
    life: Option<PipeWriter>,
}

impl Keeper {
    /// Creates a view with these mounts. `scratch` is an empty directory of this user for the
    /// setup. The keeper ends with this process, until [`Keeper::pin`] is called. This process must
    /// have only one thread.
    ///
    /// # Errors
    /// If the machine or its administrator does not allow it. Leaves nothing behind.
    pub fn start(scratch: &Path, mounts: &[Mount]) -> Result<Self> {
        check_one_thread()?;
        // SAFETY: this process has one thread.
        unsafe { Self::fork(|| View::make(scratch, mounts)) }
    }

    /// Another keeper of the view in which a process is, as for [`enter`].
    ///
    /// # Errors
    /// If the process has ended, is not in this view, or the view cannot be entered.
    pub fn in_view_of(process: Identity, view: Option<&str>) -> Result<Self> {
        check_one_thread()?;
        // SAFETY: this process has one thread.
        unsafe { Self::fork(|| enter(process, view)) }
    }

    /// Another keeper of the view in which this process is.
    ///
    /// # Errors
    /// If no process can be started.
    pub fn in_our_view() -> Result<Self> {
        // SAFETY: nothing is to be made, so the child allocates no memory.
        unsafe { Self::fork(|| Ok(())) }
    }

    /// Starts the keeper; `make` makes its view there.
    ///
    /// # Safety
    /// If `make` allocates memory, this process must have only one thread: another one may hold the lock of the
    /// allocator, for ever in the child.
    unsafe fn fork(make: impl FnOnce() -> Result<()>) -> Result<Self> {
        let view = Path::new(VIEW);
        let (life_reader, life) = with_context(io::pipe(), "make", view)?;
        let (mut report, report_writer) = with_context(io::pipe(), "make", view)?;
        let command_line = CommandLine::ours()?;
        // SAFETY: with all flags 0 the child shares nothing with this process. End signal 0 hides the keeper from
        // wait(2), which must see only processes of the job.
        let pid = unsafe { libc::syscall(libc::SYS_clone, 0, 0, 0, 0, 0) };
        if pid == 0 {
            drop((life, report));
            keep(make, &command_line, life_reader, report_writer);
        }
        drop(report_writer);
        let pid = i32::try_from(pid).unwrap_or(-1);
        if pid < 0 {
            return with_context(Err(io::Error::last_os_error()), "make", view);
        }
        let mut report_text = String::new();
        let heard = report.read_to_string(&mut report_text);
        if heard.is_ok() && report_text == READY {
            let life = Some(life);
            let identity = Identity::of(pid)?;
            return Ok(Self { identity, life });
        }
        drop(life);
        reap(pid);
        with_context(heard.and(Err(io::Error::other(report_text))), "make", view)
    }

    /// Lets the keeper outlive this process.
    pub fn pin(&mut self) -> Result<()> {
        let Some(mut life) = self.life.take() else {
            return Ok(());
        };
        let path = format!("process {}", self.identity.pid);
        with_context(life.write_all(b"h"), "keep", Path::new(&path))
    }

    /// The identity of the keeper process.
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// Kills the keeper.
    pub fn end(self) {
        // The keeper is an unreaped child of this process, so its PID is not reused.
        if let Some(pid) = rustix::process::Pid::from_raw(self.identity.pid) {
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).ok();
        }
        reap(self.identity.pid);
    }
}

const READY: &str = "ready";

/// More files than any process has open, as the kernel's own limit (`fs.nr_open`).
const OPEN_MAX: i32 = 1 << 20;
const VIEW: &str = "a private view of the file system";

fn check_one_thread() -> Result<()> {
    if files::names_in(Path::new("/proc/self/task"))?.len() == 1 {
        return Ok(());
    }
    with_context(Err(io::Error::other("a thread was started before")), "make", Path::new(VIEW))
}

/// Enters the view in which a process is, such as its keeper. Children gain no capabilities. Keeps the path of the
/// working directory. This process must have only one thread. `view`: the name of the mount namespace; none: any.
///
/// # Errors
/// If the process has ended or is not in this namespace, or the machine does not allow it.
pub fn enter(process: Identity, view: Option<&str>) -> Result<()> {
    let here = crate::system::current_directory()?;
    let path = |name: &str| PathBuf::from(format!("/proc/{}/ns/{name}", process.pid));
    let (user, mounts) = (path("user"), path("mnt"));
    let open = |path: &Path| {
        let opened = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        with_context(opened, "open", path)
    };
    let (user_file, mounts_file) = (open(&user)?, open(&mounts)?);
    let opened = PathBuf::from(format!("/proc/self/fd/{}", mounts_file.as_raw_fd()));
    let is_other = view.is_some_and(|view| files::read_link(&opened).ok() != Some(view.into()));
    if is_other || !process.is_alive() {
        // Its PID may have been reused.
        return with_context(Err(io::Error::from(io::ErrorKind::NotFound)), "enter", &mounts);
    }
    let same = |a: &Path, b: &str| Ok(files::read_link(a)? == files::read_link(Path::new(b))?);
    let own_user_namespace = !same(&user, "/proc/self/ns/user")?;
    let before = with_context(capabilities(None), "ask for the rights of", &here)?.effective;
    if own_user_namespace {
        let entered = move_into_link_name_space(
            std::os::fd::AsFd::as_fd(&user_file),
            Some(LinkNameSpaceType::User),
        );
        with_context(entered, "enter", &user)?;
    }
    let entered = move_into_link_name_space(
        std::os::fd::AsFd::as_fd(&mounts_file),
        Some(LinkNameSpaceType::Mount),
    );
    with_context(entered, "enter", &mounts)?;
    if own_user_namespace {
        give_up_rights(before)?;
    }
    with_context(rustix::process::chdir(&here), "change to", &here)
}

/// Tests whether private memory mounts work here. Leaves this process in a changed namespace: use
/// it only in a process with one thread that ends afterwards.
///
/// # Errors
/// If the machine or its administrator does not allow it.
pub fn try_memory(huge: bool) -> Result<()> {
    isolate()?;
    // /proc always exists, and this process no longer reads it.
    mount_memory(Path::new("/proc"), 1 << 20, huge)
}

/// Detaches a mount of the view. Processes that use it can continue. A mount already removed by the
/// job is no error.
pub fn detach(at: &Path) -> Result<()> {
    match unmount(at, UnmountFlags::DETACH) {
        Err(rustix::io::Errno::INVAL) => Ok(()),
        done => with_context(done, "unmount", at),
    }
}

/// Detaches what the job mounted below a mount of the view. Only processes of the view see it.
pub fn detach_below(at: &Path) -> Result<()> {
    files::mount_table::mounts_below(at)?.iter().rev().try_for_each(|mounted| detach(mounted))
}

/// The creator of a user namespace has all capabilities in it. This process keeps only its earlier
/// ones and SYS_ADMIN, to unmount. Its children get only the earlier ones.
fn give_up_rights(before: CapabilitySet) -> Result<()> {
    let here = Path::new("this process");
    let ours = before | CapabilitySet::SYS_ADMIN;
    for lost in CapabilitySet::all() - before {
        // Fails if this kernel does not know the capability.
        remove_capability_from_bounding_set(lost).ok();
    }
    let rights =
        CapabilitySets { effective: ours, permitted: ours, inheritable: CapabilitySet::empty() };
    with_context(set_capabilities(None, rights), "give up the rights of", here)
}

/// Runs the keeper process. Allocates no memory unless `make` does or fails.
fn keep(
    make: impl FnOnce() -> Result<()>,
    command_line: &CommandLine,
    mut life: PipeReader,
    mut report: PipeWriter,
) -> ! {
    // SAFETY: both calls change only this process and get valid pointers to a signal set. Blocked
    // signals run no handler of the parent here. Only SIGKILL ends the keeper.
    unsafe {
        let mut all = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
    }
    let made = make();
    // `clean` recognizes keepers by this name, so set it before the parent can record the keeper. Who ends processes
    // by the command line of `forebay run` does not mean the keeper.
    name_thread(KEEPER);
    // SAFETY: the keeper does not read its arguments.
    unsafe { command_line.replace(KEEPER) };
    let stay = match &made {
        Ok(()) => report.write_all(READY.as_bytes()).is_ok(),
        Err(error) => {
            report.write_all(error.to_string().as_bytes()).ok(); // the parent may be gone
            false
        }
    };
    let mut order = [0];
    drop(report);
    if !stay || !matches!(life.read(&mut order), Ok(1)) {
        exit();
    }
    rustix::process::setsid().ok(); // leave the terminal; the keeper leads no group
    close_all();
    loop {
        // SAFETY: waits for a signal, and changes nothing.
        unsafe { libc::pause() };
    }
}

/// Closes all files, so that no process waits for the keeper to close a pipe.
fn close_all() {
    // The call, not glibc's function: that exists since version 2.34 only.
    // SAFETY: the keeper uses no file after this.
    if unsafe { libc::syscall(libc::SYS_close_range, 0, libc::c_uint::MAX, 0) } == 0 {
        return;
    }
    // Before Linux 5.9.
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let limit = limit.and_then(|limit| i32::try_from(limit).ok()).unwrap_or(OPEN_MAX);
    for number in 0..limit.min(OPEN_MAX) {
        // SAFETY: as above.
        unsafe { libc::close(number) };
    }
}

fn exit() -> ! {
    // SAFETY: ends this process without running the parent's exit handlers.
    unsafe { libc::_exit(0) }
}

fn reap(pid: i32) {
    // SAFETY: the status pointer may be null. The call only fails if there is no such child.
    unsafe { libc::waitpid(pid, std::ptr::null_mut(), libc::__WALL) };
}

/// The state while the view is built.
struct View<'a> {
    scratch: &'a Path,
    /// Memory file systems that cover real directories.
    stand_ins: Vec<PathBuf>,
    /// These and the directories created in them: names added here exist only in the view.
    ours: Vec<PathBuf>,
    /// The mount points of shown directories.
    shown: Vec<PathBuf>,
}

impl<'a> View<'a> {
    fn make(scratch: &'a Path, mounts: &[Mount]) -> Result<()> {
        isolate()?;
        let mut view = Self { scratch, stand_ins: Vec::new(), ours: Vec::new(), shown: Vec::new() };
        for wanted in mounts {
            match wanted {
                Mount::Memory { at, size_bytes, huge, directories } => {
                    if files::status(at).is_err() {
                        view.add(at)?;
                    }
                    mount_memory(at, *size_bytes, *huge)?;
                    for name in directories {
                        files::make_directory(&at.join(name), 0o755)?;
                    }
                }
                Mount::Directory { at, from } => view.show(from, at)?,
            }
        }
        view.close()
    }

    fn show(&mut self, from: &Path, at: &Path) -> Result<()> {
        files::make_directories(from, 0o755)?;
        let from = files::real_path(from)?;
        if files::status(at).is_err() {
            self.add(at)?;
        }
        self.shown.push(files::real_path(at)?);
        with_context(mount_bind_recursive(&from, at), "show a directory as", at)
    }

    /// Creates a directory that exists only in the view.
    fn add(&mut self, at: &Path) -> Result<()> {
        let known = at.ancestors().find(|base| files::status(base).is_ok());
        let known = known.unwrap_or(Path::new("/"));
        let base = files::real_path(known)?;
        if self.shown.iter().any(|shown| base.starts_with(shown)) {
            let source =
                io::Error::other("it is itself shown there; make the directory in it first");
            return with_context(Err(source), "add a name to the view of", &base);
        }
        if !self.ours.contains(&base) {
            check_cover(&base)?;
            stand_in_for(&base, self.scratch)?;
            self.stand_ins.push(base.clone());
            self.ours.push(base.clone());
        }
        let at = base.join(at.strip_prefix(known).unwrap_or(at));
        self.ours.extend(files::make_directories(&at, 0o755)?);
        self.ours.retain(|path| *path != at); // the shown directory is real
        Ok(())
    }

    /// Makes the covers read-only: a new name there would vanish with the view, an error is better.
    fn close(&self) -> Result<()> {
        let flags = MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV;
        self.stand_ins.iter().try_for_each(|path| {
            let closed = mount_remount(path, flags, c"");
            with_context(closed, "close to new names", path)
        })
    }
}

/// Checks whether a missing path can be added to a view. The view then covers the nearest existing
/// directory, and programs cannot create names in it.
///
/// # Errors
/// If users create files in that directory.
pub fn check_addition(at: &Path) -> Result<()> {
    match files::status(at) {
        Ok(_) => Ok(()),
        Err(_) => check_cover(&files::nearest_real_path(at)?),
    }
}

fn check_cover(directory: &Path) -> Result<()> {
    const WRITE_OF_OTHERS: u32 = 0o022;
    let is_home = || std::env::var_os("HOME").is_some_and(|home| Path::new(&home) == directory);
    let missed = if crate::users::user_id() == 0 {
        files::status(directory)?.mode & WRITE_OF_OTHERS != 0
            || crate::system::current_directory()? == directory
            || is_home()
    } else {
        rustix::fs::access(directory, rustix::fs::Access::WRITE_OK).is_ok()
    };
    if missed {
        let source = io::Error::other("files are written there, and they would find no place");
        return with_context(Err(source), "add a name to the view of", directory);
    }
    Ok(())
}

/// Enters a new mount namespace; without permission for it, a user namespace as well.
fn isolate() -> Result<()> {
    let here = Path::new("this process");
    // SAFETY: the flag affects neither memory nor open files, and there is only one thread.
    let alone = unsafe { unshare_unsafe(UnshareFlags::NEWNS) };
    if alone.is_err() {
        let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
        // SAFETY: the flags affect neither memory nor open files, and there is only one thread.
        let unshared = unsafe { unshare_unsafe(UnshareFlags::NEWUSER | UnshareFlags::NEWNS) };
        with_context(unshared, "make a user namespace for", here)?;
        write("/proc/self/setgroups", "deny")?;
        write("/proc/self/uid_map", &format!("{user} {user} 1"))?;
        write("/proc/self/gid_map", &format!("{group} {group} 1"))?;
    }
    let root = Path::new("/");
    let slave = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    with_context(mount_change(root, slave), "keep apart the mounts of", root)
}

fn write(path: &str, text: &str) -> Result<()> {
    let path = Path::new(path);
    let file = std::fs::OpenOptions::new().write(true).open(path);
    with_context(file.and_then(|mut file| file.write_all(text.as_bytes())), "write to", path)
}

fn mount_memory(at: &Path, size_bytes: u64, huge: bool) -> Result<()> {
    let pages = if huge { "always" } else { "never" };
    let options = format!("size={size_bytes},mode=0700,huge={pages}");
    let options = std::ffi::CString::new(options).unwrap_or_default();
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    let mounted = mount(c"forebay", at, c"tmpfs", flags, Some(options.as_c_str()));
    with_context(mounted, "mount memory at", at)
}

/// Covers a directory with a memory file system and binds its entries there, so that names can be
/// added without changing the directory.
fn stand_in_for(directory: &Path, new: &Path) -> Result<()> {
    let names = files::kinds_in(directory)?;
    if names.len() > ENTRIES_BOUND_MAX {
        let source = io::Error::other(format!("more than {ENTRIES_BOUND_MAX} names are in it"));
        return with_context(Err(source), "add a name to", directory);
    }
    // Build the new directory at `new`, and then move it over the old one.
    mount_memory(new, NAMES_BYTES, false)?;
    files::set_mode(new, 0o755)?;
    let unbindable = MountPropagationFlags::UNBINDABLE;
    with_context(mount_change(new, unbindable), "keep apart", new)?;
    for (name, kind) in names {
        stand_in(&directory.join(&name), kind, &new.join(&name))?;
    }
    if directory == Path::new("/") {
        with_context(rustix::process::chdir(new), "change to", new)?;
        with_context(rustix::process::pivot_root(".", "."), "replace", directory)?;
        return with_context(unmount(".", UnmountFlags::DETACH), "detach", directory);
    }
    with_context(mount_move(new, directory), "cover", directory)?;
    // After the move, make it bindable again.
    let apart = MountPropagationFlags::PRIVATE;
    with_context(mount_change(directory, apart), "keep apart", directory)
}

fn stand_in(old: &Path, kind: Kind, new: &Path) -> Result<()> {
    match kind {
        Kind::Link => return files::make_link(&files::read_link(old)?, new),
        Kind::Directory => files::make_directory(new, 0o755)?,
        Kind::File | Kind::Other => drop(files::make_file(new, 0o644)?),
    }
    with_context(mount_bind_recursive(old, new), "show", old)
}
