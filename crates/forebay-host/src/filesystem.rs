//! Finds the type and the free space of file systems. Types are numbers as in statfs(2).
//! Never takes an unknown type for a file system that only one machine mounts.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;

use libc::{
    BTRFS_SUPER_MAGIC, EXT4_SUPER_MAGIC, F2FS_SUPER_MAGIC, OVERLAYFS_SUPER_MAGIC, TMPFS_MAGIC,
    XFS_SUPER_MAGIC,
};

use crate::{Result, files, mounts, with_context};

// From linux/magic.h and headers of the file systems; libc does not define them.
const RAMFS_MAGIC: i64 = 0x8584_58f6;
const ZFS_SUPER_MAGIC: i64 = 0x2fc1_2fc1;
const BCACHEFS_SUPER_MAGIC: i64 = 0xca45_1a4e;
const FUSE_SUPER_MAGIC: i64 = 0x6573_5546;
const LUSTRE_SUPER_MAGIC: i64 = 0x0bd0_0bd0;

/// File systems that only one machine mounts. On others, a lock may be invisible to other machines
/// (Lustre with `localflock`, NFS with `local_lock`), and no query shows that.
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

/// File systems that show the state of the kernel, and store nothing.
const KERNEL_STATE: [i64; 9] = [
    libc::PROC_SUPER_MAGIC,
    libc::SYSFS_MAGIC,
    libc::CGROUP_SUPER_MAGIC,
    libc::CGROUP2_SUPER_MAGIC,
    libc::DEBUGFS_MAGIC,
    libc::TRACEFS_MAGIC,
    libc::SECURITYFS_MAGIC,
    libc::BPF_FS_MAGIC,
    libc::DEVPTS_SUPER_MAGIC,
];

/// Space of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// Free space for ordinary users, in bytes.
    pub available_bytes: u64,
    /// The total size, in bytes.
    pub total_bytes: u64,
    /// The number of files that an ordinary user can still create; none if there is no limit.
    pub available_files: Option<u64>,
}

/// The space of the file system that holds `path`.
pub fn space(path: &Path) -> Result<Space> {
    let found = with_context(rustix::fs::statvfs(path), "measure the space of", path)?;
    Ok(Space {
        available_bytes: found.f_bavail.saturating_mul(found.f_frsize),
        total_bytes: found.f_blocks.saturating_mul(found.f_frsize),
        available_files: (found.f_files > 0).then_some(found.f_favail),
    })
}

/// Blocks that a full file system may still have: some keep a few for their own records.
const BLOCKS_LEFT_IF_FULL: u64 = 16;

/// Is the file system that holds `path` full for this user: are there no blocks or no inodes left?
pub fn is_full(path: &Path) -> Result<bool> {
    let found = with_context(rustix::fs::statvfs(path), "measure the space of", path)?;
    let is_root = rustix::process::geteuid().is_root();
    let (blocks, inodes) = match is_root {
        true => (found.f_bfree, found.f_ffree),
        false => (found.f_bavail, found.f_favail),
    };
    let is_limited = found.f_blocks > BLOCKS_LEFT_IF_FULL;
    Ok(is_limited && blocks < BLOCKS_LEFT_IF_FULL || found.f_files > 0 && inodes == 0)
}

/// Is `path` in a file system that only shows the kernel's state (proc, sysfs, cgroup and the like)?
pub fn is_of_kernel(path: &Path) -> Result<bool> {
    Ok(KERNEL_STATE.contains(&type_of_path(path)?))
}

/// Is `path` in memory (tmpfs, ramfs or hugetlbfs)?
pub fn is_in_memory(path: &Path) -> Result<bool> {
    Ok([TMPFS_MAGIC, RAMFS_MAGIC, libc::HUGETLBFS_MAGIC].contains(&type_of_path(path)?))
}

/// Is the open file on FUSE? The kernel passes syncfs(2) on to few of its servers.
pub fn is_fuse(file: &File, path: &Path) -> Result<bool> {
    let found = with_context(rustix::fs::fstatfs(file), "ask for the file system of", path)?;
    Ok(type_of(found) == FUSE_SUPER_MAGIC)
}

/// Whether only this machine mounts the file system of `path`, so that all its users share locks.
pub fn is_single_machine(path: &Path) -> bool {
    type_of_path(path).is_ok_and(|kind| SINGLE_MACHINE.contains(&kind))
}

/// As [`is_single_machine`], for an open file. `path` only names it in errors.
pub fn is_single_machine_file(file: impl AsFd, path: &Path) -> Result<bool> {
    let found = rustix::fs::fstatfs(file);
    let found = with_context(found, "ask for the file system of", path)?;
    Ok(SINGLE_MACHINE.contains(&type_of(found)))
}

/// Whether an existing path is on Lustre.
pub fn is_lustre(path: &Path) -> bool {
    type_of_path(path).is_ok_and(|kind| kind == LUSTRE_SUPER_MAGIC)
}

fn type_of_path(path: &Path) -> Result<i64> {
    with_context(rustix::fs::statfs(path), "ask for the file system of", path).map(type_of)
}

#[allow(clippy::unnecessary_cast)] // its type differs between architectures
fn type_of(found: rustix::fs::StatFs) -> i64 {
    found.f_type as i64
}

/// The type and mount point of the current directory's file system, such as `ext4 on /home`.
pub fn file_system_here() -> Result<String> {
    let here = files::real_path(Path::new("."))?;
    // For equal lengths the last one counts: a later mount covers an earlier one.
    let mounts = mounts::mounts()?.into_iter();
    let found = mounts
        .filter(|mount| here.starts_with(&mount.mount_point))
        .max_by_key(|mount| mount.mount_point.as_os_str().len());
    Ok(found.map_or_else(
        || "unknown".to_owned(),
        |mount| format!("{} on {}", mount.fs_type, mount.mount_point.display()),
    ))
}
