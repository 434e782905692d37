//! Lists mounted file systems, and aborts and detaches FUSE mounts.
//! Assumes absolute paths. Links above a mount point are followed, and the mount point itself is none.
//! Never looks into a mount, which might not answer.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

pub use crate::files::mount_table::{MountInfo, mounts};

use std::time::Duration;

use crate::process::{command, run_captured};
use crate::{Result, files, users, with_context};

/// The time for `fusermount` to detach a mount.
const UNMOUNT_MAX: Duration = Duration::from_secs(10);

/// The numbers of the mounted file systems, as `stat(2)` gives them for most.
pub fn devices() -> Result<HashSet<u64>> {
    let number = |mount: MountInfo| {
        let (major, minor) = mount.majmin.split_once(':')?;
        Some(rustix::fs::makedev(major.parse().ok()?, minor.parse().ok()?))
    };
    Ok(mounts()?.into_iter().filter_map(number).collect())
}

/// Whether a file system is mounted at exactly this path.
pub fn is_mount_point(path: &Path) -> Result<bool> {
    Ok(mount_at(path)?.is_some())
}

/// The mount at this path. The kernel lists it without the links above it, which are only looked at if it is not found.
fn mount_at(path: &Path) -> Result<Option<MountInfo>> {
    let all = mounts()?;
    let at = |path: &Path| all.iter().find(|mount| mount.mount_point == path).cloned();
    Ok(at(path).or_else(|| {
        let above = files::real_path(path.parent()?).ok()?;
        at(&above.join(path.file_name()?))
    }))
}

/// Ends the connection of a FUSE mount to its daemon: all its operations fail with ENOTCONN, also those
/// that wait already. Does nothing for other mounts, or where the kernel does not show connections. True if it
/// is a FUSE mount.
pub fn abort_fuse(path: &Path) -> Result<bool> {
    let Some(mount) = mount_at(path)?.filter(|mount| mount.fs_type.starts_with("fuse")) else {
        return Ok(false);
    };
    let number = mount.majmin.split_once(':').map_or("", |(_, minor)| minor);
    let abort = PathBuf::from(format!("/sys/fs/fuse/connections/{number}/abort"));
    if files::status(&abort).is_ok() {
        with_context(std::fs::write(&abort, "1"), "write", &abort)?;
    }
    Ok(true)
}

/// Detaches a FUSE mount of this user. A mount that is gone already is no error.
pub fn detach_fuse(path: &Path) -> Result<()> {
    if !is_mount_point(path)? {
        return Ok(());
    }
    if users::is_root() {
        let flags = rustix::mount::UnmountFlags::DETACH;
        return with_context(rustix::mount::unmount(path, flags), "unmount", path);
    }
    for program in ["fusermount3", "fusermount"] {
        let mut helper = command(program);
        helper.args(["-u", "-z"]).arg(path);
        if run_captured(helper, UNMOUNT_MAX, &|| true).is_ok_and(|done| done.is_some())
            && !is_mount_point(path)?
        {
            return Ok(());
        }
    }
    with_context(Err(std::io::Error::other("fusermount did not detach it")), "unmount", path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_is_found_below_a_link() {
        let scratch = tempfile::tempdir().expect("tempdir");
        let link = scratch.path().join("link");
        files::make_link(Path::new("/"), &link).expect("link");
        let is_mounted = |name: &str| is_mount_point(&link.join(name)).expect("mounts");
        assert!(is_mounted("proc") && !is_mounted("none"));
        assert!(!is_mount_point(&link).expect("mounts"), "what it leads to is mounted elsewhere");
    }
}
