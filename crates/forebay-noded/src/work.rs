//! The work in a process of the owner: `forebay __site`. It has the owner's rights only, so a link or a directory that
//! the owner or anybody else exchanged leads nowhere where the owner could not go anyway.

use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use forebay_directive::{AccessMode, Direction, Stage};
use forebay_host::files::{self, printable};
use forebay_host::messages::Messages;
use forebay_host::mounts;
use forebay_host::process::{CounterWriter, Counters, StopRequests};
use forebay_mover::{
    Error as MoverError, Failure, Findings, Journal, RemoteCopiers, failure_lines,
    remove_partial_files,
};
use forebay_record::StagingOptions;
use forebay_site::Error;
use forebay_site::messages::{MESSAGE_BYTES_MAX, Outcome, Progress, Staging as StagingTask};
use forebay_staging::{
    Roots, StageOut, Staging, StagingProgress, StagingSummary, expanded_out, plan_in,
};
use forebay_store::Allocation;
use serde::{Deserialize, Serialize};

use crate::engine_process;
use crate::owner::REPORTED;

/// The name of the process in lists of processes.
pub(crate) const NAME: &str = "forebay-staging";
/// Permissions of the namespace, whose parent is closed to others, and of the directory with the results of all nodes.
const NAMESPACE_MODE: u32 = 0o755;
/// The same of a persistent allocation for a group. New files get the group of their directory.
const SHARED_MODE: u32 = 0o2770;
/// The attribute of a directory that limits what is below it (CephFS's documentation, "Quotas").
const CEPH_QUOTA: &str = "ceph.quota.max_bytes";
/// The journals of stage-in and stage-out, next to the namespace.
pub(crate) const JOURNALS: [&str; 2] = ["stage-in.journal", "stage-out.journal"];
/// The script in messages.
const SCRIPT: &str = "the job script";
/// Failures of a plan that are read; one line names the first causes.
const FAILURES_MAX: usize = 1000;

/// What to do in the directory of an allocation.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "work", rename_all = "kebab-case")]
pub(crate) enum Work {
    /// Make the namespace.
    Prepare {
        namespace: PathBuf,
        /// That of the nodes of an engine, which makes the namespace itself.
        key: Option<String>,
        is_shared: bool,
        quota: Option<CephQuota>,
        directory: PathBuf,
    },
    /// Look into the namespace.
    Check { namespace: PathBuf },
    /// Stage in or out.
    Stage {
        own: OwnNamespace,
        /// Names and directories of persistent allocations.
        persistent: Vec<(String, PathBuf)>,
        wanted: StagingTask,
        bytes_per_s_max: Option<u64>,
    },
    /// Remove everything in the directory.
    Empty { directory: PathBuf, tag: String },
}

/// The namespace of the job, and its place.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct OwnNamespace {
    /// The directory of the allocation, in which journals are.
    pub(crate) directory: PathBuf,
    pub(crate) namespace: PathBuf,
    /// Whether an engine shows it.
    pub(crate) has_engine: bool,
    pub(crate) access: AccessMode,
    /// Part of the names of partial files: the same for each try, another one for each allocation and node.
    pub(crate) tag: String,
}

/// Limits of CephFS. Only a client with the capability `p` can change them.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CephQuota {
    /// Of the namespace.
    pub(crate) namespace_bytes: u64,
    /// Of the namespace and the journals next to it.
    pub(crate) whole_bytes: u64,
}

