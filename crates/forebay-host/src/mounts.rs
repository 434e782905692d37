//! What is mounted where.

use std::path::{Path, PathBuf};

pub use procfs_core::process::MountInfo;

use crate::{Result, files};

/// The mounts this process sees, in the kernel's order, without those that another one at the same
/// place covers. Blanks and the like in mount points are decoded.
pub fn mounts() -> Result<Vec<MountInfo>> {
    Ok(parse(&files::read_lossy(Path::new("/proc/self/mountinfo"))?))
}

/// The mounts of a text in the form of /proc/self/mountinfo. A line that is not understood is
/// passed over: it must not hide the others.
pub(crate) fn parse(text: &str) -> Vec<MountInfo> {
    let lines = text.lines();
    let mut all: Vec<_> = lines.filter_map(|line| MountInfo::from_line(line).ok()).collect();
    for mount in &mut all {
        mount.mount_point = PathBuf::from(decoded(&mount.mount_point.to_string_lossy()));
        mount.root = decoded(&mount.root);
        mount.mount_source = mount.mount_source.as_deref().map(decoded);
    }
    let covers = |upper: &MountInfo, lower: &MountInfo| {
        upper.pid == lower.mnt_id
            && upper.mnt_id != lower.mnt_id
            && upper.mount_point == lower.mount_point
    };
    let covered: Vec<_> =
        all.iter().map(|lower| all.iter().any(|upper| covers(upper, lower))).collect();
    let mut covered = covered.into_iter();
    all.retain(|_| !covered.next().unwrap_or(false));
    all
}

/// The kernel writes blank, tab, line feed and backslash as a backslash and three octal digits.
fn decoded(name: &str) -> String {
    let codes = [(r"\040", " "), (r"\011", "\t"), (r"\012", "\n")];
    let mut name = name.to_owned();
    for (code, character) in codes {
        name = name.replace(code, character);
    }
    name.replace(r"\134", r"\") // last: it may make what looks like a code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn covered_mounts_are_left_out_and_names_decoded() {
        let text = r"25 24 0:23 / /dev/shm rw,relatime - tmpfs tmpfs rw,size=24684092k
not a line of the kernel's
27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 25 0:27 / /dev/shm rw,relatime - tmpfs none rw,size=1k
31 27 0:28 /a\040b /mnt/my\040disk\134040 rw - xfs /dev/vdb rw
";
        let found = parse(text);
        let points: Vec<_> = found.iter().map(|m| m.mount_point.clone()).collect();
        let expected = ["/", "/dev/shm", r"/mnt/my disk\040"].map(PathBuf::from);
        assert_eq!(points, expected);
        assert_eq!((found[1].mnt_id, found[2].root.as_str()), (30, "/a b"));
    }

    #[test]
    fn this_machine_has_a_root() {
        let found = mounts().expect("mounts");
        assert!(found.iter().any(|m| m.mount_point == Path::new("/")));
    }
}
