//! The record of a job: one JSON file in the user's state directory. It lists what the job holds
//! and what is pending, for the process that continues after a kill. Each change survives a power failure.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use forebay_directive::Stage;
use forebay_engine::{AllocationDirectory, Ledger, NodesUse, Step};
use forebay_host::process::{self, Identity, ProcessRef};
use forebay_host::{clock, files, filesystem, state, system, users};
use forebay_store::persistent::namespace_in;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{DrainTarget, Error, RUN_VARIABLE, StagingOptions};
/// The phase of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// The script has not started: the allocation holds at most copies.
    Preparing,
    /// The script has started: the allocation may hold data that exist nowhere else.
    Running,
    /// The allocation was kept, because the user requested it or because a stage-out failed.
    Kept,
    /// The stage-out is completed, and the allocation is being removed.
    Removing,
}

/// A persistent allocation that a job uses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersistentUse {
    /// Its name.
    pub name: String,
    /// The directory of the allocation.
    pub root: PathBuf,
    /// The file in the allocation that marks it as used by this job.
    pub file: PathBuf,
}

/// The state of one job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The job's id.
    pub id: String,
    /// The path of the script, as the user gave it.
    pub script: String,
    /// Start time, in seconds since 1970.
    pub began_unix_s: u64,
    /// The same in milliseconds; 0 in records of older versions.
    #[serde(default)]
    pub began_unix_ms: u64,
    /// The process that runs it.
    #[serde(flatten)]
    pub runner: ProcessRef,
    /// The process that holds the view of the allocation.
    pub keeper: Option<Identity>,
    /// The mount namespace of the view, as /proc names it; none without a view, and in records of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub view: Option<String>,
    /// True if results that were to be staged out were in memory, and `forebay clean` found them lost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub results_lost: bool,
    /// True if the user requested that the allocation stays.
    pub keep: bool,
    /// The current phase.
    pub phase: Phase,
    /// The directory with the job's files outside of the allocation.
    pub job_directory: PathBuf,
    /// The job's own allocation.
    pub place: Option<AllocationDirectory>,
    /// The nodes of an allocation over several nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<NodesUse>,
    /// Persistent allocations that the job uses and does not remove.
    #[serde(default)]
    pub persistent: Vec<PersistentUse>,
    /// Pending stages of stage_out lines.
    pub stage_out: Vec<Stage>,
    /// Pending drains to directories that no stage_out line names.
    #[serde(default)]
    pub drain_to: Vec<DrainTarget>,
    /// How staging copies, also when another process continues it.
    #[serde(default)]
    pub staging: StagingOptions,
    /// State file of the emulated file system.
    pub emulation: Option<PathBuf>,
    /// The directory of the I/O profile, which stays after the job.
    #[serde(default)]
    pub profile: Option<PathBuf>,
}

/// A record on disk.
#[derive(Debug)]
pub struct RecordFile {
    /// The content of the file.
    pub record: Record,
    path: PathBuf,
    /// While this process cleans the job.
    lock: Option<std::fs::File>,
}

/// A written change of a record that has not replaced it yet.
#[derive(Debug)]
pub struct PendingUpdate {
    temporary: PathBuf,
    path: PathBuf,
}

impl PendingUpdate {
    /// Replaces the record when `process` starts, before its exec.
    ///
    /// # Errors
    /// If a path or an argument contains a zero byte, or the state directory cannot be opened.
    pub fn commit_on_exec(&self, process: &mut Command) -> forebay_host::Result<()> {
        process::rename_before_exec(process, &self.temporary, &self.path)
    }
}

impl Record {
    /// Returns the record of a job that starts now in this process.
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
            view: None,
            results_lost: false,
            keep: false,
            phase: Phase::Preparing,
            job_directory: job_directory.to_owned(),
            place: None,
            nodes: None,
            persistent: Vec::new(),
            stage_out: Vec::new(),
            drain_to: Vec::new(),
            staging: StagingOptions::default(),
            emulation: None,
            profile: None,
        })
    }

    /// Creates the file in the first state directory that accepts it. The I/O profile, if any, is
    /// in the same directory.
    ///
    /// # Errors
    /// If no state directory accepts it.
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

    pub(crate) fn create_in(
        mut self,
        directory: &Path,
        is_profiled: bool,
    ) -> forebay_host::Result<RecordFile> {
        // Jobs of other machines or temporary directories may start in the same millisecond and
        // record themselves in the same home.
        let name = format!("{}-{}@{}.json", self.id, self.runner.process.pid, self.runner.host);
        let path = directory.join(name);
        self.profile =
            is_profiled.then(|| directory.join(forebay_profile::PROFILES).join(&self.id));
        let mut recorded = RecordFile { record: self, path, lock: None };
        recorded.write().map(|()| recorded)
    }
}

impl Record {
    /// True if a stage_out line or a drain is pending.
    pub fn stages_out(&self) -> bool {
        !(self.stage_out.is_empty() && self.drain_to.is_empty())
    }

