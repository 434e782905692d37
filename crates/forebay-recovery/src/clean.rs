//! Stages out the leftovers of an earlier job, and removes its allocation and files.
//! Assumes a process without threads, since it enters the view. Removes nothing when a file was not staged out, unless
//! the user discards it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use forebay_directive::{AccessMode, Direction, Stage};
use forebay_engine::{AllocationDirectory, Ledger, NodesUse, Step};
use forebay_host::messages::Messages;
use forebay_host::namespace::Keeper;
use forebay_host::process::{self, SignalGuard};
use forebay_host::{clock, files, namespace};
use forebay_mover::{
    Findings, Journal, KeepChanged, Plan, PlanProgress, RemoteCopiers, State, Transfer,
    TransferKind,
};
use forebay_persistent::{names_with_requests, remove_uses};
use forebay_profile::mark_killed;
use forebay_record::{Phase, Record, RecordFile, StagingOptions, WriteFailures, load_pending};
use forebay_staging::{
    Roots, StageOut, Staging, StagingProgress, StagingSummary, is_inside_allocation, remove_parts,
};
use forebay_store::Allocation;

use crate::Error;
use crate::error::ignore_not_found;
use crate::state::{JobState, processes, state, view_is_alive};
use crate::view_targets::Outside;

/// Time between SIGTERM and SIGKILL, and again for processes to end after SIGKILL.
const KILL_GRACE: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// How a leftover is removed.
#[derive(Debug, Clone, Default)]
pub struct CleanOptions {
    /// Delete without staging out.
    pub discard: bool,
    /// End processes of the job that are still alive.
    pub end_processes: bool,
    /// How files are copied.
    pub staging: StagingOptions,
    /// Replace also destinations that others changed since the job began.
    pub overwrite_newer: bool,
    /// Copy all that is in the allocation to this directory, in place of the stage-out.
    pub to: Option<PathBuf>,
    /// The command line that starts the agent on each node of the job; none: as the job started it.
    pub agents: Option<Vec<Vec<String>>>,
}

impl CleanOptions {
    /// The nodes of the job, and how they are reached.
    fn nodes_of(&self, record: &Record) -> Option<NodesUse> {
        let mut nodes = record.nodes.clone()?;
        if let Some(agents) = &self.agents {
            nodes.commands.clone_from(agents);
        }
        Some(nodes)
    }
}

/// What `clean` did to a job.
#[derive(Debug, Default)]
pub struct CleanSummary {
    /// The stage-out; none if nothing was to be staged out.
    pub stage_out: Option<StagingSummary>,
    /// True if results that were to be staged out were in memory, and are lost.
    pub results_lost: bool,
}

/// Lets this node read the namespace of a job on several nodes.
fn make_readable(nodes: &NodesUse, reporter: &dyn StagingProgress) -> Result<(), Error> {
    let lost_s_max = forebay_cluster::lost_s_max();
    let started_again = forebay_cluster::restore_left(nodes, lost_s_max, reporter);
    if let Some(servers) = started_again.map_err(Error::NotReadable)? {
        reporter
            .warning(&format!("files may lack what no program had synced before {servers} ended"));
    }
    Ok(())
}

