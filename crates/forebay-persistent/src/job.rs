//! The persistent allocations that a job creates, uses and destroys.
//! Assumes that other jobs use the same allocations: a lock of each prevents its destruction. Never removes data
//! that a job is to stage out.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use forebay_directive::{CreatePersistent, Position, Request, Stage, matches_variable};
use forebay_host::directory_lock::{DirectoryLock, LockMode};
use forebay_host::files::Kind;
use forebay_host::messages::Messages;
use forebay_host::{clock, files, users};
use forebay_record::{PersistentUse, Phase, Record, RecordFile};
use forebay_store::persistent::{OWNER_ALONE, OWNER_AND_GROUP, Persistent};
use indicatif::HumanBytes;
use schemars::JsonSchema;
use serde::Serialize;

use crate::created::CreatedAllocation;
use crate::destroy::{BackgroundRemoval, Detached, destroyable, restore};
use crate::error::{Error, Result};
use crate::search::{NewPersistent, StoreSearch};
use crate::uses::Use;

/// What a job does with a persistent allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PersistentAction {
    /// `#BB create_persistent`.
    Create,
    /// `#DW persistentdw`.
    Use,
    /// `#BB destroy_persistent`.
    Destroy,
}

/// A persistent allocation of a job.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PersistentUsed {
    /// What the job did with it.
    pub action: PersistentAction,
    /// Its name.
    pub name: String,
    /// The root of its namespace.
    pub path: String,
}

/// What a run would do with a persistent allocation.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PersistentPlan {
    /// Create, use or destroy.
    pub action: PersistentAction,
    /// Its name.
    pub name: String,
    /// The store that has it or would have it.
    pub store: String,
    /// Its capacity in bytes; none if its record does not say.
    pub capacity_bytes: Option<u64>,
    /// Variables with the path of its namespace.
    pub variables: Vec<String>,
}

/// The persistent allocations of a running job.
#[derive(Debug, Default)]
pub struct JobPersistents {
    used: Vec<Attached>,
    made: Vec<CreatedAllocation>,
    destroyed: OnceCell<BackgroundRemoval>,
}

/// An allocation that the job uses. Its lock prevents destruction.
#[derive(Debug)]
struct Attached {
    variables: Vec<String>,
    persistent: Persistent,
    /// The file that marks the allocation as used by this job.
    file: PathBuf,
    _held: DirectoryLock,
}

impl Attached {
    /// Warns if the allocation exceeds its capacity, which nothing enforces.
    fn check_capacity(&self, watcher: &dyn Messages) {
        let about = self.persistent.about.as_ref().ok();
        let capacity = about.map(|about| about.capacity_bytes);
        let used = self.persistent.used_bytes_within(LOOK_TIME_MAX);
        let Some(((used, is_all), capacity)) = used.zip(capacity) else {
            return;
        };
        if used > capacity {
            let or_more = if is_all { "" } else { " or more" };
            let (name, used, capacity) =
                (&self.persistent.name, HumanBytes(used), HumanBytes(capacity));
            watcher.warning(&format!(
                "the persistent allocation {name} of {capacity} holds {used}{or_more}: where the size is enforced \
                 writing would have failed with ENOSPC"
            ));
        }
    }
}

/// A persistent namespace out of which programs of the job may request staging.
#[derive(Debug)]
pub struct RequestNamespace {
    /// The root of the namespace, with links resolved.
    pub root: PathBuf,
    file: PathBuf,
    stages_out: OnceLock<()>,
}

impl RequestNamespace {
    /// Records that data are to be staged out. From then on the allocation is not destroyed, even
    /// after a kill, until they are completed or discarded.
    pub fn stages_out(&self) -> forebay_host::Result<()> {
        if self.stages_out.get().is_none() {
            Use::set_stages_out(&self.file)?;
            self.stages_out.get_or_init(|| ());
        }
        Ok(())
    }
}

/// The job whose script creates, uses and destroys persistent allocations.
pub struct Owner<'a> {
    /// The scheduler's job id, else Forebay's.
    pub job_id: &'a str,
    /// The path of the script, as the user gave it.
    pub script: &'a Path,
    /// The directives of the script.
    pub request: &'a Request,
    /// True if a scheduler runs the job and may restart it.
    pub under_scheduler: bool,
    /// The stores to search.
    pub search: StoreSearch<'a>,
    /// Fail if a store has less than the requested capacity.
    pub strict_capacity: bool,
    /// Receives messages.
    pub messages: &'a dyn Messages,
}

impl Owner<'_> {
    /// Adds the position of the directive to an error.
    fn with_position<T>(&self, position: &Position, result: Result<T>) -> Result<T> {
        result.map_err(|error| Error::OfJob {
            script: self.script.to_owned(),
            position: *position,
            error: Box::new(error),
        })
    }
}

