//! The record of a job, one JSON file in the user's state directory: what the job holds and what is still to be done,
//! for whatever process comes after the one that runs it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use forebay_directive::Stage;
use forebay_engine::{Ledger, Place, Step};
use forebay_host::process::{self, Identity, ProcessRef};
use forebay_host::{clock, files, filesystem, state, system};
use forebay_store::persistent::namespace_in;
use serde::{Deserialize, Serialize};

use crate::{DrainTarget, Error, StagingOptions};
/// The phase of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// The script has not begun: the allocation holds copies at most.
    Preparing,
    /// From here on there may be data that exist nowhere else.
    Running,
    /// The allocation was kept, because the user asked for it or because not all data arrived.
    Kept,
    /// All that was to be staged out has arrived, and the allocation is being removed.
    Removing,
}

/// A persistent allocation that a job uses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersistentUse {
    /// Its name.
    pub name: String,
    /// Its own directory.
    pub root: PathBuf,
    /// The file that says there that the job uses it.
    pub file: PathBuf,
}

/// One job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The job's own id.
    pub id: String,
    /// The script as named.
    pub script: String,
    /// When it began, in seconds since 1970.
    pub began_unix_s: u64,
    /// The same in milliseconds; 0 in records of older versions.
    #[serde(default)]
    pub began_unix_ms: u64,
    /// The process that runs it.
    #[serde(flatten)]
    pub runner: ProcessRef,
    /// Holds the view of the allocation.
    pub keeper: Option<Identity>,
    /// The user wants the allocation to stay.
    pub keep: bool,
    /// Its phase.
    pub phase: Phase,
    /// Its files outside of the allocation.
    pub job_directory: PathBuf,
    /// The allocation.
    pub place: Option<Place>,
    /// Persistent allocations that it uses, which stay.
    #[serde(default)]
    pub persistent: Vec<PersistentUse>,
    /// What is still to be staged out.
    pub stage_out: Vec<Stage>,
    /// The same, where no stage_out line says it.
    #[serde(default)]
    pub drain_to: Vec<DrainTarget>,
    /// How its staging copies, also where another process continues it.
    #[serde(default)]
    pub staging: StagingOptions,
    /// Shared state of the emulated file system.
    pub emulation: Option<PathBuf>,
    /// The record of its I/O, which is kept.
    #[serde(default)]
    pub profile: Option<PathBuf>,
}

/// A record on disk.
#[derive(Debug)]
pub struct RecordFile {
    /// Its content.
    pub record: Record,
    path: PathBuf,
}

/// A change of a record that is not in place yet.
#[derive(Debug)]
pub struct PendingUpdate {
    temporary: PathBuf,
    path: PathBuf,
}

impl PendingUpdate {
    /// Puts it in place when this process begins.
    ///
    /// # Errors
    /// If its name cannot be given to the process.
    pub fn commit_on_exec(&self, process: &mut Command) -> forebay_host::Result<()> {
        process::rename_before_exec(process, &self.temporary, &self.path)
    }
}

impl Record {
    /// The record of a job that begins now in this process.
    ///
    /// # Errors
    /// If /proc cannot be read.
    pub fn new(id: &str, script: &Path, job_directory: &Path) -> Result<Self, Error> {
        Ok(Self {
            id: id.to_owned(),
            script: script.to_string_lossy().into_owned(),
            began_unix_s: clock::unix_s(),
            began_unix_ms: u64::try_from(clock::unix_milliseconds()).unwrap_or_default(),
            runner: ProcessRef::ours()?,
            keeper: None,
            keep: false,
            phase: Phase::Preparing,
            job_directory: job_directory.to_owned(),
            place: None,
            persistent: Vec::new(),
            stage_out: Vec::new(),
            drain_to: Vec::new(),
            staging: StagingOptions::default(),
            emulation: None,
            profile: None,
        })
    }

