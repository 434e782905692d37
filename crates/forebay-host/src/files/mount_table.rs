//! Lists what is mounted. Never looks into a mount, which might not answer.

use std::io;
use std::path::{Path, PathBuf};

pub use procfs_core::process::MountInfo;

use super::read::read_lossy;
use super::resolve::parent_of;
use super::{printable, real_path};
use crate::{Result, with_context};

/// The mounts that this process sees, in the kernel's order. Leaves out covered mounts, and decodes
/// blanks and special characters in names.
pub fn mounts() -> Result<Vec<MountInfo>> {
    Ok(parse(&read_lossy(Path::new("/proc/self/mountinfo"))?))
}

/// The mounts below a directory. Links above the directory are followed.
pub(crate) fn mounts_below(directory: &Path) -> Result<Vec<PathBuf>> {
    let real = match directory.file_name() {
        Some(name) => real_path(parent_of(directory))?.join(name),
        None => real_path(directory)?,
    };
    let points = mounts()?.into_iter().map(|mount| mount.mount_point);
    Ok(points.filter(|at| *at != real && at.starts_with(&real)).collect())
}

/// Fails if something is mounted below a directory that is to be removed.
pub fn refuse_mounts_below(directory: &Path) -> Result<()> {
    let Some(at) = mounts_below(directory)?.pop() else {
        return Ok(());
    };
    let why = format!("something is mounted at {}, unmount it first", printable(&at));
    with_context(Err(io::Error::new(io::ErrorKind::ResourceBusy, why)), "remove", directory)
}

/// Parses text in the format of /proc/self/mountinfo. Skips lines that do not parse.
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

/// Decodes blank, tab, line feed and backslash, which the kernel writes as three octal digits.
fn decoded(name: &str) -> String {
    let codes = [(r"\040", " "), (r"\011", "\t"), (r"\012", "\n")];
    let mut name = name.to_owned();
    for (code, character) in codes {
        name = name.replace(code, character);
    }
    name.replace(r"\134", r"\") // last, because the result may contain other codes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn covered_mounts_are_omitted_and_names_decoded() {
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
}
