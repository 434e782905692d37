//! A view of the file system of our own: mounts that only some processes see.
//!
//! A *keeper* makes them: a child of ours that enters a mount namespace (an ordinary user: with a
//! user namespace around it), mounts, and then only holds it, so that what is in a memory mount
//! outlives every other process. We and all that we start later enter it. The namespace and its memory are
//! gone when the last process in it has ended.
//!
//! User and group keep their numbers; other users' files belong to "nobody" in the view, and
//! set-user-ID programs have no effect (user_namespaces(7)).

use std::io::{self, PipeReader, PipeWriter, Read, Write};
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
use crate::process::{Identity, KEEPER};
use crate::{Result, on};

/// Names that are bound again where a path is shown that does not exist.
const ENTRIES_BOUND_MAX: usize = 1000;

/// Room for these names: they hold no data.
const NAMES_BYTES: u64 = 16 << 20;

/// One mount of the view. They are made in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mount {
    /// A file system in memory.
    Memory {
        /// Need not exist: it is made in the view, not on the file system.
        at: PathBuf,
        /// Hard limit: beyond it, writes fail with ENOSPC.
        size_bytes: u64,
        /// Huge pages (2 MiB): faster for few large files, wasteful for many small ones.
        huge: bool,
        /// Made in it.
        directories: Vec<PathBuf>,
    },
    /// A directory under a second path.
    Directory {
        /// Likewise.
        at: PathBuf,
        /// Made if missing.
        from: PathBuf,
    },
}

/// The process that holds a view. Dropping this does not end it.
#[derive(Debug)]
pub struct Keeper {
    identity: Identity,
    life: Option<PipeWriter>,
}

impl Keeper {
    /// Makes a view with these mounts; `scratch` is an empty directory of ours, to build in. The
    /// keeper ends with us, however we end, until [`Keeper::hold`] is called. We must not have started
    /// a thread yet.
    ///
    /// # Errors
    /// If this machine or its administrator does not allow it; nothing is left behind then.
    pub fn start(scratch: &Path, mounts: &[Mount]) -> Result<Self> {
        let view = Path::new("a private view of the file system");
        let one_thread = files::names_in(Path::new("/proc/self/task"))?.len() == 1;
        if !one_thread {
            let source = io::Error::other("a thread was started before");
            return on(Err::<Self, _>(source), "make", view);
        }
        let (life_reader, life) = on(io::pipe(), "make", view)?;
        let (mut report, report_writer) = on(io::pipe(), "make", view)?;
        // SAFETY: a fork of a process with one thread; all flags are 0, so nothing is shared. Signal 0
        // at its end keeps it out of wait(2), which must see the job's processes alone.
        let pid = unsafe { libc::syscall(libc::SYS_clone, 0, 0, 0, 0, 0) };
        if pid == 0 {
            drop((life, report));
            keep(scratch, mounts, life_reader, report_writer);
        }
        drop(report_writer);
        let pid = i32::try_from(pid).unwrap_or(-1);
        if pid < 0 {
            return on(Err(io::Error::last_os_error()), "make", view);
        }
        let mut said = String::new();
        let heard = report.read_to_string(&mut said);
        if heard.is_ok() && said == READY {
            let life = Some(life);
            let identity = Identity::of(pid)?;
            return Ok(Self { identity, life });
        }
        drop(life);
        reap(pid);
        on(heard.and(Err(io::Error::other(said))), "make", view)
    }

    /// From here on the keeper outlives us.
    pub fn pin(&mut self) -> Result<()> {
        let Some(mut life) = self.life.take() else {
            return Ok(());
        };
        let path = format!("process {}", self.identity.pid);
        on(life.write_all(b"h"), "keep", Path::new(&path))
    }

    /// The keeper's process.
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// Ends the keeper.
    pub fn end(self) {
        // It is our child and nobody else reaps it, so the number is still its.
        if let Some(pid) = rustix::process::Pid::from_raw(self.identity.pid) {
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).ok();
        }
        reap(self.identity.pid);
    }
}

const READY: &str = "ready";