    /// Creates the file in the first state directory that takes it. The record of its I/O, if any, will be there
    /// too.
    ///
    /// # Errors
    /// If no state directory takes it.
    pub fn create(self, is_profiled: bool) -> Result<RecordFile, Error> {
        let mut refused = None;
        for directory in state::create_directories() {
            match directory.and_then(|directory| self.clone().create_in(&directory, is_profiled)) {
                Ok(recorded) => return Ok(recorded),
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        Err(Error::NoState(refused))
    }

    fn create_in(
        mut self,
        directory: &Path,
        is_profiled: bool,
    ) -> forebay_host::Result<RecordFile> {
        // Jobs of other machines and of other temporary directories may have begun in the same
        // millisecond, and their records may are in the same home.
        let name = format!("{}-{}@{}.json", self.id, self.runner.process.pid, self.runner.host);
        let path = directory.join(name);
        self.profile =
            is_profiled.then(|| directory.join(forebay_profile::PROFILES).join(&self.id));
        let recorded = RecordFile { record: self, path };
        recorded.write().map(|()| recorded)
    }
}

impl Record {
    /// Is anything to be staged out of the allocation?
    pub fn stages_out(&self) -> bool {
        !(self.stage_out.is_empty() && self.drain_to.is_empty())
    }

    /// All that was to be staged out has arrived.
    pub fn clear_stage_out(&mut self) {
        self.stage_out.clear();
        self.drain_to.clear();
    }

    /// Nothing in the allocation is needed any more.
    pub fn mark_removing(&mut self) {
        self.stage_out.clear();
        self.drain_to.clear();
        self.phase = Phase::Removing;
    }

    /// The path under which a directory of the view can be reached from outside of it.
    pub fn path_from_outside(&self, root: &Path) -> PathBuf {
        let mounted = self.place.as_ref().is_some_and(|place| place.mounted);
        match self.keeper.filter(|_| mounted) {
            Some(keeper) => {
                let view = PathBuf::from(format!("/proc/{}/root", keeper.pid));
                view.join(root.strip_prefix("/").unwrap_or(root))
            }
            None => root.to_owned(),
        }
    }
}

impl RecordFile {
    /// Bytes that the allocation takes now; none if it has none.
    pub fn used_bytes(&self) -> Option<u64> {
        let place = self.record.place.as_ref()?;
        let root = self.record.path_from_outside(&place.root);
        if !place.mounted {
            return Some(files::tree_bytes(&root));
        }
        let space = filesystem::space(&root).ok()?;
        Some(space.total_bytes.saturating_sub(space.available_bytes))
    }

    /// Where the data can be reached, if there are any: in the job's own allocation if that is there, else in
    /// the first persistent one that it uses.
    pub fn data(&self) -> Option<PathBuf> {
        let own = self.record.place.as_ref();
        let own = own.map(|place| self.record.path_from_outside(&place.root));
        let first = self.record.persistent.first();
        let persistent = first.map(|one| namespace_in(&one.root));
        let is_there = own.as_ref().is_some_and(|own| files::status(own).is_ok());
        if is_there { own } else { persistent.or(own) }
    }

    /// Changes what is written down.
    pub fn update(&mut self, change: impl FnOnce(&mut Record)) -> Result<(), Error> {
        change(&mut self.record);
        Ok(self.write()?)
    }

    /// The same, but on disk it is so only once a process begins that is given the result.
    pub fn prepare(&mut self, change: impl FnOnce(&mut Record)) -> Result<PendingUpdate, Error> {
        change(&mut self.record);
        let text = files::to_json(&self.path, &self.record)?;
        let here = system::current_directory()?; // the script may work elsewhere
        let prepared =
            PendingUpdate { temporary: here.join(self.temporary()), path: here.join(&self.path) };
        let mut file = files::open_to_write(&prepared.temporary)?;
        files::with_path(file.write_all(&text), "write", &prepared.temporary)?;
        Ok(prepared)
    }

    /// Has no other job whose record is in the same directory this id?
    pub fn id_is_unique(&self) -> forebay_host::Result<bool> {
        let directory = self.path.parent().unwrap_or(Path::new("/"));
        let begin = format!("{}-", self.record.id);
        let names = files::names_in(directory)?;
        let same = names
            .iter()
            .filter(|name| name.to_string_lossy().starts_with(&begin))
            .filter(|name| Path::new(name).extension() == self.path.extension());
        Ok(same.count() == 1)
    }

    /// Where it is written.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps other processes from cleaning the same job, as long as the result lives; where the
    /// file system has no locks, it does not.
    ///
    /// # Errors
    /// If another process cleans the job, or the record is not there.
    pub fn lock(&self) -> Result<std::fs::File, Error> {
        let locked = files::lock(&self.path)?;
        locked.ok_or_else(|| Error::IsBeingCleaned(self.record.id.clone()))
    }

    /// Reads it again; true if it has changed.
    pub fn reload(&mut self) -> Result<bool, Error> {
        let record: Record = files::read_json(&self.path)?;
        let changed = record != self.record;
        self.record = record;
        Ok(changed)
    }

    /// The journal of the stage-out. It is next to the record: it takes no room in the allocation, which
    /// may be full, and can be read without entering the job's view.
    pub fn journal(&self) -> PathBuf {
        self.path.with_extension(JOURNAL)
    }

    pub(crate) fn temporary(&self) -> PathBuf {
        self.path.with_extension(TEMPORARY)
    }

    fn write(&self) -> forebay_host::Result<()> {
        files::write_json(&self.path, &self.temporary(), &self.record)
    }
}

const JOURNAL: &str = "journal";
/// Ending of a record that is being written.
const TEMPORARY: &str = "fresh";

/// What the state directories hold.
#[derive(Debug, Default)]
pub struct Records {
    /// Oldest first.
    pub found: Vec<RecordFile>,
    /// What could not be read, and why.
    pub unreadable: Vec<(PathBuf, String)>,
    /// Records that are being written, or were when their job was killed.
    pub begun: Vec<PathBuf>,
}

/// Reads all records.
pub fn records() -> Result<Records, Error> {
    Ok(read_records()?)
}

fn read_records() -> forebay_host::Result<Records> {
    let mut records = Records::default();
    for directory in state::directories() {
        let names = match files::names_in(&directory) {
            Err(error) if error.is_not_found() => continue,
            // Nothing of ours can be in it.
            Err(error) if error.is_denied() => continue,
            names => names?,
        };
        for name in names {
            let path = directory.join(name);
            match path.extension().and_then(|extension| extension.to_str()) {
                Some("json") => {}
                Some(TEMPORARY) => {
                    records.begun.push(path);
                    continue;
                }
                _ => continue,
            }
            let text = match files::read_to_string(&path) {
                // A job has ended meanwhile.
                Err(error) if error.is_not_found() => continue,
                text => text.map_err(|error| error.to_string()),
            };
            let record = text.and_then(|text| {
                let record = serde_json::from_str(&text);
                record.map_err(|error| error.to_string())
            });
            match record {
                Ok(record) => records.found.push(RecordFile { record, path }),
                Err(reason) => records.unreadable.push((path, reason)),
            }
        }
    }
    let id = |recorded: &RecordFile| recorded.record.id.clone();
    records.found.sort_by_key(id);
    Ok(records)
}

/// Bytes of memory that other jobs' allocations may still take.
pub fn reserved_bytes() -> forebay_host::Result<u64> {
    let records = read_records()?;
    let reserved = records.found.iter().filter_map(|job| {
        let place = job.record.place.as_ref().filter(|place| place.mounted)?;
        job.record.keeper.filter(|keeper| keeper.is_alive())?;
        Some(place.capacity_bytes.saturating_sub(job.used_bytes()?))
    });
    Ok(reserved.sum())
}

impl Ledger for RecordFile {
    fn about_to(&mut self, step: Step) -> forebay_host::Result<()> {
        match step {
            Step::Allocation(place) => self.record.place = Some(place),
            Step::Keeper(keeper) => self.record.keeper = Some(keeper),
            Step::KeeperEnded => self.record.keeper = None,
        }
        self.write()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_another_nodes_job_has_too_is_seen() {
        let scratch = tempfile::tempdir().expect("tempdir");
        let record = Record::new("170", Path::new("job.sh"), Path::new("/tmp/x")).expect("record");
        let recorded = record.create_in(scratch.path(), false).expect("kept");
        let write_next = |name: &str| {
            files::write_atomically(&scratch.path().join(name), &scratch.path().join("x"), b"{}")
                .expect("written");
        };
        write_next("1700-1@other.json");
        write_next("170-1@other.FILES-NOT-SAFE");
        assert!(recorded.id_is_unique().expect("looked"));
        write_next("170-1@other.json");
        assert!(!recorded.id_is_unique().expect("looked"));
    }
}
