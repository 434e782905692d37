//! Describes what a run would do, and changes nothing.
//! Assumes the options of a real run. The stage-in is planned in memory, so its errors are those of a run.

use std::path::{Path, PathBuf};

use forebay_directive::{Origin, Stage, StageKind, VariableStyle};
use forebay_engine::PathMap;
use forebay_host::files::{self, Kind};
use forebay_host::{clock, system};
use forebay_mover::{Failure, Journal, Number};
use schemars::JsonSchema;
use serde::Serialize;

use crate::context::FAILURES_MAX;
use crate::variables::own_variables;
use crate::{Error, JobSpec, Reporter};
use forebay_cluster::Session;
use forebay_engine::StoreUsed;
use forebay_onclose::DrainSpec;
use forebay_onclose::not_in_burst_buffer;
use forebay_persistent::PersistentPlan;
use forebay_persistent::plans;
use forebay_record::reserved_bytes;
use forebay_staging::{Roots, plan_in};

/// The plan of a run.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DryRun {
    /// Store and size of the allocation; none for a job without one.
    pub store: Option<StoreUsed>,
    /// Variables that the job would get, each with a path of its own.
    pub variables: Vec<String>,
    /// Persistent allocations that the run would create, use or destroy.
    pub persistent: Vec<PersistentPlan>,
    /// Directories that the job would see under other paths.
    pub shown: Vec<PathShown>,
    /// Stage-in lines, in order.
    pub stage_in: Vec<PlannedStage>,
    /// Stage-out lines, in order; the amount of data is unknown.
    pub stage_out: Vec<PlannedStage>,
    /// Drains of closed files while the job runs.
    pub drain: Vec<PlannedDrain>,
    /// The Spectral-compatible drain.
    pub spectral: Option<PlannedSpectral>,
    /// Number of tasks.
    pub tasks: u32,
    /// The time limit in seconds.
    pub time_limit_s: Option<u64>,
    /// The script's interpreter and its arguments.
    pub interpreter: Vec<String>,
}

/// A directory under another path.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PathShown {
    /// The path in the job.
    pub path: String,
    /// The mapped directory; none for the job's own storage on its node.
    pub directory: Option<String>,
}

/// One staging directive.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PlannedStage {
    /// Line in the script.
    pub line: usize,
    /// True if it comes from `--bb` or `--bbf`, not from the script.
    pub of_option: bool,
    /// `file`, `directory`, `list`, or `path` (a file or directory).
    pub kind: &'static str,
    /// The source.
    pub source: String,
    /// The destination.
    pub destination: String,
    /// The present number of files.
    pub files: Option<u64>,
    /// Their bytes.
    pub bytes: Option<u64>,
}

/// One `--drain` option.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PlannedDrain {
    /// Patterns of the files.
    pub patterns: Vec<String>,
    /// The highest copy rate.
    pub rate_bytes_per_s: Option<u64>,
    /// Copy only the file closed last.
    pub newest: bool,
    /// The destination; none: that of the `stage_out` lines.
    #[serde(serialize_with = "forebay_host::files::lossy_option")]
    #[schemars(with = "Option<PathBuf>")]
    pub to: Option<PathBuf>,
}

/// Files of one directory go to the same paths in another.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PlannedSpectral {
    /// `PERSIST_DIR`; none if the script sets it.
    #[serde(serialize_with = "forebay_host::files::lossy_option")]
    #[schemars(with = "Option<PathBuf>")]
    pub persist_dir: Option<PathBuf>,
    /// `PFS_DIR`; known if `PERSIST_DIR` is.
    #[serde(serialize_with = "forebay_host::files::lossy_option")]
    #[schemars(with = "Option<PathBuf>")]
    pub pfs_dir: Option<PathBuf>,
}

impl JobSpec<'_> {
    /// Makes all checks of a run before it creates anything, and describes the run.
    ///
    /// # Errors
    /// Errors of [`crate::run`] before the job starts.
    pub fn preview(&self, reporter: &dyn Reporter) -> Result<DryRun, Error> {
        let submit_directory = system::current_directory()?;
        let id = clock::unix_milliseconds().to_string(); // a run gets another id of the same form
        let request = self.request(&submit_directory, &id, reporter)?;
        let store_options = self.store_options(forebay_scheduler::scheduler_job_id(&id).is_some());
        let shown = self.shown();
        let needs_view = !shown.is_empty() && self.nodes_of(&request).is_none();
        if let (Some(why), true) = (store_options.no_view, needs_view) {
            return Err(forebay_engine::Error::NoView(why.to_owned()).into());
        }
        store_options.check_maps()?;
        self.check_directory(&submit_directory)?;
        let chosen = request.job.as_ref().map(|asked| match self.nodes_of(&request) {
            Some(nodes) => {
                let engine = nodes.engine()?;
                let spec = self.session_spec(nodes, asked, engine.as_ref(), (&id, reporter))?;
                Ok::<_, Error>(Session::preview(&spec, nodes.agents(&id)?, &|| true)?)
            }
            None => Ok(store_options.choose(asked, &reserved_bytes, reporter)?.used),
        });
        let chosen = chosen.transpose()?;
        let persistent = plans(&self.owner(&request, (&id, false), reporter))?;
        let naming = request.job.as_ref().map(|job| job.naming.clone());
        let variable = format!("${}", naming.unwrap_or_default().of_job());
        let variable_of = |name: &str| format!("${}", VariableStyle::DataWarp.of_persistent(name));
        let used = request.persistent.iter();
        let roots = Roots {
            job: request.job.is_some().then(|| PathBuf::from(&variable)),
            persistent: used.map(|one| (one.name.clone(), variable_of(&one.name).into())).collect(),
        };
        let plan_of = |stages: &[Stage], is_wanted: &(dyn Fn(&Path) -> bool + Sync)| {
            self.plan_of(stages, &roots, store_options.maps, is_wanted)
        };
        let (_, failures) = plan_of(&request.stage_in, &|_| true)?;
        if let Some(chosen) = &chosen {
            let is_own = |target: &Path| target.starts_with(&variable);
            chosen.must_hold(plan_of(&request.stage_in, &is_own)?.0.bytes)?;
        }
        if !failures.is_empty() {
            return Err(Error::StageIn(failures));
        }
        let into = |stage: &Stage| {
            let (alone, _) = plan_of(std::slice::from_ref(stage), &|_| true)?;
            let (source, destination) = (stage.pfs_path.clone(), variable_path(stage));
            let counts = (Some(alone.files), Some(alone.bytes));
            Ok(planned(stage, source, destination, counts))
        };
        let out_of = |stage: &Stage| {
            let (source, destination) = (variable_path(stage), stage.pfs_path.clone());
            planned(stage, source, destination, (None, None))
        };
        Ok(DryRun {
            store: chosen,
            variables: own_variables(&request).collect(),
            persistent,
            shown,
            stage_in: request.stage_in.iter().map(into).collect::<Result<_, Error>>()?,
            stage_out: request.stage_out.iter().map(out_of).collect(),
            drain: self.drain.iter().map(planned_drain).collect(),
            spectral: self.planned_spectral()?,
            tasks: self.script.header.task_count(),
            time_limit_s: self.time_limit.map(|limit| limit.as_secs()),
            interpreter: self.script.interpreter.clone(),
        })
    }
}