/// Enters the view that a keeper holds, with no more rights than before. We must not have started a
/// thread yet. The working directory stays the same path.
pub fn enter(keeper: Identity) -> Result<()> {
    let here = crate::system::current_directory()?;
    let path = |name: &str| PathBuf::from(format!("/proc/{}/ns/{name}", keeper.pid));
    let (user, mounts) = (path("user"), path("mnt"));
    let open = |path: &Path| {
        let opened = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        on(opened, "open", path)
    };
    let (user_file, mounts_file) = (open(&user)?, open(&mounts)?);
    let same = |a: &Path, b: &str| Ok(files::read_link(a)? == files::read_link(Path::new(b))?);
    let own_user_namespace = !same(&user, "/proc/self/ns/user")?;
    let before = on(capabilities(None), "ask for the rights of", &here)?.effective;
    if own_user_namespace {
        let entered = move_into_link_name_space(
            std::os::fd::AsFd::as_fd(&user_file),
            Some(LinkNameSpaceType::User),
        );
        on(entered, "enter", &user)?;
    }
    let entered = move_into_link_name_space(
        std::os::fd::AsFd::as_fd(&mounts_file),
        Some(LinkNameSpaceType::Mount),
    );
    on(entered, "enter", &mounts)?;
    if own_user_namespace {
        give_up_rights(before)?;
    }
    on(rustix::process::chdir(&here), "change to", &here)
}

/// Can memory be mounted privately here? Leaves this process where it is: only for one that has
/// one thread and ends then.
///
/// # Errors
/// If this machine or its administrator does not allow it.
pub fn try_memory(huge: bool) -> Result<()> {
    isolate()?;
    // There is always a /proc, and nobody looks at it any more.
    mount_memory(Path::new("/proc"), 1 << 20, huge)
}

/// Takes a mount of the view away; what still uses it goes on. One that the job itself has taken away
/// is no error.
pub fn detach(at: &Path) -> Result<()> {
    match unmount(at, UnmountFlags::DETACH) {
        Err(rustix::io::Errno::INVAL) => Ok(()),
        done => on(done, "unmount", at),
    }
}

/// Whoever makes a user namespace has all rights in it. We keep the right to unmount; what we start
/// gets those that it would have had outside.
fn give_up_rights(before: CapabilitySet) -> Result<()> {
    let here = Path::new("this process");
    let ours = before | CapabilitySet::SYS_ADMIN;
    for lost in CapabilitySet::all() - before {
        // One that this kernel does not know cannot be given up, nor had.
        remove_capability_from_bounding_set(lost).ok();
    }
    let rights =
        CapabilitySets { effective: ours, permitted: ours, inheritable: CapabilitySet::empty() };
    on(set_capabilities(None, rights), "give up the rights of", here)
}

/// The keeper's life.
fn keep(scratch: &Path, mounts: &[Mount], mut life: PipeReader, mut report: PipeWriter) -> ! {
    // SAFETY: both only change this process, and get pointers to a valid set. With all signals blocked
    // no handler of our parent runs here, and only SIGKILL ends the keeper.
    unsafe {
        let mut all = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
    }
    let made = View::make(scratch, mounts);
    // `clean` knows keepers by this name, so it is set before anybody can record this one. It is short enough.
    let name = std::ffi::CString::new(KEEPER).unwrap_or_default();
    rustix::thread::set_name(&name).ok();
    let said = match &made {
        Ok(()) => READY.to_owned(),
        Err(error) => error.to_string(),
    };
    let mut order = [0];
    let stay = made.is_ok() && report.write_all(said.as_bytes()).is_ok();
    if !stay {
        report.write_all(said.as_bytes()).ok(); // our parent hears of it, or is gone
    }
    drop(report);
    if !stay || !matches!(life.read(&mut order), Ok(1)) {
        exit();
    }
    rustix::process::setsid().ok(); // no terminal is ours then; we lead no group, so it succeeds
    close_all();
    loop {
        std::thread::park();
    }
}

/// Nobody must wait for our end of one of these files.
fn close_all() {
    // SAFETY: no file is used any more.
    if unsafe { libc::close_range(0, libc::c_uint::MAX, 0) } == 0 {
        return;
    }
    // Before Linux 5.9.
    let names = files::names_in(Path::new("/proc/self/fd")).unwrap_or_default();
    for number in names.iter().filter_map(|name| name.to_str()?.parse().ok()) {
        // SAFETY: as above; one of the numbers is that of the listing itself, closed by now.
        unsafe { libc::close(number) };
    }
}

fn exit() -> ! {
    // SAFETY: ends this process without running what our parent has registered for its own end.
    unsafe { libc::_exit(0) }
}

fn reap(pid: i32) {
    // SAFETY: no pointer but null. It fails only if there is no such child.
    unsafe { libc::waitpid(pid, std::ptr::null_mut(), libc::__WALL) };
}

