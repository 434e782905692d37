//! A source tree, its destination and a journal in a temporary directory.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use forebay_mover::{CopyEvent, Error, Journal, Moved, Options, Transfer, TransferKind, carry_out};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

pub struct Place(tempfile::TempDir);

impl Place {
    /// Creates an empty source.
    pub fn new() -> Self {
        Self::filled(&[("", 0)])
    }

    /// Creates directories in the source, with this number of files in each.
    pub fn filled(directories: &[(&str, usize)]) -> Self {
        let place = Self(tempfile::tempdir().expect("tempdir"));
        for (directory, files) in directories {
            let directory = place.path("in").join(directory);
            fs::create_dir_all(&directory).expect("mkdir");
            for number in 0..*files {
                fs::write(directory.join(number.to_string()), "content").expect("write");
            }
        }
        place
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn journal(&self) -> Journal {
        Journal::open(&self.path("journal")).expect("journal")
    }

    pub fn tree(&self) -> Transfer {
        transfer(TransferKind::Directory, &self.path("in"), &self.path("out"))
    }

    pub fn planned(&self) -> Journal {
        let journal = self.journal();
        journal.plan(&[self.tree()]).expect("planned");
        journal
    }
}

pub fn transfer(what: TransferKind, source: &Path, target: &Path) -> Transfer {
    Transfer { what, source: source.to_owned(), target: target.to_owned() }
}

pub fn moved(journal: &Journal, options: &Options) -> Moved {
    carry_out(journal, options, &|_| {}, &|| false).expect("carried out")
}

/// Runs the journal and panics at an event, which simulates a kill.
pub fn killed(journal: &Journal, options: &Options, is_then: &(dyn Fn(CopyEvent) -> bool + Sync)) {
    let on = |did| assert!(!is_then(did), "killed");
    let ended = carry_out(journal, options, &on, &|| false);
    assert!(matches!(ended, Err(Error::Panicked)), "it was to end half way");
}

pub fn names(directory: &Path) -> Vec<String> {
    let found = fs::read_dir(directory).expect("listed");
    let mut names: Vec<_> =
        found.map(|one| one.expect("entry").file_name().into_string().expect("text")).collect();
    names.sort();
    names
}

pub fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("there").permissions().mode() & 0o7777
}

/// Makes this thread, and threads it starts later, obey modes even as root.
pub fn obey_modes() {
    let mut ours = capabilities(None).expect("told");
    ours.effective.remove(CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH);
    set_capabilities(None, ours).expect("given up");
}
