//! What this machine is.

use std::path::{Path, PathBuf};

use crate::{Result, files, mounts, on, sharing};

/// Space of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// What an ordinary user may still write, in bytes.
    pub available_bytes: u64,
    /// All of it, in bytes.
    pub total_bytes: u64,
    /// Files that an ordinary user may still make; none where only bytes are limited.
    pub available_files: Option<u64>,
}

/// Space of the file system that holds `path`.
///
/// # Errors
/// If `path` does not exist or cannot be asked.
pub fn space(path: &Path) -> Result<Space> {
    let found = on(rustix::fs::statvfs(path), "measure the space of", path)?;
    Ok(Space {
        available_bytes: found.f_bavail.saturating_mul(found.f_frsize),
        total_bytes: found.f_blocks.saturating_mul(found.f_frsize),
        available_files: (found.f_files > 0).then_some(found.f_favail),
    })
}

/// Does `path` lie in memory (tmpfs or ramfs)?
///
/// # Errors
/// If `path` does not exist or cannot be asked.
pub fn is_in_memory(path: &Path) -> Result<bool> {
    const TMPFS_MAGIC: u64 = 0x0102_1994; // linux/magic.h
    const RAMFS_MAGIC: u64 = 0x8584_58f6;
    let found = on(rustix::fs::statfs(path), "ask for the file system of", path)?;
    let kind = u64::try_from(found.f_type).unwrap_or(0);
    Ok(kind == TMPFS_MAGIC || kind == RAMFS_MAGIC)
}

/// Type and mount point of the file system that holds the current directory, as `ext4 on /home`.
///
/// # Errors
/// If /proc is not mounted.
pub fn file_system_here() -> Result<String> {
    let here = files::real_path(Path::new("."))?;
    // The last of the longest mount points wins: a later mount covers an earlier one.
    let mounts = mounts::mounts()?.into_iter();
    let found = mounts
        .filter(|mount| here.starts_with(&mount.mount_point))
        .max_by_key(|mount| mount.mount_point.as_os_str().len());
    Ok(found.map_or_else(
        || "unknown".to_owned(),
        |mount| format!("{} on {}", mount.fs_type, mount.mount_point.display()),
    ))
}

/// Number of processors this process may use, at least 1.
#[must_use]
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// The machine's name.
#[must_use]
pub fn hostname() -> String {
    let name = rustix::system::uname();
    name.nodename().to_string_lossy().into_owned()
}

/// Differs after each start of the machine.
///
/// # Errors
/// If /proc is not mounted.
pub fn boot_id() -> Result<String> {
    let text = files::read_to_string(Path::new("/proc/sys/kernel/random/boot_id"))?;
    Ok(text.trim().to_owned())
}

/// The namespace in which process numbers count.
///
/// # Errors
/// If /proc is not mounted.
pub fn pid_namespace() -> Result<String> {
    let name = files::read_link(Path::new("/proc/self/ns/pid"))?;
    Ok(name.to_string_lossy().into_owned())
}

/// May we give files to everybody, as root may?
#[must_use]
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Groups that we may give our files to.
#[must_use]
pub fn groups() -> Vec<u32> {
    let mut groups = rustix::process::getgroups().unwrap_or_default();
    groups.push(rustix::process::getegid());
    groups.into_iter().map(rustix::fs::Gid::as_raw).collect()
}

/// Number of this process.
#[must_use]
pub fn process_id() -> u32 {
    std::process::id()
}

/// Number of the user.
#[must_use]
pub fn user_id() -> u32 {
    rustix::process::getuid().as_raw()
}

/// Name of the user: `$USER`, else `$LOGNAME`, else what the name services know, else the number.
#[must_use]
pub fn user_name() -> String {
    let name = std::env::var("USER").or_else(|_| std::env::var("LOGNAME"));
    name.unwrap_or_else(|_| sharing::user_named(user_id()))
}

/// The current directory as the shell shows it: `$PWD` if that is right, else the real path.
///
/// # Errors
/// If the current directory was removed.
pub fn current_directory() -> Result<PathBuf> {
    let real = on(
        std::env::current_dir(),
        "find",
        Path::new("the current directory"),
    )?;
    let shown = std::env::var_os("PWD").map(PathBuf::from);
    let same = |path: &PathBuf| path.is_absolute() && path.canonicalize().is_ok_and(|p| p == real);
    Ok(shown.filter(same).unwrap_or(real))
}

/// The program that runs.
///
/// # Errors
/// If it was removed while running.
pub fn this_program() -> Result<PathBuf> {
    on(std::env::current_exe(), "find", Path::new("/proc/self/exe"))
}

/// The program's directory, all links resolved.
///
/// # Errors
/// If it was removed while running.
pub fn program_directory() -> Result<PathBuf> {
    let program = this_program()?;
    let real = on(program.canonicalize(), "find", &program)?;
    Ok(real.parent().map_or_else(PathBuf::new, Path::to_path_buf))
}

/// The first executable file `name` in `$PATH` that is not this program itself under that name.
#[must_use]
pub fn find_other_program(name: &str) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let path = std::env::var_os("PATH")?;
    let this = this_program().ok()?;
    std::env::split_paths(&path)
        .map(|directory| directory.join(name))
        .filter(|file| file.canonicalize().is_ok_and(|real| real != this))
        .find(|file| {
            file.metadata()
                .is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
        })
}