impl JobSpec<'_> {
    /// Plans a stage-in. Returns its size and the failures.
    fn plan_of(
        &self,
        stages: &[Stage],
        roots: &Roots,
        maps: &[PathMap],
        is_wanted: &(dyn Fn(&Path) -> bool + Sync),
    ) -> Result<(Number, Vec<Failure>), Error> {
        let (journal, script) = (Journal::in_memory()?, &self.script.path);
        let resolved = |path: &Path| PathMap::resolve(maps, path);
        let should_continue = &|_| true;
        plan_in(&journal, stages, roots, script, &resolved, should_continue, is_wanted)?;
        Ok((journal.counts()?.all(), journal.failures(FAILURES_MAX)?))
    }

    /// Checks that the script's working directory exists or is a mount point of a map.
    fn check_directory(&self, submit_directory: &Path) -> Result<(), Error> {
        let maps = self.store_options.maps;
        let working_directory = self.script.working_directory(submit_directory);
        let found = files::status(&PathMap::resolve(maps, &working_directory));
        let will_be_made = maps.iter().any(|map| map.path.starts_with(&working_directory));
        if !will_be_made && !found.is_ok_and(|status| status.kind == Kind::Directory) {
            return Err(Error::NoDirectory(working_directory));
        }
        Ok(())
    }

    fn shown(&self) -> Vec<PathShown> {
        let maps = self.store_options.maps.iter().map(|map| PathShown {
            path: map.path.display().to_string(),
            directory: Some(map.directory.display().to_string()),
        });
        let local = self
            .node_local_path()
            .map(|path| PathShown { path: path.display().to_string(), directory: None });
        maps.chain(local).collect()
    }

    /// Spectral's directories. Without an explicit option they count only if they are in the burst buffer.
    ///
    /// # Errors
    /// If they are requested but not node-local: other burst-buffer paths are unknown before the run.
    fn planned_spectral(&self) -> Result<Option<PlannedSpectral>, Error> {
        let local = self.watched_node_local_path();
        let is_local = |persist: &Path| local.is_some_and(|local| persist.starts_with(local));
        let is_wanted = self.spectral.wanted;
        let (persist_dir, pfs_dir) = match self.spectral.directories.clone() {
            Some((persist, pfs)) if is_local(&persist) => (Some(persist), Some(pfs)),
            Some((persist, _)) if is_wanted => return Err(not_in_burst_buffer(&persist).into()),
            _ => (None, None),
        };
        let is_there = is_wanted || persist_dir.is_some();
        Ok(is_there.then_some(PlannedSpectral { persist_dir, pfs_dir }))
    }
}

fn planned_drain(drain_spec: &DrainSpec) -> PlannedDrain {
    let patterns = drain_spec.patterns.all().iter();
    PlannedDrain {
        patterns: patterns.map(|one| one.as_str().to_owned()).collect(),
        rate_bytes_per_s: drain_spec.rate_bytes_per_s,
        newest: drain_spec.newest,
        to: drain_spec.to.clone(),
    }
}

fn variable_path(stage: &Stage) -> String {
    let variable = match &stage.persistent {
        Some(name) => stage.naming.of_persistent(name),
        None => stage.naming.of_job(),
    };
    format!("${variable}/{}", stage.inner_path)
}

fn planned(
    stage: &Stage,
    source: String,
    destination: String,
    (files, bytes): (Option<u64>, Option<u64>),
) -> PlannedStage {
    PlannedStage {
        line: stage.position.line,
        of_option: stage.position.origin == Origin::Option,
        kind: match stage.kind {
            StageKind::File => "file",
            StageKind::Directory => "directory",
            StageKind::List => "list",
            StageKind::Path => "path",
        },
        source,
        destination,
        files,
        bytes,
    }
}
