//! Why a job was not started or could not be completed, with the exit code and the remedy.
//! A job that ran has an error only if Forebay panicked or lost sight of its processes: else the outcome has the
//! failures.

use std::path::PathBuf;

use forebay_directive::Position;
use forebay_host::exit_codes::{
    COMMAND_NOT_FOUND, COMMAND_NOT_STARTED, FAILED_BEFORE_THE_JOB, STAGE_OUT_INCOMPLETE,
};
use forebay_mover::{Failure, failure_lines};
use forebay_persistent::Error as PersistentError;

const COMMAND_HINT: &str =
    "name a program that is executable and in PATH: forebay profile -- mpiexec -n 4 ./a.out";

/// Why a job was not started, or could not be completed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed.
    #[error(transparent)]
    Host(#[from] forebay_host::Error),
    /// Staging cannot continue.
    #[error(transparent)]
    Staging(#[from] forebay_mover::Error),
    /// The store reported an error.
    #[error(transparent)]
    Store(#[from] forebay_store::Error),
    /// The script is not a valid job.
    #[error(transparent)]
    Script(#[from] forebay_scheduler::Error),
    /// The working directory in the script's header does not exist.
    #[error("the working directory {} that the script's header names (--chdir, -cwd, -d or --cwd) does not exist", .0.display())]
    NoDirectory(PathBuf),
    /// The destination of a stage-out is in the allocation, which is removed afterwards.
    #[error("{}: {}: {command}: the destination {destination} is in the allocation itself", script.display(), position.on_line())]
    StageOutInside {
        /// The script.
        script: PathBuf,
        /// The position of the directive.
        position: Position,
        /// The word of the directive.
        command: &'static str,
        /// The destination in the directive.
        destination: String,
    },
    /// The script expands a variable that it would not find.
    #[error("{}: {position}: ${name} is not set in this job", script.display())]
    UnsetVariable {
        /// The script.
        script: PathBuf,
        /// The variable in it.
        position: Position,
        /// Its name.
        name: String,
        /// What to write.
        hint: String,
    },
    /// No engine has this name, or none keeps this request.
    #[error("no engine is or keeps {0:?}")]
    NoEngine(String),
    /// The engine cannot store files on the node that creates them.
    #[error("placement=local: the engine {0} does not choose the node that stores a file")]
    NoLocalFiles(String),
    /// Other nodes cannot be reached.
    #[error("{0}")]
    Launcher(String),
    /// Nodes still hold something of the job.
    #[error("not removed: {}", .0.join("; "))]
    NodesLeft(Vec<String>),
    /// Forebay itself panicked, and has printed why.
    #[error("forebay ended unexpectedly: this is a defect of Forebay")]
    Panicked {
        /// The kept allocation.
        kept: Option<PathBuf>,
    },
    /// A persistent allocation cannot be made or destroyed without a burst buffer.
    #[error("{}: {}: {command} {name}: there is no burst buffer with --no-burst-buffer", script.display(), position.on_line())]
    NoBurstBuffer {
        /// The script.
        script: PathBuf,
        /// The directive.
        position: Position,
        /// Its word.
        command: &'static str,
        /// The allocation.
        name: String,
    },
    /// A stage-in cannot be planned.
    #[error(transparent)]
    StageInPlan(#[from] forebay_staging::Error),
    /// The allocation or the view cannot be created.
    #[error(transparent)]
    Engine(#[from] forebay_engine::Error),
    /// The nodes get no namespace.
    #[error(transparent)]
    Cluster(#[from] forebay_cluster::Error),
    /// The job's record cannot be used.
    #[error(transparent)]
    Record(#[from] forebay_record::Error),
    /// The request server cannot run.
    #[error(transparent)]
    RequestServer(#[from] forebay_request_server::Error),
    /// A job cannot be cleaned.
    #[error(transparent)]
    Recovery(#[from] forebay_recovery::Error),
    /// Some files could not be staged in.
    #[error("stage-in failed for {} of the files, so the job was not started:\n{}", .0.len(), list(.0))]
    StageIn(Vec<Failure>),
    /// A system call failed while the job ran or its processes were ended.
    #[error("lost sight of the job: {error}")]
    ProcessesUnknown {
        /// The failed system call.
        error: forebay_host::Error,
        /// The kept allocation.
        kept: Option<PathBuf>,
    },
    /// A persistent allocation cannot be created, used or destroyed.
    #[error(transparent)]
    Persistent(#[from] PersistentError),
    /// The I/O profile cannot be used.
    #[error(transparent)]
    Profile(#[from] forebay_profile::Error),
    /// `forebay profile` was called without a command.
    #[error("there is no command to run")]
    NoCommand,
    /// The command of `forebay profile` cannot be started.
    #[error(transparent)]
    CommandNotStarted(forebay_host::Error),
    /// A drain or the commands on close cannot run.
    #[error(transparent)]
    OnClose(#[from] forebay_onclose::Error),
    /// A signal arrived before the job started.
    #[error("stopped by a signal before the job was started")]
    Stopped,
}

impl Error {
    /// Exit code of `forebay run` for this error.
    #[must_use]
    pub fn exit_code(&self) -> i32 {
        match self {
            Self::ProcessesUnknown { .. } => STAGE_OUT_INCOMPLETE,
            Self::CommandNotStarted(error) if error.is_not_found() => COMMAND_NOT_FOUND,
            Self::CommandNotStarted(_) => COMMAND_NOT_STARTED,
            _ => FAILED_BEFORE_THE_JOB,
        }
    }

    /// The remedy.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::ProcessesUnknown { kept: Some(kept), .. }
            | Self::Panicked { kept: Some(kept) } => {
                let kept = kept.display();
                return Some(format!("nothing was deleted: the data are in {kept}"));
            }
            Self::UnsetVariable { hint, .. } => hint,
            Self::NoEngine(_) => {
                "forebay doctor --engine NAME shows what an engine promises; write --engine ceph"
            }
            Self::NoLocalFiles(_) => "remove placement=local, or use the engine ceph",
            Self::Launcher(_) => {
                "name a way to reach nodes with --launcher, for example --launcher ssh"
            }
            Self::NodesLeft(_) => "forebay clean removes it, once the nodes can be reached",
            Self::NoBurstBuffer { .. } => {
                "run a copy of the script without that line, or make the allocation beforehand: forebay persistent create"
            }
            Self::StageOutInside { .. } => "choose a destination on the file system",
            Self::NoDirectory(_) => "make it, or correct the line in the header",
            Self::NoCommand | Self::CommandNotStarted(_) => COMMAND_HINT,
            Self::Host(error) => return error.hint().map(str::to_owned),
            Self::Script(error) => return error.hint().map(str::to_owned),
            Self::Engine(error) => return error.hint(),
            Self::Cluster(error) => return error.hint(),
            Self::RequestServer(error) => return error.hint(),
            Self::Profile(error) => return error.hint().map(str::to_owned),
            Self::StageIn(_) => {
                "nothing was changed on the file system; correct the cause and run again"
            }
            Self::Store(error) => return Some(error.hint()),
            Self::Staging(error) => return error.hint(),
            Self::StageInPlan(error) => return error.hint(),
            Self::Record(error) => return error.hint(),
            Self::OnClose(error) => return error.hint(),
            Self::Persistent(error) => return error.hint(),
            Self::Recovery(error) => return error.hint(),
            Self::Stopped | Self::ProcessesUnknown { .. } | Self::Panicked { .. } => return None,
        };
        Some(hint.to_owned())
    }
}

/// Formats some failures, one per line.
fn list(failures: &[Failure]) -> String {
    let lines = failure_lines(failures, |path| path.display().to_string());
    lines.iter().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}