/// The mounts as they are made.
struct View<'a> {
    scratch: &'a Path,
    /// File systems that stand for real directories.
    stand_ins: Vec<PathBuf>,
    /// Those and what was made in them: new names here are not on the machine.
    ours: Vec<PathBuf>,
    /// What is shown there.
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
        on(mount_bind_recursive(&from, at), "show a directory as", at)
    }

    /// Makes a directory that is not on the machine.
    fn add(&mut self, at: &Path) -> Result<()> {
        let known = at.ancestors().find(|base| files::status(base).is_ok());
        let known = known.unwrap_or(Path::new("/"));
        let base = files::real_path(known)?;
        if self.shown.iter().any(|shown| base.starts_with(shown)) {
            let source =
                io::Error::other("it is itself shown there; make the directory in it first");
            return on(Err(source), "add a name to the view of", &base);
        }
        if !self.ours.contains(&base) {
            check_cover(&base)?;
            stand_in_for(&base, self.scratch)?;
            self.stand_ins.push(base.clone());
            self.ours.push(base.clone());
        }
        let at = base.join(at.strip_prefix(known).unwrap_or(at));
        self.ours.extend(files::make_directories(&at, 0o755)?);
        self.ours.retain(|path| *path != at); // the directory that is shown there is a real one
        Ok(())
    }

    /// A new name next to those that are shown would vanish with the view: an error is better.
    fn close(&self) -> Result<()> {
        let flags = MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV;
        self.stand_ins.iter().try_for_each(|path| {
            let closed = mount_remount(path, flags, c"");
            on(closed, "close to new names", path)
        })
    }
}

/// May a path that does not exist be shown? That takes its nearest existing directory, in which no new
/// names can be made then.
///
/// # Errors
/// If files are written there.
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
        return on(Err(source), "add a name to the view of", directory);
    }
    Ok(())
}

/// A mount namespace of our own; without the right to it, a user namespace around it.
fn isolate() -> Result<()> {
    let here = Path::new("this process");
    // SAFETY: neither flag touches memory or open files, and we have one thread.
    let alone = unsafe { unshare_unsafe(UnshareFlags::NEWNS) };
    if alone.is_err() {
        let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
        // SAFETY: as above.
        let unshared = unsafe { unshare_unsafe(UnshareFlags::NEWUSER | UnshareFlags::NEWNS) };
        on(unshared, "make a user namespace for", here)?;
        write("/proc/self/setgroups", "deny")?;
        write("/proc/self/uid_map", &format!("{user} {user} 1"))?;
        write("/proc/self/gid_map", &format!("{group} {group} 1"))?;
    }
    let root = Path::new("/");
    let slave = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    on(mount_change(root, slave), "keep apart the mounts of", root)
}

fn write(path: &str, text: &str) -> Result<()> {
    let path = Path::new(path);
    let file = std::fs::OpenOptions::new().write(true).open(path);
    on(file.and_then(|mut file| file.write_all(text.as_bytes())), "write to", path)
}

fn mount_memory(at: &Path, size_bytes: u64, huge: bool) -> Result<()> {
    let pages = if huge { "always" } else { "never" };
    let options = format!("size={size_bytes},mode=0700,huge={pages}");
    let options = std::ffi::CString::new(options).unwrap_or_default();
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    let mounted = mount(c"forebay", at, c"tmpfs", flags, Some(options.as_c_str()));
    on(mounted, "mount memory at", at)
}

/// Puts an empty file system over a directory and everything that was in the directory into it,
/// so that names can be added which the directory itself never gets.
fn stand_in_for(directory: &Path, new: &Path) -> Result<()> {
    let names = files::kinds_in(directory)?;
    if names.len() > ENTRIES_BOUND_MAX {
        let source = io::Error::other(format!("more than {ENTRIES_BOUND_MAX} names are in it"));
        return on(Err(source), "add a name to", directory);
    }
    // The new directory is built apart and moved to its place then.
    mount_memory(new, NAMES_BYTES, false)?;
    files::set_mode(new, 0o755)?;
    let unbindable = MountPropagationFlags::UNBINDABLE;
    on(mount_change(new, unbindable), "keep apart", new)?;
    for (name, kind) in names {
        stand_in(&directory.join(&name), kind, &new.join(&name))?;
    }
    if directory == Path::new("/") {
        on(rustix::process::chdir(new), "change to", new)?;
        on(rustix::process::pivot_root(".", "."), "replace", directory)?;
        return on(unmount(".", UnmountFlags::DETACH), "detach", directory);
    }
    on(mount_move(new, directory), "cover", directory)?;
    // In its place it may be shown elsewhere again.
    let apart = MountPropagationFlags::PRIVATE;
    on(mount_change(directory, apart), "keep apart", directory)
}

fn stand_in(old: &Path, kind: Kind, new: &Path) -> Result<()> {
    match kind {
        Kind::Link => return files::make_link(&files::read_link(old)?, new),
        Kind::Directory => files::make_directory(new, 0o755)?,
        Kind::File | Kind::Other => drop(files::make_file(new, 0o644)?),
    }
    on(mount_bind_recursive(old, new), "show", old)
}
