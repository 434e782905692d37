//! Finds fast local disks of this node.
//! Assumes /proc/self/mountinfo and sysfs. Never writes to a disk.

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use procfs_core::process::MountInfo;

use crate::{Result, files, filesystem, mounts, probe, users};

/// A writable directory on a local NVMe disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NvmeDirectory {
    /// The mount point of the file system.
    pub mount_point: PathBuf,
    /// The user's own directory on it, or else the mount point.
    pub directory: PathBuf,
    /// The type of the file system, such as ext4 or xfs.
    pub file_system: String,
    /// The mounted device.
    pub device: String,
    /// Free space for ordinary users.
    pub available_bytes: u64,
}

/// Directories of the system and home directories. Disks mounted in them are not used.
const SYSTEM_PLACES: [&str; 12] = [
    "/efi", "/etc", "/home", "/nix", "/opt", "/root", "/run", "/snap", "/srv", "/sys", "/usr",
    "/var",
];

/// The maximum depth of stacked device mapper and RAID devices.
const STACK_DEPTH_MAX: u32 = 8;

/// Writable directories on local NVMe disks that the system does not use, most free space first.
/// Does not find file systems without their own block device (Btrfs, ZFS, overlays).
pub fn nvme_directories() -> Result<Vec<NvmeDirectory>> {
    let user = users::user_name();
    Ok(find(&mounts::mounts()?, Path::new("/sys"), &user))
}

fn find(mounts: &[MountInfo], sysfs: &Path, user: &str) -> Vec<NvmeDirectory> {
    // A disk mounted twice counts once. A disk with a mount for the system does not count.
    let mut seen: HashSet<&str> = mounts
        .iter()
        .filter(|mount| is_system_place(&mount.mount_point))
        .map(|mount| mount.majmin.as_str())
        .collect();
    let mut found: Vec<_> = mounts
        .iter()
        .filter(|mount| !seen.contains(mount.majmin.as_str()))
        .filter(|mount| is_nvme(&sysfs.join("dev/block").join(&mount.majmin), 0))
        .filter_map(|mount| Some((mount, usable(mount, user)?)))
        .collect();
    found.retain(|(mount, _)| seen.insert(&mount.majmin));
    let mut found: Vec<_> = found.into_iter().map(|(_, directory)| directory).collect();
    found.sort_by_key(|directory| std::cmp::Reverse(directory.available_bytes));
    found
}

fn is_system_place(point: &Path) -> bool {
    let text = point.to_string_lossy();
    text == "/" || text.starts_with("/boot") || SYSTEM_PLACES.iter().any(|p| point.starts_with(p))
}

/// Whether this block device (a directory in sysfs) uses local NVMe disks only.
fn is_nvme(device: &Path, depth: u32) -> bool {
    let Ok(device) = files::real_path(device) else {
        return false;
    };
    if device.join("partition").exists() {
        return device.parent().is_some_and(|disk| is_nvme(disk, depth));
    }
    let below = files::names_in(&device.join("slaves")).unwrap_or_default();
    if !below.is_empty() {
        let all = |name| is_nvme(&device.join("slaves").join(name), depth + 1);
        return depth < STACK_DEPTH_MAX && below.iter().all(all);
    }
    let name = device.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("nvme") && is_local(&device.join("device"))
}

/// Whether no network connects the disk. `device` is the controller of the disk or, with several
/// paths, the subsystem with one link for each controller.
fn is_local(device: &Path) -> bool {
    let remote = |controller: &Path| {
        let transport = files::read_to_string(&controller.join("transport")).unwrap_or_default();
        matches!(transport.trim(), "tcp" | "rdma" | "fc" | "loop")
    };
    let parts = files::names_in(device).unwrap_or_default();
    !remote(device) && !parts.iter().any(|part| remote(&device.join(part)))
}

