//! Finds the directories of the cgroups of this process.

use std::path::{Component, Path, PathBuf};

use procfs_core::process::MountInfo;
use procfs_core::{FromRead, ProcessCGroup, ProcessCGroups};

use crate::process::CGROUP_PROCESSES;
use crate::{Result, files, mounts, with_context};

/// The directory of the cgroup of version 2 that this process is in.
///
/// # Errors
/// If the kernel has no such cgroups, or no mount shows that of this process.
pub fn of_this_process() -> Result<PathBuf> {
    let path = Path::new("/proc/self/cgroup");
    let groups = ProcessCGroups::from_read(files::read_lossy(path)?.as_bytes());
    let groups = with_context(groups.map_err(std::io::Error::other), "read", path)?;
    let mounts = mounts::mounts()?;
    let ours = groups.0.iter().find(|group| group.hierarchy == 0);
    let shown = ours.into_iter().flat_map(|group| directories(group, &mounts));
    // A mount may be covered by another one, or show the cgroup of other processes.
    let holds_us = |directory: &PathBuf| {
        let processes = files::read_lossy(&directory.join(CGROUP_PROCESSES)).unwrap_or_default();
        processes.lines().any(|line| line == std::process::id().to_string())
    };
    let found = shown.filter_map(|found| found.into_iter().next()).find(holds_us);
    let hidden = || std::io::Error::other("no mount of cgroup2 shows it");
    with_context(found.ok_or_else(hidden), "find the cgroup of", path)
}

/// The group's directory and its ancestors up to the mount point, in each mount that shows it.
pub(crate) fn directories(group: &ProcessCGroup, mounts: &[MountInfo]) -> Vec<Vec<PathBuf>> {
    let holds = |mount: &&MountInfo| match group.hierarchy {
        0 => mount.fs_type == "cgroup2",
        _ => mount.fs_type == "cgroup" && mount.super_options.contains_key("memory"),
    };
    let below_mount = |mount: &MountInfo| {
        let below = below_root(Path::new(&group.pathname), Path::new(&mount.root))?;
        let deepest = mount.mount_point.join(below);
        let on_the_way = deepest.ancestors();
        let mounted = on_the_way.take_while(|path| path.starts_with(&mount.mount_point));
        Some(mounted.map(Path::to_path_buf).collect())
    };
    mounts.iter().filter(holds).filter_map(below_mount).collect()
}

/// The group's path below the root of a mount. In a container, that root is rarely the root of the
/// hierarchy. A mount may show a group above the cgroup namespace (`/..`): then only the limits of
/// that group are known to apply.
fn below_root<'a>(group: &'a Path, root: &Path) -> Option<&'a Path> {
    let above = |part| matches!(part, Component::RootDir | Component::ParentDir);
    match group.strip_prefix(root) {
        Ok(below) if !below.components().any(|part| part == Component::ParentDir) => Some(below),
        _ if root != Path::new("/") && root.components().all(above) => Some(Path::new("")),
        _ => None,
    }
}