/// Completes pending stage-outs and removes the allocation and files of the job. If a file fails,
/// nothing is removed and the result lists the failures. The caller must not have started a thread:
/// this process may enter the job's view and stay in it.
///
/// # Errors
/// If the job is running, or something cannot be removed.
pub fn clean(
    mut job: RecordFile,
    how: &CleanOptions,
    caught: SignalGuard,
    reporter: &dyn StagingProgress,
) -> Result<CleanSummary, Error> {
    match job.lock() {
        // The job has ended in the meantime.
        Err(forebay_record::Error::Host(error)) if error.is_not_found() => {
            return Ok(CleanSummary::default());
        }
        locked => locked?,
    }
    let mut now = state(&job)?;
    // The job may have continued after its record was read and before its process was checked.
    while job.reload()? {
        now = state(&job)?;
    }
    match &now {
        JobState::Running => return Err(Error::IsRunning(job.record.id)),
        JobState::OtherHost if how.discard => {
            job.remove()?; // the leftovers are on another machine
            return Ok(CleanSummary::default());
        }
        JobState::OtherHost => return Err(Error::Elsewhere(job.record.runner.host)),
        JobState::Unreachable if !how.discard => {
            let place = job.record.place.map(|place| place.root);
            return Err(Error::Unreachable(place.unwrap_or_default()));
        }
        JobState::Orphaned { processes } if !processes.is_empty() => {
            if !how.discard {
                renew_keeper(&mut job)?;
            }
            end_processes(&job.record, processes, how)?;
            now = state(&job)?; // these may have been the last leftovers
        }
        JobState::AllocationLost if how.end_processes => {
            // The others are left alone: there is nothing that they could change.
            let processes = processes(&job.record)?;
            end_processes(&job.record, &processes, how)?;
        }
        JobState::Orphaned { .. } | JobState::AllocationLost | JobState::Unreachable => {}
    }
    let outside = Outside::new()?;
    let (now, is_inside) = enter_view(&job, now, how)?;
    let is_lost = now == JobState::AllocationLost;
    if is_lost {
        forget_lost_files(&mut job)?;
    }
    let drains = is_inside || (!how.discard && (job.needs_stage_out() || how.to.is_some()));
    remove_partial_files(&job, is_lost || !drains, reporter);
    if let (true, Some(nodes)) = (drains, how.nodes_of(&job.record)) {
        make_readable(&nodes, reporter)?;
    }
    let outside = is_inside.then_some(&outside);
    let drained = drains.then(|| drain(&job, outside, how, caught, reporter));
    let stage_out = drained.transpose()?;
    let cleaned = CleanSummary { stage_out, results_lost: job.record.results_lost && !how.discard };
    let is_incomplete = |staged: &StagingSummary| !staged.failures.is_empty();
    if cleaned.stage_out.as_ref().is_some_and(is_incomplete) {
        return Ok(cleaned);
    }
    let asked =
        if is_lost && !how.discard { names_with_requests(&job.record)? } else { Vec::new() };
    if !asked.is_empty() {
        job.update(Record::clear_stage_out)?;
        return Err(Error::RequestsLost(asked));
    }
    // After a kill from here on, the next clean must not stage out a partly removed allocation.
    job.update(Record::mark_removing)?;
    if let Some(Err(error)) = job.record.profile.as_deref().map(mark_killed) {
        reporter.warning(&error.to_string());
    }
    remove_all(job, is_inside, how, reporter)?;
    Ok(cleaned)
}

/// If the keeper was killed, the view ends with the processes of the job. A new keeper lets it outlive them.
fn renew_keeper(job: &mut RecordFile) -> Result<(), Error> {
    let holder = job.record.view_holder()?;
    let Some(holder) = holder.filter(|holder| job.record.keeper != Some(*holder)) else {
        return Ok(());
    };
    let view = job.record.view.as_deref();
    let mut keeper = Keeper::in_view_of(holder, view).map_err(Error::View)?;
    job.record_step(Step::Keeper(keeper.identity()))?;
    Ok(keeper.pin()?)
}

/// The job's own allocation can no longer be drained; persistent allocations can.
fn forget_lost_files(job: &mut RecordFile) -> Result<(), Error> {
    Ok(job.update(|record| {
        let is_lost = |stage: &Stage| stage.persistent.is_none();
        let has_begun = matches!(record.phase, Phase::Running | Phase::Kept);
        record.results_lost |=
            has_begun && (record.stage_out.iter().any(is_lost) || !record.drain_to.is_empty());
        record.stage_out.retain(|stage| !is_lost(stage));
        record.drain_to.clear();
    })?)
}

fn end_processes(record: &Record, found: &[i32], how: &CleanOptions) -> Result<(), Error> {
    if !how.end_processes {
        return Err(Error::HasProcesses(found.to_vec()));
    }
    process::terminate(found, false)?;
    let began = clock::now();
    loop {
        let left = processes(record)?;
        if left.is_empty() {
            return Ok(());
        }
        if began.elapsed() > KILL_GRACE {
            process::terminate(&left, true)?;
        }
        if began.elapsed() > 2 * KILL_GRACE {
            return Err(Error::HasProcesses(left));
        }
        clock::sleep(POLL_INTERVAL);
    }
}

