//! The specification of a job: script, options, and the receiver of its messages.
//! Its checks create nothing, and run before there is an allocation.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use forebay_directive::{AccessMode, JobDw, Origin, Position, Request, VariableStyle};
use forebay_engine::{PathMap, StoreOptions};
use forebay_host::messages::Messages;
use forebay_host::process::Orphans;
use forebay_host::users;
use forebay_persistent::{Owner, StoreSearch};

use crate::Error;
use crate::shared_nodes::NodeOptions;
use crate::variables::check_variables;
use forebay_deadline::DeadlineOptions;
use forebay_engine::AllocationProgress;
use forebay_onclose::{DrainSpec, Spectral};
use forebay_profile::Recording;
use forebay_record::StagingOptions;
use forebay_scheduler::JobScript;
use forebay_staging::{StagingProgress, check_destinations};

/// The path of node-local storage in such scripts, followed by the user's name.
const NODE_LOCAL_PATH: &str = "/mnt/bb";

/// The script of a job and its options.
pub struct JobSpec<'a> {
    /// The script.
    pub script: &'a JobScript,
    /// Arguments of the script.
    pub arguments: &'a [OsString],
    /// The options of stores and allocations.
    pub store_options: StoreOptions<'a>,
    /// Keep the allocation at the end, whatever it holds.
    pub keep: bool,
    /// Forebay ends the job after this time.
    pub time_limit: Option<Duration>,
    /// How to watch the scheduler's deadline; none: not watched.
    pub deadline: Option<DeadlineOptions>,
    /// The destination of the script's standard output.
    pub output: Output<'a>,
    /// Launchers that Forebay replaces by its own if there is no scheduler.
    pub shims: &'a [&'a str],
    /// Settings that the job's programs find in their environment.
    pub variables: &'a [(String, String)],
    /// Options of the job's own staging.
    pub staging: StagingOptions,
    /// State file of the emulated file system, which is removed with this process.
    pub emulation: Option<&'a Path>,
    /// Drains while the job runs.
    pub drain: &'a [DrainSpec],
    /// Options of the Spectral-compatible drain.
    pub spectral: Spectral,
    /// Command line of the watcher process for closed files; empty without `--on-close`.
    pub on_close: &'a [OsString],
    /// The nodes of the allocation; none: this one.
    pub nodes: Option<NodeOptions>,
    /// How to record its I/O; none: not recorded.
    pub recording: Option<Recording<'a>>,
}

/// The destination of the script's standard output.
#[derive(Debug, Clone, Copy)]
pub enum Output<'a> {
    /// Forebay's standard output.
    Inherit,
    /// Forebay's standard error.
    Error,
    /// A file, created or truncated.
    File(&'a Path),
    /// A file, created or truncated, that also receives standard error.
    Both(&'a Path),
}

/// Reports the events of a job as they happen.
pub trait Reporter: AllocationProgress + StagingProgress {
    /// An I/O profile was created in this directory.
    fn recorded(&self, directory: &Path);
    /// The script starts.
    fn running(&self, id: &str);
    /// The script has ended, with its status as a shell shows it and its run time in seconds.
    fn ended(&self, id: &str, status: i32, seconds: f64);
    /// Leftover processes of the script were ended, as far as possible.
    fn leftovers(&self, leftovers: &Orphans);
}

impl JobSpec<'_> {
    /// The request of the script; empty if directives are ignored.
    pub(crate) fn request(
        &self,
        submit_directory: &Path,
        job_id: &str,
        reporter: &dyn Reporter,
    ) -> Result<Request, Error> {
        let mut request = self.script.request(submit_directory, job_id)?;
        self.check_burst_buffer(&request)?;
        for warning in &request.warnings {
            let script = self.script.path.display();
            reporter.warning(&format!("{script}: {warning}; {}", warning.hint));
        }
        if self.wants_node_local() {
            let job = request.job.get_or_insert_with(node_local);
            if !job.access.contains(&AccessMode::Private) {
                job.access.push(AccessMode::Private);
            }
        }
        if request.job.is_none() && !self.on_close.is_empty() {
            return Err(forebay_onclose::Error::Request {
                message:
                    "on close: there is no burst buffer to watch: the script has no #DW jobdw line"
                        .to_owned(),
                hint: "add one, or watch another directory with forebay watch DIR --on-close",
            }
            .into());
        }
        check_variables(&self.script.path, &self.script.text, &request)?;
        let resolved = |path: &Path| PathMap::resolve(self.store_options.maps, path);
        let capacity_bytes = request.job.as_ref().and_then(|job| job.capacity_bytes);
        let script = &self.script.path;
        let stages = &request.stage_out;
        for warning in check_destinations(stages, script, &resolved, capacity_bytes)? {
            reporter.warning(&warning);
        }
        forebay_onclose::check(self.drain, &self.spectral, &request, self.store_options.maps)?;
        Ok(request)
    }

    /// On the file system alone, persistent allocations are used, but neither made nor destroyed.
    fn check_burst_buffer(&self, request: &Request) -> Result<(), Error> {
        if self.store_options.pfs_directory.is_none() {
            return Ok(());
        }
        let made = request.create.iter();
        let made = made.map(|made| ("create_persistent", &made.name, made.position));
        let destroyed = request.destroy.iter();
        let destroyed =
            destroyed.map(|doomed| ("destroy_persistent", &doomed.name, doomed.position));
        match made.chain(destroyed).next() {
            Some((command, name, position)) => Err(Error::NoBurstBuffer {
                script: self.script.path.clone(),
                position,
                command,
                name: name.clone(),
            }),
            None => Ok(()),
        }
    }

    /// The user's options, as far as a scheduler's job allows them.
    pub(crate) fn store_options(&self, under_scheduler: bool) -> StoreOptions<'_> {
        let mut store_options = self.store_options.clone();
        if under_scheduler {
            store_options.no_view = Some("the scheduler starts a step's tasks outside of it");
        }
        store_options
    }

    /// The job as the owner of persistent allocations.
    pub(crate) fn owner<'a>(
        &'a self,
        request: &'a Request,
        (job_id, under_scheduler): (&'a str, bool),
        messages: &'a dyn Messages,
    ) -> Owner<'a> {
        Owner {
            job_id,
            script: &self.script.path,
            request,
            under_scheduler,
            search: StoreSearch {
                named: self.store_options.store,
                site: self.store_options.site_store,
            },
            strict_capacity: self.store_options.strict_capacity,
            messages,
        }
    }

    /// The path of node-local storage, if the job requests it.
    pub(crate) fn node_local_path(&self) -> Option<PathBuf> {
        let path = || Path::new(NODE_LOCAL_PATH).join(users::user_name());
        self.wants_node_local().then(path)
    }

    /// The path of node-local storage in which Spectral can see files: that of other nodes is not watched.
    pub(crate) fn watched_node_local_path(&self) -> Option<PathBuf> {
        let is_on_one_node = self.nodes.as_ref().is_none_or(|nodes| nodes.names.len() <= 1);
        self.node_local_path().filter(|_| is_on_one_node)
    }

    fn wants_node_local(&self) -> bool {
        self.script.header.node_local
    }
}

/// The allocation of a script that requests node-local storage without a directive.
fn node_local() -> JobDw {
    JobDw {
        profile: None,
        redundancy: None,
        is_local: false,
        stripe_bytes: None,
        access: Vec::new(),
        capacity_bytes: None,
        pool: None,
        naming: VariableStyle::DataWarp,
        position: Position { origin: Origin::Script, line: 1, column: 1 },
    }
}
