//! Checks the storage for allocations.
//! Never writes a file: it asks the kernel whether this user may.

use std::path::Path;

use forebay_host::mounts::{self, MountInfo};
use forebay_host::{disks, probe, system};
use forebay_store::{SHARED_MEMORY, Store};
use indicatif::HumanBytes;

use super::diagnosis::{Diagnosis, run_helper};
use super::node::mount_memory_privately;

/// Types of network file systems, as the kernel names them.
const NETWORK: [&str; 24] = [
    "9p",
    "afs",
    "beegfs",
    "ceph",
    "cifs",
    "cvfs",
    "dvs",
    "fhgfs",
    "fuse.beegfs",
    "fuse.ceph",
    "fuse.daos",
    "fuse.dfuse",
    "fuse.glusterfs",
    "fuse.juicefs",
    "fuse.sshfs",
    "gpfs",
    "lustre",
    "nfs",
    "nfs4",
    "panfs",
    "pvfs2",
    "smb3",
    "virtiofs",
    "wekafs",
];
/// The number of mounts that the text names.
const MOUNTS_SHOWN_MAX: usize = 8;

/// The store that a job would use.
pub fn store(named: Option<&Path>, site: Option<&Path>) -> Diagnosis {
    match usable(named, site) {
        Ok((found, consequence)) => Diagnosis::ok(found, consequence),
        Err(error) => {
            let remedy = if named.or(site).is_some() {
                "name a directory that exists and that you may write in: --store DIR, or the setting store"
            } else {
                "name a directory to use instead: --store DIR, or the setting store"
            };
            Diagnosis::missing(error.to_string(), "forebay run refuses every job", remedy)
        }
    }
}

fn usable(
    named: Option<&Path>,
    site: Option<&Path>,
) -> Result<(String, &'static str), forebay_store::Error> {
    let (store, _) = Store::choose(named, site)?;
    let has_view = match &store {
        Store::Directory { .. } => true,
        Store::Memory { huge } => mount_memory_privately(*huge).is_ok(),
    };
    match &store {
        Store::Directory { path, .. } => probe::check_write(path)?,
        Store::Memory { .. } if !has_view => probe::check_write(Path::new(SHARED_MEMORY))?,
        Store::Memory { .. } => {}
    }
    let capacity = HumanBytes(store.usable_bytes()?);
    Ok(match &store {
        Store::Memory { .. } if !has_view => (
            format!("{store}, in {SHARED_MEMORY} without a view of the job, up to {capacity}"),
            "its capacity is not enforced, and its data are lost with the node",
        ),
        Store::Memory { .. } => (
            format!("{store}, up to {capacity}"),
            "its data are lost with the node: stage out what is to last",
        ),
        Store::Directory { in_memory: true, .. } => (
            format!("{store}, in memory, up to {capacity}"),
            "its data are lost with the node: stage out what is to last",
        ),
        Store::Directory { .. } => (
            format!("{store}, up to {capacity}"),
            "its data survive a crash of the node as the file system keeps them",
        ),
    })
}

pub fn nvme() -> Diagnosis {
    let found = match disks::nvme_directories() {
        Ok(found) => found,
        Err(error) => {
            let consequence = "a store on a disk must be named";
            return Diagnosis::warn(error.to_string(), consequence, "mount /proc");
        }
    };
    if found.is_empty() {
        return Diagnosis::missing(
            "none that you may write to, apart from the system's",
            "where no store is named, it is memory",
            "name one on another fast disk: --store DIR, or the setting store",
        );
    }
    let shown = found.iter().map(|disk| {
        let free = HumanBytes(disk.available_bytes);
        let place = disk.directory.display();
        format!("{place} ({} on {}, {free} free)", disk.file_system, disk.device)
    });
    let consequence = "the first is the store, where none is named";
    Diagnosis::ok(shown.collect::<Vec<_>>().join(", "), consequence)
}

pub fn network_file_systems() -> Diagnosis {
    let mounts = match mounts::mounts() {
        Ok(mounts) => mounts,
        Err(error) => {
            let consequence = "it is not known what a burst buffer could gain here";
            return Diagnosis::warn(error.to_string(), consequence, "mount /proc");
        }
    };
    let found = network(&mounts);
    if found.is_empty() {
        let consequence = "files are local: little to gain; --pfs-model emulates a slow one";
        return Diagnosis::ok("none mounted", consequence);
    }
    let mut text = found[..found.len().min(MOUNTS_SHOWN_MAX)].join(", ");
    if found.len() > MOUNTS_SHOWN_MAX {
        text.push_str(&format!(" and {} more", found.len() - MOUNTS_SHOWN_MAX));
    }
    let consequence = "jobs with files there may gain: forebay compare JOB.sh measures it";
    Diagnosis::ok(text, consequence)
}

fn network(mounts: &[MountInfo]) -> Vec<String> {
    let across = mounts.iter().filter(|mount| NETWORK.contains(&mount.fs_type.as_str()));
    across.map(|mount| format!("{} on {}", mount.fs_type, mount.mount_point.display())).collect()
}

pub fn lfs() -> Diagnosis {
    let mounts = mounts::mounts().unwrap_or_default();
    let has_lustre = mounts.iter().any(|mount| mount.fs_type == "lustre");
    match (system::find_other_program("lfs"), has_lustre) {
        (Some(path), true) => match run_helper(&path, "--version") {
            Ok(found) => Diagnosis::ok(found, "scripts set and show how their files are striped"),
            Err(found) => Diagnosis::warn(
                found,
                "scripts cannot set how their files are striped",
                "install Lustre's client tools again",
            ),
        },
        (Some(path), false) => {
            Diagnosis::ok(path.display().to_string(), "not needed: no Lustre is mounted")
        }
        (None, true) => Diagnosis::missing(
            "no lfs in PATH, and Lustre is mounted",
            "scripts cannot set how their files are striped",
            "install Lustre's client tools (lustre-client, lustre-utils), or put lfs into PATH",
        ),
        (None, false) => Diagnosis::ok("none", "not needed: no Lustre is mounted"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_distinguished_from_local_ones() {
        let lines = [
            "1 0 254:0 / / rw - ext4 /dev/vda rw",
            "2 1 0:40 / /lustre rw - lustre 10.0.0.1@tcp:/fs rw",
            "3 1 0:41 / /home rw - nfs4 server:/home rw",
            "4 1 0:42 / /dev/shm rw - tmpfs tmpfs rw",
        ];
        let mounts: Vec<_> =
            lines.iter().filter_map(|line| MountInfo::from_line(line).ok()).collect();
        assert_eq!(network(&mounts), ["lustre on /lustre", "nfs4 on /home"]);
    }

    #[test]
    fn unusable_store_is_missing_and_has_a_remedy() {
        let none = store(Some(Path::new("/no/such")), None);
        assert_eq!(none.state, super::super::diagnosis::State::Missing);
        assert!(none.found.starts_with("cannot find /no/such"), "{}", none.found);
        assert!(none.remedy.is_some());
        let scratch = tempfile::tempdir().expect("tempdir");
        let some = store(Some(scratch.path()), None);
        let real = forebay_host::files::real_path(scratch.path()).expect("real");
        assert!(some.found.starts_with(&real.display().to_string()), "{}", some.found);
    }
}
