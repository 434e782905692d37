//! Finds the memory of the machine and the limit of the memory cgroup of this process (a
//! scheduler's job, a container). Files in a tmpfs count against both. The kernel kills processes
//! that exceed the limit of their cgroup.

use std::path::{Path, PathBuf};

use procfs_core::process::MountInfo;
use procfs_core::{FromRead, ProcessCGroup, ProcessCGroups};

use crate::cgroup::directories;
use crate::{Result, files, mounts, with_context};

/// The memory of the machine and of the cgroup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memory {
    /// Memory available without swapping (`MemAvailable`).
    pub available_bytes: u64,
    /// The total memory (`MemTotal`).
    pub total_bytes: u64,
    /// The cgroup limit with the least memory left; none if no limit is below the total memory.
    pub cgroup: Option<CgroupLimit>,
}

/// The limit of a memory cgroup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CgroupLimit {
    /// The directory of the cgroup.
    pub path: PathBuf,
    /// The maximum memory of all its processes.
    pub limit_bytes: u64,
    /// The limit minus the memory used. Cached files that the kernel can drop do not count as used.
    /// Files in a tmpfs do.
    pub free_bytes: u64,
}

/// File names and statistics of cgroup version 1 or 2. Only the names differ. The numbers include
/// all child groups.
struct Version {
    limit: &'static str,
    usage: &'static str,
    droppable: [&'static str; 2],
}

const V1: Version = Version {
    limit: "memory.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    droppable: ["total_active_file", "total_inactive_file"],
};
const V2: Version = Version {
    limit: "memory.max",
    usage: "memory.current",
    droppable: ["active_file", "inactive_file"],
};

/// The memory available to this process.
///
/// # Errors
/// If /proc is not mounted, or the kernel is older than Linux 3.14.
pub fn memory() -> Result<Memory> {
    let path = Path::new("/proc/meminfo");
    let text = files::read_to_string(path)?;
    let bytes = |name| {
        let missing = || std::io::Error::other(format!("it has no line {name}"));
        with_context(field_bytes(&text, name).ok_or_else(missing), "read", path)
    };
    let total_bytes = bytes("MemTotal")?;
    // A kernel without cgroups does not have this file.
    let groups = files::read_lossy(Path::new("/proc/self/cgroup")).unwrap_or_default();
    Ok(Memory {
        available_bytes: bytes("MemAvailable")?,
        total_bytes,
        cgroup: tightest(&groups, &mounts::mounts()?, total_bytes),
    })
}

/// A field of /proc/meminfo. The other fields differ between kernels and containers.
fn field_bytes(text: &str, name: &str) -> Option<u64> {
    let mut fields = text.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = fields.find(|(field, _)| *field == name)?;
    let kib: u64 = value.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// The limit with the least memory left. `groups` is the text of /proc/self/cgroup.
fn tightest(groups: &str, mounts: &[MountInfo], total_bytes: u64) -> Option<CgroupLimit> {
    let groups = ProcessCGroups::from_read(groups.as_bytes()).ok()?;
    let directories = groups.0.iter().filter_map(|group| {
        Some((version(group)?, directories(group, mounts).into_iter().next()?))
    });
    directories
        .flat_map(|(version, found)| found.into_iter().map(move |path| (version, path)))
        .filter_map(|(version, path)| limit(version, path))
        .filter(|found| found.limit_bytes < total_bytes)
        .min_by_key(|found| found.free_bytes)
}

/// The version of a hierarchy that limits memory; none for other hierarchies.
fn version(group: &ProcessCGroup) -> Option<&'static Version> {
    match group.hierarchy {
        0 => Some(&V2),
        _ if group.controllers.iter().any(|name| name == "memory") => Some(&V1),
        _ => None,
    }
}

/// The limit of one group; none if it has none.
fn limit(version: &Version, path: PathBuf) -> Option<CgroupLimit> {
    let read = |name| files::read_to_string(&path.join(name)).ok();
    let number = |name| read(name)?.trim().parse::<u64>().ok();
    let limit_bytes = number(version.limit)?; // "max" is no number
    let statistics = read("memory.stat").unwrap_or_default();
    let droppable_bytes: u64 = statistics
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter(|(name, _)| version.droppable.contains(name))
        .filter_map(|(_, value)| value.parse::<u64>().ok())
        .sum();
    let used_bytes = number(version.usage)?.saturating_sub(droppable_bytes);
    Some(CgroupLimit { path, limit_bytes, free_bytes: limit_bytes.saturating_sub(used_bytes) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOTAL: u64 = 1 << 30;

    /// Creates the files of a group, with the names of both versions.
    fn group(path: &Path, limit: &str, usage: u64, stat: &str) {
        std::fs::create_dir_all(path).expect("mkdir");
        for version in [V1, V2] {
            std::fs::write(path.join(version.limit), format!("{limit}\n")).expect("limit");
            std::fs::write(path.join(version.usage), format!("{usage}\n")).expect("usage");
        }
        std::fs::write(path.join("memory.stat"), stat).expect("stat");
    }

    fn mount(fields: &str, point: &Path, options: &str) -> String {
        format!("{fields} {} rw - {options}\n", point.display())
    }

    #[test]
    fn tightest_memory_limit_applies_and_page_cache_counts_as_free() {
        let scratch = tempfile::tempdir().expect("tempdir");
        let top = scratch.path().join("cgroup");
        let job = top.join("slurm/job_1");
        group(&top, "9223372036854771712", 5000, "");
        let stat = "active_file 1\ntotal_active_file 300\ntotal_inactive_file 100\nshmem 9\n";
        group(&top.join("slurm"), "1000", 900, stat);
        group(&job, "2000", 100, "");
        let mounts = mount("31 1 0:28 /", &top, "cgroup cgroup rw,memory");
        let mounts = crate::files::mount_table::parse(&mounts);
        let groups = "5:cpu:/x\n4:memory:/slurm/job_1\n0::/\n";
        let expected = CgroupLimit { path: top.join("slurm"), limit_bytes: 1000, free_bytes: 500 };
        assert_eq!(tightest(groups, &mounts, TOTAL), Some(expected));
        assert_eq!(tightest(groups, &mounts, 1000).map(|l| l.path), None);
        assert_eq!(tightest("4:cpu:/slurm\n", &mounts, TOTAL), None);
    }

    #[test]
    fn cgroup_path_in_a_container_is_relative_to_the_mount_root() {
        let scratch = tempfile::tempdir().expect("tempdir");
        let top = scratch.path().join("cgroup");
        group(&top, "4000", 1000, "active_file 500\n");
        group(&top.join("step"), "max", 10, "");
        let free = |root: &str, groups: &str| {
            let mounts = mount(&format!("31 1 0:28 {root}"), &top, "cgroup2 cgroup2 rw,nsdelegate");
            tightest(groups, &crate::files::mount_table::parse(&mounts), TOTAL)
                .map(|limit| limit.free_bytes)
        };
        assert_eq!(free("/docker/7", "0::/docker/7/step\n"), Some(3500));
        assert_eq!(free("/docker/7", "0::/docker/7\n"), Some(3500));
        assert_eq!(free("/", "0::/step\n"), Some(3500));
        // The group of another container does not count.
        assert_eq!(free("/docker/7", "0::/docker/77\n"), None);
        // In a cgroup namespace: the mount shows a parent group, or this process is outside.
        assert_eq!(free("/..", "0::/\n"), Some(3500));
        assert_eq!(free("/", "0::/../other\n"), None);
    }

    #[test]
    fn cgroup_version_with_the_memory_controller_is_used() {
        let scratch = tempfile::tempdir().expect("tempdir");
        let (first, second) = (scratch.path().join("1"), scratch.path().join("2"));
        group(&first.join("a"), "700", 600, "total_inactive_file 50\n");
        std::fs::create_dir_all(second.join("a")).expect("mkdir"); // no controller, so no files
        let mounts = mount("31 1 0:28 /", &first, "cgroup cgroup rw,memory")
            + &mount("32 1 0:29 /", &second, "cgroup2 cgroup2 rw");
        let found =
            tightest("4:memory:/a\n0::/a\n", &crate::files::mount_table::parse(&mounts), TOTAL);
        assert_eq!(found.map(|limit| limit.free_bytes), Some(150));
    }

    #[test]
    fn usage_beyond_the_limit_leaves_nothing() {
        let scratch = tempfile::tempdir().expect("tempdir");
        group(scratch.path(), "100", 500, "inactive_file nonsense\n");
        let found = limit(&V2, scratch.path().to_owned()).expect("limit");
        assert_eq!(found.free_bytes, 0);
    }

    #[test]
    fn short_meminfo_of_a_container_is_enough() {
        let text = "MemTotal:        2048 kB\nMemAvailable:  1024 kB\nHugePages_Total:  3\n";
        assert_eq!(field_bytes(text, "MemAvailable"), Some(1 << 20));
        assert_eq!(field_bytes(text, "MemFree"), None);
        assert_eq!(field_bytes(text, "HugePages_Total"), None);
    }

    #[test]
    fn this_machine_has_memory() {
        let found = memory().expect("memory");
        assert!(found.available_bytes > 0 && found.available_bytes <= found.total_bytes);
        assert!(found.cgroup.is_none_or(|l| l.limit_bytes < found.total_bytes));
    }
}