    /// Clears all pending stage-outs.
    pub fn clear_stage_out(&mut self) {
        self.stage_out.clear();
        self.drain_to.clear();
    }

    /// Marks the allocation as removable: clears all pending stage-outs and sets the phase.
    pub fn mark_removing(&mut self) {
        self.stage_out.clear();
        self.drain_to.clear();
        self.phase = Phase::Removing;
    }

    /// A process that has the view: its keeper or, if that was killed, the job's `forebay run` or another process of
    /// the job. None if there is no view, or no more.
    ///
    /// # Errors
    /// If /proc or a process of this user cannot be read.
    pub fn view_holder(&self) -> forebay_host::Result<Option<Identity>> {
        let Some(keeper) = self.keeper else {
            return Ok(None);
        };
        if !self.runner.is_of_this_boot()? {
            return Ok(None);
        }
        if keeper.holds_view() {
            return Ok(Some(keeper));
        }
        let (Some(view), Some(place)) = (&self.view, &self.place) else {
            return Ok(None);
        };
        let runner = self.runner.process;
        if runner.mount_namespace().as_ref() == Some(view) {
            return Ok(Some(runner));
        }
        let found = match place.mounted {
            true => process::in_mount_namespace(view, runner)?,
            false => process::with_env(RUN_VARIABLE, self.job_directory.as_os_str(), runner)?,
        };
        // The kernel may have given the number of the namespace to another one: of another job or user.
        let has_view = |process: &Identity| {
            process.is_of_our_user()
                && process.mount_namespace().as_ref() == Some(view)
                && files::status(&in_root_of(*process, &place.root)).is_ok()
        };
        Ok(found.into_iter().filter_map(|pid| Identity::of(pid).ok()).find(has_view))
    }

    /// The path under which a directory of the view can be reached from outside of it.
    pub fn path_from_outside(&self, root: &Path) -> PathBuf {
        let mounted = self.place.as_ref().is_some_and(|place| place.mounted);
        match self.keeper.filter(|_| mounted) {
            Some(keeper) => in_root_of(self.view_holder().ok().flatten().unwrap_or(keeper), root),
            None => root.to_owned(),
        }
    }
}

/// A path as a process sees it.
fn in_root_of(process: Identity, path: &Path) -> PathBuf {
    let root = PathBuf::from(format!("/proc/{}/root", process.pid));
    root.join(path.strip_prefix("/").unwrap_or(path))
}

impl RecordFile {
    /// Bytes used in the allocation; none if the job has none.
    pub fn used_bytes(&self) -> Option<u64> {
        let place = self.record.place.as_ref()?;
        let root = self.record.path_from_outside(&place.root);
        if !place.mounted {
            return Some(files::tree_bytes(&root));
        }
        let space = filesystem::space(&root).ok()?;
        Some(space.total_bytes.saturating_sub(space.available_bytes))
    }

    /// Where the data can be reached: in the job's own allocation if it exists, else in the first
    /// persistent allocation.
    pub fn data(&self) -> Option<PathBuf> {
        let own = self.record.place.as_ref();
        let own = own.map(|place| self.record.path_from_outside(&place.root));
        let first = self.record.persistent.first();
        let persistent = first.map(|one| namespace_in(&one.root));
        let is_there = own.as_ref().is_some_and(|own| files::status(own).is_ok());
        if is_there { own } else { persistent.or(own) }
    }

    /// Changes the record and writes it.
    pub fn update(&mut self, change: impl FnOnce(&mut Record)) -> Result<(), Error> {
        change(&mut self.record);
        Ok(self.write()?)
    }

    /// Changes the record in memory. The file changes when a process that is given the result starts.
    pub fn prepare(&mut self, change: impl FnOnce(&mut Record)) -> Result<PendingUpdate, Error> {
        change(&mut self.record);
        let text = files::to_json(&self.path, &self.record)?;
        let here = system::current_directory()?; // the process may start in another directory
        let prepared =
            PendingUpdate { temporary: here.join(self.temporary()), path: here.join(&self.path) };
        let mut file = files::open_to_write(&prepared.temporary)?;
        files::with_path(file.write_all(&text), "write", &prepared.temporary)?;
        files::with_path(file.sync_all(), "sync", &prepared.temporary)?;
        Ok(prepared)
    }