/// The user's directory on a mounted file system; none if nothing there is writable.
fn usable(mount: &MountInfo, user: &str) -> Option<NvmeDirectory> {
    let point = &mount.mount_point;
    let is_ours = |path: &PathBuf| {
        let found = path.metadata();
        found.is_ok_and(|found| found.is_dir() && found.uid() == users::user_id())
    };
    let of_user = Some(user).filter(|user| !user.is_empty() && !user.contains('/'));
    let own = of_user.map(|user| point.join(user)).filter(is_ours);
    let directory = own.unwrap_or_else(|| point.clone());
    (probe::check_write(&directory).is_ok() && directory.is_dir()).then_some(())?;
    Some(NvmeDirectory {
        available_bytes: filesystem::space(&directory).ok()?.available_bytes,
        mount_point: point.clone(),
        directory,
        file_system: mount.fs_type.clone(),
        device: mount.mount_source.clone().unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    /// A mock sysfs and mount points in a scratch directory.
    struct Machine {
        scratch: tempfile::TempDir,
        mountinfo: String,
    }

    impl Machine {
        fn new() -> Self {
            Self { scratch: tempfile::tempdir().expect("tempdir"), mountinfo: String::new() }
        }

        fn sysfs(&self) -> PathBuf {
            self.scratch.path().join("sys")
        }

        /// Creates a directory in devices/ with these files.
        fn device(&self, path: &str, number: &str, files: &[(&str, &str)]) {
            let directory = self.sysfs().join("devices").join(path);
            fs::create_dir_all(&directory).expect("mkdir");
            for (name, text) in files {
                let file = directory.join(name);
                fs::create_dir_all(file.parent().expect("parent")).expect("mkdir");
                fs::write(file, text).expect("write");
            }
            let numbers = self.sysfs().join("dev/block");
            fs::create_dir_all(&numbers).expect("mkdir");
            symlink(&directory, numbers.join(number)).expect("link");
        }

        fn stack(&self, upper: &str, lower: &[&str]) {
            let devices = self.sysfs().join("devices");
            let slaves = devices.join(upper).join("slaves");
            fs::create_dir_all(&slaves).expect("mkdir");
            for path in lower {
                let name = Path::new(path).file_name().expect("name");
                symlink(devices.join(path), slaves.join(name)).expect("link");
            }
        }

        fn mount(&mut self, number: &str, point: &str) -> PathBuf {
            let system = Path::new(point).is_absolute();
            let place = self.scratch.path().join(point); // join keeps an absolute path as it is
            if !system {
                fs::create_dir_all(&place).expect("mkdir");
            }
            let line = format!("9 1 {number} / {} rw - xfs /dev/{number} rw\n", place.display());
            self.mountinfo.push_str(&line);
            place
        }

        fn find(&self) -> Vec<NvmeDirectory> {
            find(&crate::files::mount_table::parse(&self.mountinfo), &self.sysfs(), "ada")
        }

        fn points(&self) -> Vec<PathBuf> {
            self.find().into_iter().map(|d| d.mount_point).collect()
        }
    }

    #[test]
    fn disks_partitions_and_stacks_are_found_and_other_disks_are_not() {
        let mut machine = Machine::new();
        let pcie: &[_] = &[("device/transport", "pcie\n")];
        machine.device("nvme0n1", "259:0", pcie);
        machine.device("nvme0n1/nvme0n1p2", "259:2", &[("partition", "2\n")]);
        machine.device("sda", "8:0", &[]);
        machine.device("sda/sda1", "8:1", &[("partition", "1\n")]);
        machine.device("dm-0", "253:0", &[]);
        machine.stack("dm-0", &["md0"]);
        machine.device("md0", "9:0", &[]);
        machine.stack("md0", &["nvme0n1/nvme0n1p2", "nvme0n1"]);
        machine.device("md1", "9:1", &[]);
        machine.stack("md1", &["nvme0n1", "sda/sda1"]);
        let expected = [
            machine.mount("259:0", "disk"),
            machine.mount("259:2", "partition"),
            machine.mount("253:0", "raid"),
        ];
        machine.mount("8:1", "slow");
        machine.mount("9:1", "mixed");
        machine.mount("0:44", "overlay");
        let mut found = machine.points();
        found.sort();
        let mut expected = expected.to_vec();
        expected.sort();
        assert_eq!(found, expected);
    }

    #[test]
    fn disk_behind_a_network_is_not_local() {
        let mut machine = Machine::new();
        machine.device("a/nvme1n1", "259:1", &[("device/transport", "tcp\n")]);
        machine.device("b/nvme2n1", "259:2", &[("device/nvme2/transport", "rdma\n")]);
        machine.device("c/nvme3n1", "259:3", &[("device/nvme3/transport", "pcie\n")]);
        machine.mount("259:1", "one");
        machine.mount("259:2", "two");
        let local = machine.mount("259:3", "three");
        assert_eq!(machine.points(), [local]);
    }

    #[test]
    fn system_disks_and_second_mounts_are_omitted() {
        let mut machine = Machine::new();
        for number in ["259:1", "259:2", "259:3"] {
            machine.device(&format!("{number}/nvme0n1"), number, &[]);
        }
        machine.mount("259:1", "/");
        machine.mount("259:1", "bound");
        machine.mount("259:2", "/boot/efi");
        let scratch = machine.mount("259:3", "scratch");
        machine.mount("259:3", "again");
        assert_eq!(machine.points(), [scratch]);
        for place in ["/home", "/usr/local", "/var/lib/snapd", "/boot2"] {
            assert!(is_system_place(Path::new(place)), "{place}");
        }
        for place in ["/scratch", "/local/home", "/homes", "/mnt"] {
            assert!(!is_system_place(Path::new(place)), "{place}");
        }
    }

    #[test]
    fn own_directory_of_the_user_is_preferred_and_files_are_refused() {
        let mut machine = Machine::new();
        machine.device("nvme0n1", "259:0", &[]);
        machine.device("x/nvme1n1", "259:1", &[]);
        let point = machine.mount("259:0", "scratch");
        let file = machine.mount("259:1", "resolv.conf");
        fs::remove_dir(&file).expect("rmdir");
        fs::write(&file, "bound into a container").expect("write");
        fs::create_dir(point.join("ada")).expect("mkdir");
        let found = machine.find();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].directory, point.join("ada"));
        assert_eq!(found[0].mount_point, point);
        assert_eq!(
            (found[0].file_system.as_str(), found[0].device.as_str()),
            ("xfs", "/dev/259:0")
        );
        assert!(found[0].available_bytes > 0);
    }
}