impl JobPersistents {
    /// Checks all directives, then creates allocations and begins to use them.
    ///
    /// # Errors
    /// If an allocation cannot be created, used or destroyed.
    pub fn prepare(&mut self, owner: &Owner, recorded: &mut RecordFile) -> Result<()> {
        let (request, places) = (owner.request, owner.search);
        for asked in &request.destroy {
            let found = places.find(&asked.name);
            let can_be = found.and_then(|found| destroyable(&found, asked.hurry).map(drop));
            owner.with_position(&asked.position, can_be)?;
        }
        for asked in &request.persistent {
            if !is_made_by(request, &asked.name) {
                let usable = places.find(&asked.name).and_then(|found| usable(&found));
                owner.with_position(&asked.position, usable)?;
            }
        }
        for asked in &request.create {
            let new = new_persistent(owner, asked, Some((owner.job_id, owner.script)));
            match places.create(&new, owner.messages) {
                Err(Error::Exists(other)) if is_of_this_job(&other, owner) => {
                    let note = format!("{} was made when this job began before", asked.name);
                    owner.messages.note(&note);
                }
                made => self
                    .made
                    .push(CreatedAllocation::of(owner.with_position(&asked.position, made)?)),
            }
        }
        for asked in &request.persistent {
            let held = places.find(&asked.name).and_then(lock_shared);
            let (persistent, held) = owner.with_position(&asked.position, held)?;
            let variables = asked.variables();
            let stages_out = stages_out(request, &asked.name);
            let mut made = self.made.iter_mut();
            let made = made.find(|made| made.persistent.root() == persistent.root());
            let mut write = || record_use(&persistent, stages_out, owner, recorded);
            let file = match made {
                Some(made) => made.record_own_use(write),
                None => write(),
            }?;
            let path = persistent.namespace();
            owner.messages.explain(&format!(
                "persistent allocation {}: ${} is {}/",
                asked.name,
                variables.join(", $"),
                path.display()
            ));
            self.used.push(Attached { variables, persistent, file, _held: held });
        }
        Ok(())
    }

    /// Detaches the allocations to destroy and starts the job. If one cannot be detached or the
    /// start fails, all are restored.
    ///
    /// # Errors
    /// If the start fails, or an allocation cannot be destroyed.
    pub fn destroy_and_start<T, E: From<Error>>(
        &self,
        owner: &Owner,
        start: impl FnOnce() -> std::result::Result<T, E>,
    ) -> std::result::Result<T, E> {
        let mut detached = Vec::new();
        let ready = owner.request.destroy.iter().try_for_each(|asked| {
            let found = owner.search.find(&asked.name);
            let one = found.and_then(|found| Detached::of(found, asked.hurry));
            detached.push(owner.with_position(&asked.position, one)?);
            Ok::<_, Error>(())
        });
        let started = ready.map_err(E::from).and_then(|()| start());
        if started.is_err() {
            restore(&detached, owner.messages);
        } else if !detached.is_empty() {
            let removal = self.destroyed.get_or_init(|| BackgroundRemoval::begin(detached));
            for Persistent { name, .. } in removal.destroyed() {
                owner.messages.note(&format!("persistent allocation {name} destroyed"));
            }
        }
        started
    }

    /// Ends the use. The use stays recorded if the stage-out is not completed or `processes` of the
    /// job still run (empty: unknown which; none: all ended). Allocations of a job that never
    /// started are destroyed.
    pub fn release(
        mut self,
        recorded: &mut RecordFile,
        watcher: &dyn Messages,
        processes: Option<&[i32]>,
    ) {
        if let Some(removal) = self.destroyed.take() {
            removal.end(watcher);
        }
        let was_started = recorded.record.phase != Phase::Preparing;
        let needs_stage_out = recorded.needs_stage_out();
        if was_started {
            self.used.iter().for_each(|one| one.check_capacity(watcher));
        }
        let should_continue = processes.unwrap_or_default();
        for Attached { file, .. } in self.used.iter().filter(|_| !should_continue.is_empty()) {
            if let Err(error) = Use::set_survivors(file, should_continue) {
                watcher.warning(&error.to_string());
            }
        }
        drop(self.used);
        let undone = self.made.iter().filter(|_| !was_started);
        let undone: Vec<_> = undone.map(|made| (made, made.is_unshared())).collect();
        let is_over = processes.is_none() && !needs_stage_out;
        if is_over && let Err(error) = remove_uses(&recorded.record) {
            watcher.warning(&error.to_string());
        }
        for (made, is_unshared) in undone {
            made.undo(is_unshared, watcher);
        }
    }