    /// True if no other record in the same directory has this id.
    pub fn id_is_unique(&self) -> forebay_host::Result<bool> {
        let directory = files::parent_of(&self.path);
        let begin = format!("{}-", self.record.id);
        let names = files::names_in(directory)?;
        let same = names
            .iter()
            .filter(|name| name.to_string_lossy().starts_with(&begin))
            .filter(|name| Path::new(name).extension() == self.path.extension());
        Ok(same.count() == 1)
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Prevents other processes from cleaning the same job until this value is dropped. File
    /// systems without locks give no such protection.
    ///
    /// # Errors
    /// If another process cleans the job, or the record does not exist.
    pub fn lock(&mut self) -> Result<(), Error> {
        let locked = files::lock(&self.path)?;
        let is_being_cleaned = || Error::IsBeingCleaned(self.record.id.clone());
        self.lock = Some(locked.ok_or_else(is_being_cleaned)?);
        Ok(())
    }

    /// Reads the file again; true if it has changed.
    pub fn reload(&mut self) -> Result<bool, Error> {
        let record: Record = files::read_json(&self.path)?;
        let changed = record != self.record;
        self.record = record;
        Ok(changed)
    }

    /// The path of the stage-out journal. It is next to the record: it needs no space in the
    /// allocation, which may be full, and is readable without entering the job's view.
    pub fn journal(&self) -> PathBuf {
        self.path.with_extension(JOURNAL)
    }

    /// The directory of the list of programs' requests: the job's own allocation. If there is none, it is next to
    /// the record.
    pub fn requests_root(&self) -> PathBuf {
        let own = self.record.place.as_ref().map(|place| place.root.clone());
        own.unwrap_or_else(|| self.path.with_extension(REQUESTS))
    }

    pub(crate) fn temporary(&self) -> PathBuf {
        self.path.with_extension(TEMPORARY)
    }

    fn write(&mut self) -> forebay_host::Result<()> {
        let temporary = self.temporary();
        // The new file is locked before it has the name.
        let next = match self.lock {
            Some(_) => files::lock_or_create(&temporary)?,
            None => None,
        };
        let text = files::to_json(&self.path, &self.record)?;
        // Into the file that is locked; nobody else writes the state directory.
        let mut file = files::open_to_write(&temporary)?;
        let written = files::with_path(file.write_all(&text), "write", &temporary)
            .and_then(|()| files::with_path(file.sync_all(), "sync", &temporary))
            .and_then(|()| files::rename(&temporary, &self.path));
        if written.is_err() {
            files::remove_if_present(&temporary).ok(); // the caller gets the first error
        }
        written?;
        self.lock = next.or(self.lock.take());
        files::sync_directory(files::parent_of(&self.path))
    }
}

const JOURNAL: &str = "journal";
const REQUESTS: &str = "requests";
/// File name extension of a record while it is written.
const TEMPORARY: &str = "fresh";

/// The contents of the state directories.
#[derive(Debug, Default)]
pub struct Records {
    /// All readable records, oldest first.
    pub found: Vec<RecordFile>,
    /// Unreadable records, with the reason.
    pub unreadable: Vec<(PathBuf, String)>,
    /// Temporary files of records: being written, or left by a killed job.
    pub begun: Vec<PathBuf>,
}

/// The job's id in the name of a record: `ID-PID@HOST.json`.
#[must_use]
pub fn id_of(record: &Path) -> Option<&str> {
    record.file_name()?.to_str()?.split('-').next()
}

/// Reads all records.
pub fn records() -> Result<Records, Error> {
    Ok(read_records()?)
}

fn read_records() -> forebay_host::Result<Records> {
    let mut records = Records::default();
    for directory in state::directories() {
        let names = match files::names_in(&directory) {
            Err(error) if error.is_absent() => continue,
            // An unreadable directory contains no record of this user.
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
            let text = match files::read_record(&path, Some(users::user_id())) {
                // The job has ended in the meantime.
                Err(error) if error.is_not_found() => continue,
                text => text.map_err(|error| error.to_string()),
            };
            let record = text.and_then(|text| {
                let record: Record =
                    serde_json::from_str(&text).map_err(|error| error.to_string())?;
                record.check().map(|()| record)
            });
            match record {
                Ok(record) => records.found.push(RecordFile { record, path, lock: None }),
                Err(reason) => records.unreadable.push((path, reason)),
            }
        }
    }
    let id = |recorded: &RecordFile| recorded.record.id.clone();
    records.found.sort_by_key(id);
    Ok(records)
}

/// Bytes of memory that other jobs' allocations may still use.
pub fn reserved_bytes() -> forebay_host::Result<u64> {
    let records = read_records()?;
    let reserved = records.found.iter().filter_map(|job| {
        let place = job.record.place.as_ref().filter(|place| place.mounted)?;
        let is_dying = || job.record.keeper.is_some_and(Identity::is_alive);
        let has_memory = job.record.view_holder().map_or(true, |holder| holder.is_some());
        (has_memory || is_dying()).then_some(())?;
        Some(place.capacity_bytes.saturating_sub(job.used_bytes()?))
    });
    Ok(reserved.sum())
}

impl Ledger for RecordFile {
    fn record_step(&mut self, step: Step) -> forebay_host::Result<()> {
        match step {
            Step::Allocation(place) => self.record.place = Some(place),
            Step::Keeper(keeper) => {
                self.record.keeper = Some(keeper);
                self.record.view = keeper.mount_namespace();
            }
            Step::KeeperEnded => (self.record.keeper, self.record.view) = (None, None),
            Step::Nodes(nodes) => self.record.nodes = Some(nodes),
        }
        self.write()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_used_by_a_job_of_another_node_is_detected() {
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