/// Does what standard input says, prints the result, and returns the exit code. The progress goes to the counters behind
/// the descriptor that the first word names.
pub fn work(words: &[OsString]) -> (String, i32) {
    forebay_host::process::close_to_debuggers();
    forebay_host::process::set_name(NAME);
    let number = words.first().and_then(|word| word.to_str()).and_then(|word| word.parse().ok());
    let reporter = Reporter {
        writer: number.and_then(CounterWriter::inherited),
        bytes_done: AtomicU64::new(0),
    };
    let mut input = Vec::new();
    let read = std::io::stdin().take(2 * MESSAGE_BYTES_MAX as u64).read_to_end(&mut input);
    let work = match read {
        Ok(_) => serde_json::from_slice::<Work>(&input).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    let outcome = work.map_or_else(
        |error| Outcome::Failed {
            reason: format!("the work cannot be read: {error}"),
            is_final: true,
        },
        |work| work.outcome(&reporter),
    );
    let text = serde_json::to_string(&outcome);
    text.map_or_else(|error| (error.to_string(), 1), |text| (text, REPORTED))
}

impl Work {
    fn outcome(&self, reporter: &Reporter) -> Outcome {
        let result = match self {
            Self::Prepare { directory, key: Some(key), .. } => prepare_engine(directory, key),
            Self::Prepare { namespace, is_shared, quota, .. } => {
                prepare(namespace, *is_shared, quota.as_ref())
            }
            Self::Check { namespace } => check(namespace),
            Self::Stage { own, persistent, wanted, bytes_per_s_max } => {
                stage(own, persistent, wanted, *bytes_per_s_max, reporter)
            }
            Self::Empty { directory, tag } => empty(directory, tag),
        };
        result.unwrap_or_else(|failed| failed.outcome())
    }
}

/// Why the work failed, and whether another try could not help.
pub(crate) struct WorkError {
    pub(crate) error: Error,
    pub(crate) is_final: bool,
}

impl WorkError {
    pub(crate) fn outcome(&self) -> Outcome {
        Outcome::Failed { reason: self.error.to_string(), is_final: self.is_final }
    }
}

impl From<Error> for WorkError {
    fn from(error: Error) -> Self {
        Self { error, is_final: false }
    }
}

impl From<forebay_host::Error> for WorkError {
    fn from(error: forebay_host::Error) -> Self {
        Self { error: error.into(), is_final: false }
    }
}

impl From<MoverError> for WorkError {
    fn from(error: MoverError) -> Self {
        let made = Error { hint: error.hint(), ..Error::new(error.to_string()) };
        Self { error: made, is_final: false }
    }
}

impl From<forebay_staging::Error> for WorkError {
    fn from(error: forebay_staging::Error) -> Self {
        match error {
            forebay_staging::Error::Mover(error) => error.into(),
            error => Self { error: Error::new(error.to_string()), is_final: true },
        }
    }
}

pub(crate) const DONE: Outcome = Outcome::Done { files: 0, bytes: 0, note: None };

fn prepare(
    namespace: &Path,
    is_shared: bool,
    quota: Option<&CephQuota>,
) -> Result<Outcome, WorkError> {
    match files::make_directory(namespace, NAMESPACE_MODE) {
        Err(error) if error.already_exists() => {}
        made => made?,
    }
    if is_shared {
        files::set_mode(namespace, SHARED_MODE)?;
    }
    if let Some(quota) = quota {
        quota.set(namespace)?;
    }
    Ok(DONE)
}

/// Each start of the job has another key.
fn prepare_engine(directory: &Path, key: &str) -> Result<Outcome, WorkError> {
    let path = engine_process::key_in(directory);
    files::write_atomically(&path, &path.with_extension("fresh"), key.as_bytes())?;
    Ok(DONE)
}

impl CephQuota {
    fn set(&self, namespace: &Path) -> Result<(), WorkError> {
        let whole = namespace.parent().unwrap_or(namespace);
        for (directory, bytes) in [(whole, self.whole_bytes), (namespace, self.namespace_bytes)] {
            let value = bytes.to_string();
            files::set_extended_attribute_of_path(directory, CEPH_QUOTA, value.as_bytes())
                .map_err(|error| WorkError {
                    error: Error::from(error).with_hint(
                        "this node's client of CephFS needs the capability p: ceph fs authorize ... rwp",
                    ),
                    is_final: false,
                })?;
        }
        Ok(())
    }
}

fn check(namespace: &Path) -> Result<Outcome, WorkError> {
    files::Directory::open(namespace)?;
    Ok(DONE)
}

/// Says how many bytes there were.
fn empty(directory: &Path, tag: &str) -> Result<Outcome, WorkError> {
    // Those of an engine that ended.
    let mut mounts: Vec<_> = mounts::mounts()?.into_iter().map(|mount| mount.mount_point).collect();
    mounts.retain(|at| at.starts_with(directory));
    mounts.iter().rev().try_for_each(|at| mounts::detach_fuse(at))?;
    let bytes = files::tree_bytes(directory);
    let note = remove_parts(directory, tag);
    match files::empty_directory(directory) {
        Ok(()) => Ok(Outcome::Done { files: 0, bytes, note }),
        Err(error) => {
            let kept = files::directory_kept_by_another(directory).ok().flatten();
            let error = match kept {
                Some(kept) => {
                    Error::new(format!("{} holds files of another user", printable(&kept)))
                        .with_hint("its owner removes them, or root")
                }
                None => error.into(),
            };
            Err(WorkError { error, is_final: false })
        }
    }
}

/// Removes partial files of stagings that were cancelled, which are in directories of the user. Returns which could
/// not be removed; nothing waits for them.
fn remove_parts(directory: &Path, tag: &str) -> Option<String> {
    let mut failed = None;
    for path in JOURNALS.iter().map(|name| directory.join(name)) {
        if files::status_of_name(&path).is_err() {
            continue; // there was no such staging
        }
        let journal = Journal::open_existing(&path);
        let removed = journal.and_then(|journal| remove_partial_files(&journal, tag));
        let text = |error| format!("partial files of a cancelled staging remain: {error}");
        failed = removed.err().map(text).or(failed);
    }
    failed
}

/// Carries out a staging. A killed one continues from its journal.
fn stage(
    own: &OwnNamespace,
    persistent: &[(String, PathBuf)],
    wanted: &StagingTask,
    bytes_per_s_max: Option<u64>,
    reporter: &Reporter,
) -> Result<Outcome, WorkError> {
    let (directory, tag) = (own.directory.as_path(), own.tag.as_str());
    let interruption = match own.has_engine {
        true => engine_process::make_readable(directory, &own.namespace)?,
        false => None,
    };
    let others = persistent.iter().map(|(name, path)| (name.clone(), namespace_of(path)));
    let roots = Roots {
        job: (wanted.capacity_bytes > 0).then(|| own.namespace.clone()),
        persistent: others.collect(),
    };
    let (name, word) = match wanted.direction {
        Direction::In => (JOURNALS[0], "stage_in"),
        Direction::Out => (JOURNALS[1], "stage_out"),
    };
    let journal = open(&directory.join(name))?;
    let findings = match wanted.direction {
        Direction::In => plan_stage_in(&journal, directory, &roots, wanted)?,
        Direction::Out => {
            let allocation = Allocation::found(directory.to_owned(), false);
            let planned = StageOut {
                stages: &stages_out(wanted)?,
                elsewhere: Vec::new(),
                roots,
                allocation: Some(&allocation),
                requests_root: Some(directory.to_owned()),
                failed_writes: forebay_mover::FailedWrites::default(),
            };
            planned.plan_in(&journal, &|_| true)?
        }
    };
    let staging = Staging {
        direction: wanted.direction,
        tag,
        stops: StopRequests::default(),
        reporter,
        // A staging that is interrupted continues, also after a crash of the node: it must be on disk, and whole.
        into_new_allocation: false,
        how: StagingOptions { bytes_per_s_max, ..StagingOptions::default() },
        keep_changed: None,
        remotes: RemoteCopiers::default(),
    };
    let staged = staging.carry_out(&journal, findings, 0);
    match (failure(&staged, (&own.namespace, own.access), persistent, word), interruption) {
        (None, Some(why)) if wanted.direction == Direction::Out => Err(not_proven(&staged, &why)),
        (None, _) => Ok(Outcome::Done { files: staged.files, bytes: staged.bytes, note: None }),
        (Some(mut failed), _) => {
            let why = own.has_engine.then(|| engine_process::failure(directory)).flatten();
            why.iter().for_each(|why| failed.error.message.push_str(&format!("; {why}")));
            Err(failed)
        }
    }
}

/// Why files that arrived are not called delivered: nobody knows whether they are complete.
fn not_proven(staged: &StagingSummary, why: &str) -> WorkError {
    let text = format!(
        "stage_out: {} files are at their destinations, but may lack what no program had synced: {why} while the job ran",
        staged.files
    );
    WorkError {
        error: Error::new(text).with_hint("look at them before you free the allocation"),
        is_final: true,
    }
}

/// The stages of this node: those of the script, with a directory of the node below each destination.
fn stages_out(wanted: &StagingTask) -> Result<Vec<Stage>, WorkError> {
    let Some(below) = &wanted.below else { return Ok(wanted.stages.clone()) };
    let mut stages = Vec::new();
    for stage in &wanted.stages {
        let expanded = expanded_out(stage).map_err(|reason| {
            let error = Error::new(format!("{}: {reason}", stage.position.on_line()));
            WorkError { error, is_final: true }
        })?;
        for stage in expanded {
            let path = stage.pfs_path.trim_end_matches('/');
            // What the script names becomes the directory of all nodes.
            match files::make_directory(Path::new(path), NAMESPACE_MODE) {
                Err(error) if error.already_exists() => {}
                made => made?,
            }
            // A slash at the end means "into this directory".
            let end = if path == stage.pfs_path { "" } else { "/" };
            stages.push(Stage { pfs_path: format!("{path}/{below}{end}"), ..stage });
        }
    }
    Ok(stages)
}

/// The namespace of a persistent allocation.
fn namespace_of(persistent: &Path) -> PathBuf {
    persistent.join(AccessMode::Striped.directory())
}

/// A damaged journal is made again: files that are complete at their destinations are not copied again.
fn open(path: &Path) -> Result<Journal, MoverError> {
    match Journal::open(path) {
        Err(MoverError::Damaged { .. }) => {
            Journal::remove(path)?;
            Journal::open(path)
        }
        opened => opened,
    }
}

fn plan_stage_in(
    journal: &Journal,
    directory: &Path,
    roots: &Roots,
    wanted: &StagingTask,
) -> Result<Findings, WorkError> {
    let plan = |journal: &Journal, stages: &[Stage], is_wanted: &(dyn Fn(&Path) -> bool + Sync)| {
        plan_in(journal, stages, roots, Path::new(SCRIPT), &Path::to_owned, &|_| true, is_wanted)
    };
    let findings = plan(journal, &wanted.stages, &|_| true)?;
    let failures = journal.failures(FAILURES_MAX)?;
    if !failures.is_empty() {
        let error = Error::new(format!("stage_in: {}", text_of(&failures)));
        return Err(WorkError { error, is_final: true });
    }
    let own = if roots.persistent.is_empty() {
        journal.counts()?
    } else {
        let alone = Journal::in_memory()?;
        plan(&alone, &wanted.stages, &|target| target.starts_with(directory))?;
        alone.counts()?
    };
    let (needed, capacity) = (own.open().bytes, wanted.capacity_bytes);
    if needed > capacity {
        let shown = |bytes| indicatif::HumanBytes(bytes).to_string();
        let message = format!(
            "stage_in: {} do not fit into the allocation of {}",
            shown(needed),
            shown(capacity)
        );
        let error =
            Error::new(message).with_hint("ask for a larger capacity= in the #DW jobdw line");
        return Err(WorkError { error, is_final: true });
    }
    Ok(findings)
}

/// None if everything is at its destination.
fn failure(
    staged: &StagingSummary,
    (own, access): (&Path, AccessMode),
    persistent: &[(String, PathBuf)],
    word: &str,
) -> Option<WorkError> {
    if staged.failures.is_empty() {
        return None;
    }
    let shortages = staged.shortages.iter().map(|shortage| format!("; {shortage}"));
    let text = format!("{word}: {}{}", text_of(&staged.failures), shortages.collect::<String>());
    // The job has ended, so what it did not write will not come.
    let is_lost =
        |failure: &Failure| failure.errno == Some(libc::ENOENT) && failure.path.starts_with(own);
    let error = Error::new(with_variables(&text, (own, access), persistent));
    Some(WorkError { error, is_final: staged.failures.iter().all(is_lost) })
}

/// Paths in namespaces as the script writes them.
fn with_variables(
    text: &str,
    (own, access): (&Path, AccessMode),
    persistent: &[(String, PathBuf)],
) -> String {
    let own = text.replace(&*own.to_string_lossy(), &format!("${}", access.variable()));
    persistent.iter().fold(own, |text, (name, path)| {
        let namespace = namespace_of(path);
        text.replace(&*namespace.to_string_lossy(), &format!("$DW_PERSISTENT_STRIPED_{name}"))
    })
}

fn text_of(failures: &[Failure]) -> String {
    failure_lines(failures, printable).join("; ")
}

/// Tells the daemon how far a staging is.
struct Reporter {
    writer: Option<CounterWriter>,
    bytes_done: AtomicU64,
}

/// Which counter has what.
const FILES: usize = 0;
const BYTES: usize = 1;
const BYTES_DONE: usize = 2;

/// What the counters say.
pub(crate) fn progress_of(counters: &Counters) -> Progress {
    let numbers = counters.read();
    Progress {
        is_waiting: false,
        files: numbers[FILES],
        bytes: numbers[BYTES],
        bytes_done: numbers[BYTES_DONE],
    }
}

impl Reporter {
    fn set(&self, which: usize, number: u64) {
        self.writer.iter().for_each(|writer| writer.set(which, number));
    }
}

impl Messages for Reporter {
    fn note(&self, _: &str) {}
    fn warning(&self, _: &str) {}
    fn explain(&self, _: &str) {}
}

impl StagingProgress for Reporter {
    fn staging(&self, _: Direction, files: u64, bytes: u64) {
        self.set(FILES, files);
        self.set(BYTES, bytes);
    }

    fn moved(&self, bytes: u64) {
        let before = self.bytes_done.fetch_add(bytes, Ordering::Relaxed);
        self.set(BYTES_DONE, before + bytes);
    }

    fn staged(&self, _: Direction, _: &StagingSummary) {}
}