/// Enters the job's view if something is to be staged out. Returns the new state and whether this process is
/// inside. The keeper may die at any moment; an allocation in its memory then counts as lost.
fn enter_view(
    job: &RecordFile,
    state: JobState,
    how: &CleanOptions,
) -> Result<(JobState, bool), Error> {
    let record = &job.record;
    let Some(keeper) = record.keeper.filter(|_| !how.discard) else {
        return Ok((state, false));
    };
    let mut entered = Ok(false);
    if (job.needs_stage_out() || how.to.is_some()) && view_is_alive(record) {
        entered = namespace::enter(keeper, record.view.as_deref()).map(|()| true);
    }
    let is_memory = |place: &AllocationDirectory| place.mounted;
    match entered {
        Ok(true) => Ok((state, true)),
        entered if view_is_alive(record) => Ok((state, entered.map_err(Error::View)?)),
        _ if record.place.as_ref().is_some_and(is_memory) => Ok((JobState::AllocationLost, false)),
        _ => Ok((state, false)),
    }
}

/// Stages out. `outside` is given in the view.
fn drain(
    job: &RecordFile,
    outside: Option<&Outside>,
    how: &CleanOptions,
    caught: SignalGuard,
    reporter: &dyn StagingProgress,
) -> Result<StagingSummary, Error> {
    let record = &job.record;
    if record.keeper.is_some() && outside.is_none() {
        // The destinations may be paths that existed only in the view.
        return Err(Error::ViewIsGone(job.data().unwrap_or_default()));
    }
    let events = caught.watch(record.keeper)?;
    let place = record.place.as_ref();
    let allocation = place.map(|place| Allocation::found(place.root.clone(), place.mounted));
    remove_parts(load_pending(&job.requests_root())?, &record.id)?;
    job.remove_drained_parts()?;
    let stage_out = StageOut {
        stages: &record.stage_out,
        elsewhere: record.drain_to.clone(),
        roots: Roots::of_record(record, allocation.as_ref()),
        allocation: allocation.as_ref(),
        requests_root: Some(job.requests_root()),
        failed_writes: WriteFailures::of(record)
            .accepting(how.staging.accept_failed_writes)
            .incomplete_now(),
    };
    let stops = events.stops();
    let should_continue = &|_| stops.count() == 0;
    // Before the plan is made again: then nobody can tell what has arrived in an earlier version.
    let keep_changed_files = keep_changed(job, how)?;
    let ((journal, findings), keep_changed) = match (&how.to, &allocation) {
        (Some(to), Some(allocation)) if files::status(allocation.root()).is_ok() => {
            if is_inside_allocation(allocation, to) {
                return Err(Error::RescueInside(to.clone()));
            }
            (
                plan_rescue(allocation, to, should_continue)?,
                Some(KeepChanged { after_unix_ms: 0, newer_only: false }),
            )
        }
        (Some(_), _) => return Err(Error::NothingToRescue(record.id.clone())),
        (None, _) => (stage_out.plan(job, should_continue)?, keep_changed_files),
    };
    outside.map_or(Ok(()), |outside| outside.check(journal.destinations()?))?;
    let staging = Staging {
        direction: Direction::Out,
        tag: &record.id,
        stops: events.stops(),
        reporter,
        into_new_allocation: false,
        how: how.staging,
        keep_changed,
        remotes: RemoteCopiers::default(),
    };
    let staged = staging.carry_out(&journal, findings, 0);
    if !staged.failures.is_empty() && how.to.is_none() {
        let root = allocation.as_ref().map(Allocation::root);
        job.list_unsaved(&journal, root, None)?.1?;
    }
    Ok(staged)
}