    /// The namespace of the first allocation that the job uses.
    pub fn root(&self) -> Option<PathBuf> {
        Some(self.used.first()?.persistent.namespace())
    }

    /// The namespaces out of which programs of the job may request staging.
    pub fn request_namespaces(&self) -> forebay_host::Result<Vec<RequestNamespace>> {
        let request_namespaces = self.used.iter().map(|one| {
            Ok(RequestNamespace {
                root: files::real_path(&one.persistent.namespace())?,
                file: one.file.clone(),
                stages_out: OnceLock::new(),
            })
        });
        request_namespaces.collect()
    }

    /// Names and namespaces of the allocations that the job uses.
    pub fn namespaces(&self) -> Vec<(String, PathBuf)> {
        let named = |one: &Attached| (one.persistent.name.clone(), one.persistent.namespace());
        self.used.iter().map(named).collect()
    }

    /// Variables with the namespace paths, which end in a slash as in DataWarp.
    pub fn variables(&self) -> impl Iterator<Item = (&str, std::ffi::OsString)> {
        self.used.iter().flat_map(|one| {
            let value = forebay_scheduler::with_slash(&one.persistent.namespace());
            let names = one.variables.iter();
            names.map(move |name| (name.as_str(), value.clone()))
        })
    }

    /// The allocations for the job's outcome.
    pub fn account(&self) -> Vec<PersistentUsed> {
        let of = |action| {
            move |persistent: &Persistent| PersistentUsed {
                action,
                name: persistent.name.clone(),
                path: persistent.namespace().to_string_lossy().into_owned(),
            }
        };
        let made = self.made.iter().map(|made| &made.persistent);
        let made = made.map(of(PersistentAction::Create));
        let used = self.used.iter().map(|one| &one.persistent);
        let used = used.map(of(PersistentAction::Use));
        let destroyed = self.destroyed.get().into_iter();
        let destroyed = destroyed.flat_map(BackgroundRemoval::destroyed);
        let destroyed = destroyed.map(of(PersistentAction::Destroy));
        made.chain(used).chain(destroyed).collect()
    }
}

/// Names of the allocations with stage-out requests of the job's programs.
pub fn names_with_requests(record: &Record) -> forebay_host::Result<Vec<String>> {
    let mut names = Vec::new();
    for one in &record.persistent {
        if Use::of_own_job(&one.file)?.is_some_and(|found| found.has_requests()) {
            names.push(one.name.clone());
        }
    }
    Ok(names)
}

/// Living processes of the job that could not be ended.
pub fn surviving_processes(record: &Record) -> forebay_host::Result<Vec<i32>> {
    let mut processes = Vec::new();
    for one in &record.persistent {
        let found = Use::of_own_job(&one.file)?;
        processes.extend(found.iter().flat_map(Use::remaining));
    }
    Ok(processes)
}

/// Removes the files that mark the job's persistent allocations as used.
pub fn remove_uses(record: &Record) -> forebay_host::Result<()> {
    for one in &record.persistent {
        files::remove_if_present(&one.file)?;
    }
    Ok(())
}

/// Checks all directives. Returns what a run would create, use and destroy.
pub fn plans(owner: &Owner) -> Result<Vec<PersistentPlan>> {
    let (request, places) = (owner.request, owner.search);
    let mut plans = Vec::new();
    let found = |action, found: &Persistent| PersistentPlan {
        action,
        name: found.name.clone(),
        store: found.store().display().to_string(),
        capacity_bytes: found.about.as_ref().ok().map(|about| about.capacity_bytes),
        variables: Vec::new(),
    };
    for asked in &request.create {
        let new = new_persistent(owner, asked, None);
        let (store, _, grant) = owner.with_position(&asked.position, places.check_new(&new))?;
        plans.push(PersistentPlan {
            action: PersistentAction::Create,
            name: asked.name.clone(),
            store: store.display().to_string(),
            capacity_bytes: Some(grant.capacity_bytes),
            variables: Vec::new(),
        });
    }
    for asked in &request.persistent {
        let made = plans.iter().find(|plan| plan.name == asked.name);
        let plan = match made {
            Some(made) => PersistentPlan { action: PersistentAction::Use, ..made.clone() },
            None => {
                let usable = places
                    .find(&asked.name)
                    .and_then(|one| usable(&one).map(|()| found(PersistentAction::Use, &one)));
                owner.with_position(&asked.position, usable)?
            }
        };
        plans.push(PersistentPlan { variables: asked.variables(), ..plan });
    }
    for asked in &request.destroy {
        let doomed = places.find(&asked.name).and_then(|one| {
            destroyable(&one, asked.hurry)?;
            Ok(found(PersistentAction::Destroy, &one))
        });
        plans.push(owner.with_position(&asked.position, doomed)?);
    }
    Ok(plans)
}

