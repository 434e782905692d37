//! What kind of file system holds a path, and how much room it has. Numbers of types are those of statfs(2).

use std::os::fd::AsFd;
use std::path::Path;

use libc::{
    BTRFS_SUPER_MAGIC, EXT4_SUPER_MAGIC, F2FS_SUPER_MAGIC, OVERLAYFS_SUPER_MAGIC, TMPFS_MAGIC,
    XFS_SUPER_MAGIC,
};

use crate::{Result, files, mounts, on};

// Of linux/magic.h and the file systems' own headers; libc has no names for them.
const RAMFS_MAGIC: i64 = 0x8584_58f6;
const ZFS_SUPER_MAGIC: i64 = 0x2fc1_2fc1;
const BCACHEFS_SUPER_MAGIC: i64 = 0xca45_1a4e;
const LUSTRE_SUPER_MAGIC: i64 = 0x0bd0_0bd0;

/// File systems that one machine alone mounts. Others may be mounted by several machines, and may hide a lock from
/// all but one (Lustre with `localflock`, NFS with `local_lock`), which cannot be queried.
const SINGLE_MACHINE: [i64; 9] = [
    EXT4_SUPER_MAGIC,
    XFS_SUPER_MAGIC,
    BTRFS_SUPER_MAGIC,
    F2FS_SUPER_MAGIC,
    OVERLAYFS_SUPER_MAGIC,
    TMPFS_MAGIC,
    RAMFS_MAGIC,
    ZFS_SUPER_MAGIC,
    BCACHEFS_SUPER_MAGIC,
];

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
pub fn space(path: &Path) -> Result<Space> {
    let found = on(rustix::fs::statvfs(path), "measure the space of", path)?;
    Ok(Space {
        available_bytes: found.f_bavail.saturating_mul(found.f_frsize),
        total_bytes: found.f_blocks.saturating_mul(found.f_frsize),
        available_files: (found.f_files > 0).then_some(found.f_favail),
    })
}

/// Is `path` in memory (tmpfs or ramfs)?
pub fn is_in_memory(path: &Path) -> Result<bool> {
    Ok([TMPFS_MAGIC, RAMFS_MAGIC].contains(&type_of_path(path)?))
}

/// Is `path` on a file system that this machine alone mounts, so that its processes share memory and locks there?
pub fn is_single_machine(path: &Path) -> bool {
    type_of_path(path).is_ok_and(|kind| SINGLE_MACHINE.contains(&kind))
}

/// As [`is_single_machine`], for an open file or directory; `path` only names it in errors.
pub fn is_single_machine_file(file: impl AsFd, path: &Path) -> Result<bool> {
    let found = rustix::fs::fstatfs(file);
    let found = on(found, "ask for the file system of", path)?;
    Ok(SINGLE_MACHINE.contains(&type_of(found)))
}

/// Is a path that exists on Lustre?
pub fn is_lustre(path: &Path) -> bool {
    type_of_path(path).is_ok_and(|kind| kind == LUSTRE_SUPER_MAGIC)
}

fn type_of_path(path: &Path) -> Result<i64> {
    on(rustix::fs::statfs(path), "ask for the file system of", path).map(type_of)
}

#[allow(clippy::unnecessary_cast)] // its type differs between machines
fn type_of(found: rustix::fs::StatFs) -> i64 {
    found.f_type as i64
}

/// Type and mount point of the file system that holds the current directory, as `ext4 on /home`.
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
