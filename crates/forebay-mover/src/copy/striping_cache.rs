//! Caches the answers of `lfs`: one query for each directory.
//! Assumes that layouts do not change during the run. Other threads wait for a query, at most 10 seconds.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use forebay_host::{filesystem, lustre};
use parking_lot::Mutex;

/// Number of stripes from a file size on, the largest first; `docs/explanation/staging.md` explains them.
/// Lustre uses all its targets if it has fewer.
const STRIPES: [(u64, u32); 4] = [(1 << 40, 72), (100 << 30, 24), (10 << 30, 8), (1 << 30, 4)];

/// Output of `lfs` for a directory without a set layout: `lfs-getstripe(1)`, `--raw`.
const UNSET: &str = "stripe_count: 0 stripe_size: 0 ";

/// Markers of other layouts: components, pools of targets.
const NOT_PLAIN: [&str; 2] = ["lcm_", "pool:"];

/// Who decides the layout of files in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LayoutOwner {
    /// No layout is set: Forebay decides.
    Forebay,
    /// The user or the administrator set it, or the directory is not on Lustre.
    Others,
    /// The query failed, with the reason.
    Unknown(String),
}

/// Cached answers of `lfs` for directories that receive large files.
#[derive(Default)]
pub(crate) struct Striping {
    directories: Mutex<HashMap<PathBuf, LayoutOwner>>,
}

impl Striping {
    pub(crate) fn of(&self, directory: &Path, should_continue: &dyn Fn() -> bool) -> LayoutOwner {
        let mut known = self.directories.lock();
        let asked = known.get(directory).cloned();
        asked.unwrap_or_else(|| {
            let owner = query(directory, should_continue);
            known.insert(directory.to_owned(), owner.clone());
            owner
        })
    }
}

/// Number of stripes for a file of this size; `None`: the default of its directory.
pub(crate) fn stripes(size_bytes: u64) -> Option<u32> {
    let found = STRIPES.iter().find(|(from, _)| size_bytes >= *from);
    found.map(|(_, stripes)| *stripes)
}

fn query(directory: &Path, should_continue: &dyn Fn() -> bool) -> LayoutOwner {
    let is_lustre = filesystem::is_lustre(directory);
    if !is_lustre && !lustre::is_emulated() {
        return LayoutOwner::Others;
    }
    let words = ["getstripe", "-d", "--raw"].map(OsStr::new);
    match lustre::lfs(&[&words[..], &[directory.as_os_str()]].concat(), should_continue) {
        Ok(output) => parse_layout(&output, is_lustre),
        Err(error) => LayoutOwner::Unknown(error.to_string()),
    }
}

fn parse_layout(output: &str, is_lustre: bool) -> LayoutOwner {
    let words: Vec<_> = output.split_whitespace().collect();
    let output = words.join(" ");
    if output.is_empty() && is_lustre {
        return LayoutOwner::Unknown("lfs getstripe does not answer".to_owned());
    }
    // An empty answer means that the emulation does not cover the directory.
    if output.contains(UNSET) && !NOT_PLAIN.iter().any(|more| output.contains(more)) {
        return LayoutOwner::Forebay;
    }
    LayoutOwner::Others
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stripes_grow_with_the_file() {
        const GIB: u64 = 1 << 30;
        let sizes = [GIB - 1, GIB, 10 * GIB - 1, 10 * GIB, 100 * GIB, 1024 * GIB, u64::MAX];
        let wanted = [None, Some(4), Some(4), Some(8), Some(24), Some(72), Some(72)];
        assert_eq!(sizes.map(stripes), wanted);
    }

    /// The outputs have the format of lfs-getstripe(1) in Lustre 2.12 and 2.15.
    #[test]
    fn striping_set_by_the_user_is_kept() {
        let unset = "/d\nstripe_count:  0 stripe_size:   0 pattern:       0 stripe_offset: -1\n";
        assert_eq!(parse_layout(unset, true), LayoutOwner::Forebay);
        let one = unset.replace("count:  0", "count:  1");
        assert_eq!(parse_layout(&one, true), LayoutOwner::Others);
        let all = unset.replace("count:  0", "count:  -1");
        assert_eq!(parse_layout(&all, true), LayoutOwner::Others);
        let size = unset.replace("size:   0", "size:   4194304");
        assert_eq!(parse_layout(&size, true), LayoutOwner::Others);
        let pool = unset.replace("-1\n", "-1 pool:          flash\n");
        assert_eq!(parse_layout(&pool, true), LayoutOwner::Others);
        let progressive = "/d\n  lcm_layout_gen:    0\n  lcm_mirror_count:  1\n  lcm_entry_count:   2\n\
                           \x20   lcme_extent.e_end:   1073741824\n      stripe_count:  0       stripe_size:   0       pattern:       mdt\n";
        assert_eq!(parse_layout(progressive, true), LayoutOwner::Others);
        assert!(matches!(parse_layout("", true), LayoutOwner::Unknown(_)));
        assert_eq!(parse_layout("", false), LayoutOwner::Others, "the emulation does not cover it");
    }
}