fn new_persistent<'a>(
    owner: &Owner,
    asked: &'a CreatePersistent,
    job: Option<(&'a str, &'a Path)>,
) -> NewPersistent<'a> {
    NewPersistent {
        name: &asked.name,
        asked_bytes: asked.capacity_bytes,
        strict_capacity: owner.strict_capacity,
        mode: if asked.group.is_some() { OWNER_AND_GROUP } else { OWNER_ALONE },
        group: asked.group.as_deref(),
        expires_after_s: None,
        job,
    }
}

fn is_made_by(request: &Request, name: &str) -> bool {
    request.create.iter().any(|made| made.name == name)
}

/// True if an earlier start of this job created it. A scheduler may restart a job.
fn is_of_this_job(other: &Persistent, owner: &Owner) -> bool {
    let made_by = other.about.as_ref().ok();
    let made_by = made_by.and_then(|about| about.job_id.as_deref());
    owner.under_scheduler && other.is_ours() && made_by == Some(owner.job_id)
}

/// True if a stage_out line may use this allocation. A list may name it.
fn stages_out(request: &Request, name: &str) -> bool {
    let is_of_it = |stage: &Stage| match &stage.persistent {
        Some(written) => matches_variable(name, written),
        None => stage.kind == forebay_directive::StageKind::List,
    };
    request.stage_out.iter().any(is_of_it)
}

/// Checks that a job can use the allocation.
fn usable(found: &Persistent) -> Result<()> {
    let name = || found.name.clone();
    match &found.about {
        Err(reason) => {
            return Err(Error::Damaged {
                name: name(),
                root: found.namespace(),
                reason: reason.clone(),
            });
        }
        Ok(about) if found.is_expired() => {
            return Err(Error::Expired {
                name: name(),
                expires_unix_s: about.expires_unix_s.unwrap_or_default(),
            });
        }
        Ok(_) => {}
    }
    // Its owner could lead others elsewhere by a link.
    for (what, root) in [("namespace", found.namespace()), ("list of uses", found.uses())] {
        let status = files::status_of_name(&root)?;
        if status.kind != Kind::Directory || status.owner != found.owner {
            let reason = format!("its {what} is no directory of its owner");
            return Err(Error::Damaged { name: name(), root, reason });
        }
    }
    if found.is_open() {
        return Ok(());
    }
    let owner = users::user_named(found.owner);
    Err(Error::Closed { name: name(), owner })
}

/// How long the end of a job waits for the size of an allocation, which only a warning needs.
const LOOK_TIME_MAX: Duration = Duration::from_secs(2);
/// Wait and attempts for the shared lock: `destroyable` holds the exclusive lock briefly.
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(20);
const LOCK_TRIES_MAX: u32 = 100;

fn lock_shared(found: Persistent) -> Result<(Persistent, DirectoryLock)> {
    usable(&found)?;
    for _ in 0..LOCK_TRIES_MAX {
        if let Some(held) = found.lock(LockMode::Shared)? {
            return Ok((found, held));
        }
        if files::status_of_name(found.root()).is_err() {
            return Err(Error::Vanishing(found.name));
        }
        clock::sleep(LOCK_RETRY_INTERVAL);
    }
    Err(Error::Locked { root: found.root().to_owned(), name: found.name })
}

/// Records the use first in the job's record, so that a clean after a kill removes it, then next to the data.
fn record_use(
    persistent: &Persistent,
    stages_out: bool,
    owner: &Owner,
    recorded: &mut RecordFile,
) -> std::result::Result<PathBuf, forebay_record::Error> {
    let file = Use::file(&recorded.record, &persistent.uses());
    let planned = PersistentUse {
        name: persistent.name.clone(),
        root: persistent.root().to_owned(),
        file: file.clone(),
    };
    recorded.update(|record| record.persistent.push(planned))?;
    Use::of(&recorded.record, owner.job_id, stages_out).write(&file)?;
    Ok(file)
}

impl std::fmt::Display for PersistentPlan {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let Self { name, store, .. } = self;
        let size = self.capacity_bytes.map(HumanBytes);
        let size = size.map_or_else(String::new, |size| format!("{size} "));
        match self.action {
            PersistentAction::Create => write!(f, "create      {name}: {size}in {store}"),
            PersistentAction::Use => {
                let variables = self.variables.join(" $");
                write!(f, "use         {name}: {size}in {store}, ${variables}")
            }
            PersistentAction::Destroy => write!(f, "destroy     {name}: {size}in {store}"),
        }
    }
}
