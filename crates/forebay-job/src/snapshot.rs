//! Restores an allocation to its state after stage-in.
//!
//! Compares only metadata: a file is unchanged if its inode number, size, modification time and
//! change time are. Programs cannot set the change time. Writes through a memory mapping may change
//! none of them (mmap(2)).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use forebay_host::files::{self, Kind, Status};

use crate::Error;

/// The files of an allocation with their status.
pub(crate) struct Snapshot {
    root: PathBuf,
    /// By full path, including the root; parents precede children.
    found: BTreeMap<PathBuf, Status>,
}

impl Snapshot {
    /// Reads the status of all files in the allocation.
    ///
    /// # Errors
    /// If a status cannot be read.
    pub(crate) fn of(root: &Path) -> Result<Self, Error> {
        let mut found = BTreeMap::new();
        let mut open = vec![root.to_owned()];
        while let Some(path) = open.pop() {
            let status = files::status_of_name(&path)?;
            if status.kind == Kind::Directory {
                let names = files::names_in(&path)?;
                open.extend(names.into_iter().map(|name| path.join(name)));
            }
            found.insert(path, status);
        }
        let root = root.to_owned();
        Ok(Self { root, found })
    }

    /// Removes new and changed files, and creates missing directories. Returns the files and links
    /// to be staged in again.
    ///
    /// # Errors
    /// If something is mounted in the allocation, or cannot be removed or created.
    pub(crate) fn revert(&self) -> Result<BTreeSet<PathBuf>, Error> {
        files::refuse_mounts_below(&self.root)?;
        let mut gone: BTreeSet<_> = self.found.keys().cloned().collect();
        let mut open = vec![self.root.clone()];
        while let Some(directory) = open.pop() {
            gone.remove(&directory);
            // Without these permissions its contents cannot be read or removed.
            if files::status(&directory)?.mode & 0o700 != 0o700 {
                files::set_mode(&directory, 0o700)?;
            }
            for (name, kind) in files::kinds_in(&directory)? {
                let path = directory.join(name);
                let now = files::status_of_name(&path)?;
                match self.found.get(&path) {
                    Some(before) if before.kind == kind && kind == Kind::Directory => {
                        open.push(path);
                    }
                    Some(before) if is_same(before, &now) => {
                        gone.remove(&path);
                    }
                    _ if kind == Kind::Directory => files::remove_tree(&path)?,
                    _ => files::remove_file(&path)?,
                }
            }
        }
        for path in &gone {
            if self.found[path].kind == Kind::Directory {
                files::make_directory(path, 0o700)?;
            }
        }
        gone.retain(|path| self.found[path].kind != Kind::Directory);
        Ok(gone)
    }

    /// Adds files that were staged in again, and restores modes and times of directories.
    ///
    /// # Errors
    /// If a file does not exist.
    pub(crate) fn update(&mut self, staged: &BTreeSet<PathBuf>) -> Result<(), Error> {
        for path in staged {
            let status = files::status_of_name(path)?;
            self.found.insert(path.clone(), status);
        }
        // Children first: the restored mode of a parent may deny access.
        for (path, status) in self.found.iter().rev() {
            if status.kind == Kind::Directory {
                files::set_mode(path, status.mode)?;
                files::set_times(path, status)?;
            }
        }
        Ok(())
    }
}

fn is_same(before: &Status, now: &Status) -> bool {
    let seen = |s: &Status| (s.inode, s.size_bytes, s.modified, s.changed);
    before.kind == now.kind && seen(before) == seen(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a file in a directory, another file, and a link; returns them in this order.
    fn staged(root: &Path) -> [PathBuf; 3] {
        let directory = root.join("striped/in");
        files::make_directories(&directory, 0o755).expect("mkdir");
        let paths = [directory.join("a"), root.join("striped/b"), root.join("striped/link")];
        for path in &paths[..2] {
            write(path, "content");
        }
        files::make_link(Path::new("b"), &paths[2]).expect("link");
        paths
    }

    fn write(path: &Path, text: &str) {
        files::write_atomically(path, &path.with_extension("fresh"), text.as_bytes())
            .expect("write");
    }

    #[test]
    fn revert_keeps_unchanged_files_and_removes_added_ones() {
        let scratch = tempfile::tempdir().expect("tempdir");
        staged(scratch.path());
        let mut snapshot = Snapshot::of(scratch.path()).expect("look");
        let added = scratch.path().join("private/deep");
        files::make_directories(&added, 0o755).expect("mkdir");
        write(&added.join("x"), "more");
        files::set_mode(&added, 0o000).expect("chmod");
        write(&scratch.path().join("striped/in/x"), "more");
        assert!(snapshot.revert().expect("revert").is_empty());
        snapshot.update(&BTreeSet::new()).expect("update");
        let after = Snapshot::of(scratch.path()).expect("look");
        assert!(after.found.keys().eq(snapshot.found.keys()));
    }

    #[test]
    fn revert_reports_changed_removed_and_replaced_files() {
        let scratch = tempfile::tempdir().expect("tempdir");
        let [a, b, link] = staged(scratch.path());
        let snapshot = Snapshot::of(scratch.path()).expect("look");
        let before = files::status(&b).expect("status");
        write(&b, "CONTENT"); // same size; the next line restores the time
        files::set_times(&b, &before).expect("touch");
        files::remove_tree(a.parent().expect("parent")).expect("remove");
        files::remove_file(&link).expect("remove");
        files::make_directory(&link, 0o755).expect("mkdir");
        let missing = snapshot.revert().expect("revert");
        assert!(missing.iter().eq([&b, &a, &link].into_iter().collect::<BTreeSet<_>>()));
        assert!(files::status(a.parent().expect("parent")).is_ok());
    }

    #[test]
    fn file_not_staged_again_is_an_error() {
        let scratch = tempfile::tempdir().expect("tempdir");
        let [a, ..] = staged(scratch.path());
        let mut snapshot = Snapshot::of(scratch.path()).expect("look");
        files::remove_file(&a).expect("remove");
        let missing = snapshot.revert().expect("revert");
        snapshot.update(&missing).expect_err("it is not there");
    }
}
