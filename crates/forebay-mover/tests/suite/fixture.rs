//! A source tree, its destination and a journal in a temporary directory on a disk: in memory, times are no proof.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use forebay_mover::{
    CopyEvent, CopySummary, Error, Findings, Journal, Options, Plan, Transfer, TransferKind,
};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

pub struct StagingFixture(tempfile::TempDir);

impl StagingFixture {
    /// Creates an empty source.
    pub fn new() -> Self {
        Self::filled(&[("", 0)])
    }

    /// Creates directories in the source, with this number of files in each.
    pub fn filled(directories: &[(&str, usize)]) -> Self {
        let scratch = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"));
        let fixture = Self(scratch.expect("tempdir"));
        for (directory, files) in directories {
            let directory = fixture.path("in").join(directory);
            fs::create_dir_all(&directory).expect("mkdir");
            for number in 0..*files {
                fs::write(directory.join(number.to_string()), "content").expect("write");
            }
        }
        fixture
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn journal(&self) -> OpenJournal {
        Journal::open(&self.path("journal")).expect("journal").into()
    }

    pub fn tree(&self) -> Transfer {
        transfer(TransferKind::Directory, &self.path("in"), &self.path("out"))
    }

    pub fn planned(&self) -> OpenJournal {
        let journal = self.journal();
        journal.plan(&[self.tree()]).expect("planned");
        journal
    }
}

/// A journal, and what its last plan found out for the run that follows.
pub struct OpenJournal {
    journal: Journal,
    findings: Mutex<Findings>,
}

impl From<Journal> for OpenJournal {
    fn from(journal: Journal) -> Self {
        Self { journal, findings: Mutex::default() }
    }
}

impl std::ops::Deref for OpenJournal {
    type Target = Journal;

    fn deref(&self) -> &Journal {
        &self.journal
    }
}

impl OpenJournal {
    pub fn plan(&self, transfers: &[Transfer]) -> Result<(), Error> {
        let plan = Plan::begin(&self.journal, &|_| true)?;
        transfers.iter().try_for_each(|transfer| plan.add(transfer))?;
        self.end(plan)
    }

    /// Ends a plan of this journal.
    pub fn end(&self, plan: Plan) -> Result<(), Error> {
        *self.findings.lock().expect("not poisoned") = plan.end()?;
        Ok(())
    }

    pub fn retry(&self) -> Result<(), Error> {
        *self.findings.lock().expect("not poisoned") =
            forebay_mover::retry(&self.journal, &|_| true)?;
        Ok(())
    }
}

pub fn carry_out(
    journal: &OpenJournal,
    options: &Options,
    on: &(dyn Fn(CopyEvent) + Sync),
    cancelled: &(dyn Fn() -> bool + Sync),
) -> Result<CopySummary, Error> {
    let findings = std::mem::take(&mut *journal.findings.lock().expect("not poisoned"));
    forebay_mover::carry_out(journal, findings, options, on, cancelled)
}

pub fn transfer(what: TransferKind, source: &Path, target: &Path) -> Transfer {
    Transfer { what, source: source.to_owned(), target: target.to_owned() }
}

pub fn moved(journal: &OpenJournal, options: &Options) -> CopySummary {
    carry_out(journal, options, &|_| {}, &|| false).expect("carried out")
}

/// Runs the journal and panics at an event, which simulates a kill.
pub fn killed(
    journal: &OpenJournal,
    options: &Options,
    is_then: &(dyn Fn(CopyEvent) -> bool + Sync),
) {
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
