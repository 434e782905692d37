//! What is to be copied.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use forebay_host::files::{self, Kind, Status};

use crate::Failure;

/// What the user says the source is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// One file. A target that is a directory receives it under its own name.
    File,
    /// The contents of a directory, which become the contents of the target.
    Directory,
}

/// One source to be moved to one target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transfer {
    /// File or directory.
    pub what: What,
    /// From where. A link named here is followed.
    pub source: PathBuf,
    /// To where. A trailing slash says that it is a directory.
    pub target: PathBuf,
}

/// Why a transfer cannot be planned.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The machine refused.
    #[error(transparent)]
    Host(#[from] forebay_host::Error),
    /// Nothing is there.
    #[error("the source {} does not exist", .0.display())]
    NoSource(PathBuf),
    /// `type=file`, but it is no file.
    #[error("the source {} is not a file", .0.display())]
    NotAFile(PathBuf),
    /// `type=directory`, but it is none.
    #[error("the source {} is not a directory", .0.display())]
    NotADirectory(PathBuf),
}

/// A directory, file or link to be made.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) source: PathBuf,
    pub(crate) target: PathBuf,
    pub(crate) status: Status,
}

/// Everything that some transfers will make.
#[derive(Debug, Default)]
pub struct Plan {
    /// Parents before children.
    pub(crate) directories: Vec<Entry>,
    pub(crate) files: Vec<Entry>,
    pub(crate) links: Vec<Entry>,
    /// Which source each target gets its bytes from. Targets stand here with links resolved.
    claimed: HashMap<PathBuf, PathBuf>,
    /// Directories of targets, with links resolved.
    resolved: HashMap<PathBuf, PathBuf>,
    /// What was found but cannot be copied: sockets, devices, directories closed to us.
    pub failures: Vec<Failure>,
}

impl Plan {
    /// Adds a transfer, looking through its whole source.
    ///
    /// # Errors
    /// If the source is missing or not what the transfer says. What is wrong further down is
    /// put into [`Plan::failures`].
    pub fn add(&mut self, transfer: &Transfer) -> Result<(), Error> {
        let status = match files::status(&transfer.source) {
            Err(error) if error.is_not_found() => {
                return Err(Error::NoSource(transfer.source.clone()));
            }
            found => found?,
        };
        let source = transfer.source.clone();
        match (transfer.what, status.kind) {
            (What::File, Kind::File) => {
                let target = self.target_of_file(transfer);
                self.add_entry(Entry {
                    source,
                    target,
                    status,
                });
                Ok(())
            }
            (What::File, _) => Err(Error::NotAFile(source)),
            (What::Directory, Kind::Directory) => {
                self.add_tree(&source, &transfer.target, status);
                Ok(())
            }
            (What::Directory, _) => Err(Error::NotADirectory(source)),
        }
    }

    /// Leaves out all but what has these targets.
    pub fn keep_only(&mut self, is_wanted: impl Fn(&Path) -> bool) {
        self.directories.retain(|entry| is_wanted(&entry.target));
        self.files.retain(|entry| is_wanted(&entry.target));
        self.links.retain(|entry| is_wanted(&entry.target));
    }

    /// Number of files.
    #[must_use]
    pub fn files(&self) -> u64 {
        self.files.len() as u64
    }

    /// Bytes of all files.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|entry| entry.status.size_bytes).sum()
    }

    fn add_tree(&mut self, source: &Path, target: &Path, status: Status) {
        let mut open = vec![Entry {
            source: source.to_owned(),
            target: target.to_owned(),
            status,
        }];
        while let Some(directory) = open.pop() {
            match files::names_in(&directory.source) {
                Ok(names) => {
                    for name in names {
                        let source = directory.source.join(&name);
                        let target = directory.target.join(&name);
                        open.extend(self.add_name(source, target));
                    }
                }
                Err(error) => self.fail(&directory.source, &error),
            }
            self.directories.push(directory);
        }
    }

    /// Adds one name of a tree; a directory is returned to be looked through.
    fn add_name(&mut self, source: PathBuf, target: PathBuf) -> Option<Entry> {
        let status = match files::status_of_name(&source) {
            Ok(status) => status,
            Err(error) => {
                self.fail(&source, &error);
                return None;
            }
        };
        let entry = Entry {
            source,
            target,
            status,
        };
        if status.kind == Kind::Directory {
            return Some(entry);
        }
        self.add_entry(entry);
        None
    }

    /// Adds a file or link, unless another one goes to the same place: one of them would be lost.
    fn add_entry(&mut self, entry: Entry) {
        let refuse = |reason: String| Failure {
            path: entry.source.clone(),
            reason,
        };
        if entry.status.kind == Kind::Other {
            let reason = "it is a fifo, socket or device, which cannot be staged";
            return self.failures.push(refuse(reason.to_owned()));
        }
        let place = self.place(&entry.target);
        if let Some(other) = self.claimed.get(&place) {
            let (target, other) = (entry.target.display(), other.display());
            let reason = format!("it would go to {target}, where {other} goes already");
            return self.failures.push(refuse(reason));
        }
        self.claimed.insert(place, entry.source.clone());
        if entry.status.kind == Kind::Link {
            self.links.push(entry);
        } else {
            self.files.push(entry);
        }
    }

    /// The target with the links that lead to it resolved, as far as its directories exist.
    fn place(&mut self, target: &Path) -> PathBuf {
        let (Some(parent), Some(name)) = (target.parent(), target.file_name()) else {
            return target.to_owned();
        };
        if !self.resolved.contains_key(parent) {
            self.resolved.insert(parent.to_owned(), resolve(parent));
        }
        self.resolved
            .get(parent)
            .map_or_else(|| target.to_owned(), |real| real.join(name))
    }

    fn target_of_file(&self, transfer: &Transfer) -> PathBuf {
        use std::os::unix::ffi::OsStrExt;
        let target = &transfer.target;
        let named_as_directory = target.as_os_str().as_bytes().ends_with(b"/");
        let is_directory = files::status(target).is_ok_and(|s| s.kind == Kind::Directory);
        let will_be = self.directories.iter().any(|entry| entry.target == *target);
        match transfer.source.file_name() {
            Some(name) if named_as_directory || is_directory || will_be => target.join(name),
            _ => target.clone(),
        }
    }

    fn fail(&mut self, path: &Path, error: &forebay_host::Error) {
        self.failures.push(Failure {
            path: path.to_owned(),
            reason: error.to_string(),
        });
    }
}

/// The real path of the nearest ancestor that exists, and the rest as written.
fn resolve(directory: &Path) -> PathBuf {
    let found = directory.ancestors().find_map(|ancestor| {
        let real = files::real_path(ancestor).ok()?;
        Some(real.join(directory.strip_prefix(ancestor).ok()?))
    });
    found.unwrap_or_else(|| directory.to_owned())
}
