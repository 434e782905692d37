//! What a run would do, without doing it.

use forebay_directive::{AccessMode, Stage, StageKind};
use forebay_host::{clock, machine};
use serde::Serialize;

use crate::staging::plan_in;
use crate::{Error, Order, StoreUsed, Watcher};

/// The plan of a run.
#[derive(Debug, Serialize)]
pub struct Preview {
    /// Where the allocation would lie, and how large it would be; none for a job without one.
    pub store: Option<StoreUsed>,
    /// Variables the job would get, each with a directory of its own.
    pub variables: Vec<&'static str>,
    /// Stage-in, in order.
    pub stage_in: Vec<Planned>,
    /// Stage-out, in order; how much there will be is not known.
    pub stage_out: Vec<Planned>,
    /// Tasks of the job.
    pub tasks: u32,
    /// After so many seconds it would be ended.
    pub time_limit_s: Option<u64>,
    /// The script's interpreter with its arguments.
    pub interpreter: Vec<String>,
}

/// One directive of staging.
#[derive(Debug, Serialize)]
pub struct Planned {
    /// Line in the script.
    pub line: usize,
    /// `file`, `directory` or `list`.
    pub kind: &'static str,
    /// From where.
    pub source: String,
    /// To where.
    pub destination: String,
    /// How many files there are now.
    pub files: Option<u64>,
    /// Their bytes.
    pub bytes: Option<u64>,
}

impl Order<'_> {
    /// Checks all that a run checks before it makes anything, and says what the run would do.
    ///
    /// # Errors
    /// Those of [`crate::run`] before the job starts.
    pub fn preview(&self, watcher: &dyn Watcher) -> Result<Preview, Error> {
        let submitted_in = machine::current_directory()?;
        let id = clock::unix_milliseconds().to_string(); // as good as the one that it would get
        let request = self.request(&submitted_in, &id, watcher)?;
        let chosen = request.job.as_ref();
        let chosen = chosen
            .map(|job| self.wishes.choose(job, watcher))
            .transpose()?;
        let variable = format!("${}", AccessMode::Striped.variable());
        let plan = plan_in(&request.stage_in, variable.as_ref(), &self.script.path)?;
        if let Some(chosen) = &chosen {
            chosen.used.must_hold(plan.bytes())?;
        }
        if !plan.failures.is_empty() {
            return Err(Error::StageIn(plan.failures));
        }
        let into = |stage: &Stage| {
            let alone = plan_in(
                std::slice::from_ref(stage),
                variable.as_ref(),
                &self.script.path,
            )?;
            let (source, destination) = (stage.pfs_path.clone(), inner(&variable, stage));
            let counts = (Some(alone.files()), Some(alone.bytes()));
            Ok(planned(stage, source, destination, counts))
        };
        let out_of = |stage: &Stage| {
            let (source, destination) = (inner(&variable, stage), stage.pfs_path.clone());
            planned(stage, source, destination, (None, None))
        };
        let modes = request.job.iter().flat_map(|job| &job.access);
        Ok(Preview {
            store: chosen.map(|chosen| chosen.used),
            variables: modes.map(|mode| mode.variable()).collect(),
            stage_in: request
                .stage_in
                .iter()
                .map(into)
                .collect::<Result<_, Error>>()?,
            stage_out: request.stage_out.iter().map(out_of).collect(),
            tasks: self.script.header.task_count(),
            time_limit_s: self.time_limit.map(|limit| limit.as_secs()),
            interpreter: self.script.interpreter.clone(),
        })
    }
}

fn inner(variable: &str, stage: &Stage) -> String {
    format!("{variable}/{}", stage.inner_path)
}

fn planned(
    stage: &Stage,
    source: String,
    destination: String,
    (files, bytes): (Option<u64>, Option<u64>),
) -> Planned {
    Planned {
        line: stage.place.line,
        kind: match stage.kind {
            StageKind::File => "file",
            StageKind::Directory => "directory",
            StageKind::List => "list",
        },
        source,
        destination,
        files,
        bytes,
    }
}
