//! `forebay __request`: what a job script asks for, for `forebay plan`. Opens no file that the script names.

use std::path::Path;

use forebay_directive::{AccessMode, Origin, Stage};
use forebay_host::system;
use forebay_scheduler::JobScript;
use forebay_terminal::{CliError, print_json};
use serde::Serialize;

/// Stands for the id that a scheduler would give the job.
const NO_JOB_ID: &str = "0";

/// What a script asks for.
#[derive(Serialize)]
struct ScriptRequest {
    /// Whether the header has lines of a scheduler.
    has_header: bool,
    /// The number of nodes; none if the header does not say.
    nodes: Option<u32>,
    /// Tasks on all nodes.
    tasks: u32,
    time_limit_s: Option<u64>,
    /// Whether it asks for the node's own storage, `/mnt/bb/$USER`.
    node_local: bool,
    /// `#DW jobdw`; none without it.
    allocation: Option<AllocationRequest>,
    /// Names of the persistent allocations that it uses.
    persistent: Vec<String>,
    stage_in: Vec<Staged>,
    stage_out: Vec<Staged>,
    warnings: Vec<String>,
}

#[derive(Serialize)]
struct AllocationRequest {
    capacity_bytes: Option<u64>,
    striped: bool,
    private: bool,
    pool: Option<String>,
    /// Line in the script; none if it comes from `--bb`.
    line: Option<usize>,
}

#[derive(Serialize)]
struct Staged {
    /// Path on the parallel file system.
    pfs_path: String,
    /// Path in the namespace.
    inner_path: String,
}

/// Prints the request as JSON. Returns the exit code.
pub fn print_request(script: &Path) -> i32 {
    match request(script) {
        Ok(request) => print_json(&request, 0),
        Err(error) => error.print_with_json(true, None),
    }
}

fn request(script: &Path) -> Result<ScriptRequest, CliError> {
    let script = JobScript::read(script).map_err(|error| not_read(&error))?;
    let directory = system::current_directory()?;
    let request = script.request(&directory, NO_JOB_ID).map_err(|error| not_read(&error))?;
    let allocation = request.job.as_ref().map(|job| AllocationRequest {
        capacity_bytes: job.capacity_bytes,
        striped: job.access.contains(&AccessMode::Striped),
        private: job.access.contains(&AccessMode::Private),
        pool: job.pool.clone(),
        line: (job.position.origin == Origin::Script).then_some(job.position.line),
    });
    let staged = |stages: &[Stage]| stages.iter().map(staged).collect();
    Ok(ScriptRequest {
        has_header: script.header.scheduler.is_some(),
        nodes: script.header.nodes,
        tasks: script.header.task_count(),
        time_limit_s: script.header.time_limit.map(|limit| limit.as_secs()),
        node_local: script.header.node_local,
        allocation,
        persistent: request.persistent.iter().map(|one| one.name.clone()).collect(),
        stage_in: staged(&request.stage_in),
        stage_out: staged(&request.stage_out),
        warnings: request.warnings.iter().map(ToString::to_string).collect(),
    })
}

fn staged(stage: &Stage) -> Staged {
    Staged { pfs_path: stage.pfs_path.clone(), inner_path: stage.inner_path.clone() }
}

fn not_read(error: &forebay_scheduler::Error) -> CliError {
    let unread = CliError::new(error.to_string());
    match error.hint() {
        Some(hint) => unread.with_hint(hint),
        None => unread,
    }
}