/// What others delivered to the destinations since the job began stays. What the job's own drain and programs
/// delivered is not newer than what is staged now.
fn keep_changed(job: &RecordFile, how: &CleanOptions) -> Result<Option<KeepChanged>, Error> {
    let record = &job.record;
    let requested = !load_pending(&job.requests_root())?.is_empty();
    let after_unix_ms = match record.began_unix_ms {
        0 => record.began_unix_s.saturating_add(1).saturating_mul(1000),
        began_unix_ms => began_unix_ms,
    };
    let staged_out =
        job.staged_out(0)?.is_some_and(|(account, _)| account.counts.of(State::Placed).files > 0);
    let newer_only = requested || staged_out || job.has_drained();
    Ok((!how.overwrite_newer).then_some(KeepChanged { after_unix_ms, newer_only }))
}

/// All that is in the namespaces goes below a directory, each under its name. The plan is made again each time.
fn plan_rescue(
    allocation: &Allocation,
    to: &Path,
    on_planned: PlanProgress,
) -> Result<(Journal, Findings), Error> {
    let journal = Journal::in_memory()?;
    let plan = Plan::begin(&journal, on_planned)?;
    for mode in [AccessMode::Striped, AccessMode::Private] {
        let source = allocation.namespace(mode.directory());
        if files::status(&source).is_ok() {
            let what = TransferKind::Directory;
            let transfer = Transfer { what, source, target: to.join(mode.directory()) };
            plan.add_or_record_failure(&transfer)?;
        }
    }
    let findings = plan.end()?;
    Ok((journal, findings))
}

/// Removes partial files elsewhere than in the job's allocation.
fn remove_partial_files(job: &RecordFile, also_out: bool, reporter: &dyn Messages) {
    let warn = |error: forebay_record::Error| reporter.warning(&error.to_string());
    if job.record.phase == Phase::Preparing {
        // The stage-in may have left partial files in a persistent allocation.
        job.remove_partial_stage_in().unwrap_or_else(warn);
    }
    if also_out {
        // Partial files of a killed stage-out are at the destination, not in the allocation.
        remove_partial_stage_out(job, reporter).unwrap_or_else(warn);
    }
}

/// Removes partial files of a stage-out from outside of the view, which can be gone when the job is
/// discarded.
fn remove_partial_stage_out(
    job: &RecordFile,
    reporter: &dyn Messages,
) -> Result<(), forebay_record::Error> {
    let record = &job.record;
    if let Some(journal) = job.stage_out_journal()? {
        forebay_mover::remove_partial_files(&journal, &record.id)?;
    }
    let unlisted = job.remove_drained_parts()?;
    for directory in unlisted.iter().filter(|_| record.keeper.is_some()) {
        let (directory, id) = (directory.display(), &record.id);
        reporter.warning(&format!(
            "what is half drained in {directory}, as the job called it, was not looked for: .forebay-{id}-d*.part"
        ));
    }
    Ok(remove_parts(job.open_requests()?, &record.id)?)
}

/// Removes the allocation and all files. With `discard`, nodes that cannot be reached are forgotten.
fn remove_all(
    job: RecordFile,
    inside: bool,
    how: &CleanOptions,
    reporter: &dyn Messages,
) -> Result<(), Error> {
    let record = &job.record;
    if let Some(nodes) = how.nodes_of(record) {
        let left = forebay_cluster::remove_left(&nodes);
        if !left.is_empty() && !how.discard {
            return Err(Error::NodesLeft(left));
        }
        left.iter().for_each(|left| reporter.warning(&format!("not removed: {left}")));
    } else if let Some(place) = record.place.clone() {
        let allocation = Allocation::found(place.root, place.mounted);
        // From outside, the mount disappears with its keeper.
        if !place.mounted || inside {
            match allocation.free() {
                Err(forebay_store::Error::Host(error)) => ignore_not_found(Err(error))?,
                freed => freed?,
            }
        }
    }
    if let Some(keeper) = record.keeper {
        keeper.kill();
        let began = clock::now();
        while keeper.is_alive() && began.elapsed() < KILL_GRACE {
            clock::sleep(POLL_INTERVAL);
        }
    }
    ignore_not_found(remove_uses(record))?;
    ignore_not_found(files::remove_tree(&record.job_directory))?;
    if let Some(state) = &record.emulation {
        ignore_not_found(files::remove_file(state))?;
    }
    match job.remove() {
        Err(forebay_record::Error::Host(error)) => ignore_not_found(Err(error)),
        removed => Ok(removed?),
    }
}
