//! The command line of `forebay stage`.
//! Assumes that `CopyArguments` stays readable: the journal of each staging holds it.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use forebay_mover::PIECE_BYTES;

use crate::options::staging::VerifyWhen;
use crate::parsers::{rate, size};

#[derive(Debug, Args)]
pub struct StageArguments {
    #[command(subcommand)]
    pub verb: StageVerb,
}

#[derive(Debug, Subcommand)]
pub enum StageVerb {
    /// Copy files from the file system into a burst buffer
    #[command(after_help = "Example:\n  forebay stage in /scratch/me/input $DW_JOB_STRIPED/input")]
    In(MoveArguments),
    /// Copy files out of a burst buffer; each is complete and synced before it gets its name
    #[command(
        after_help = "Example:\n  forebay stage out $DW_JOB_STRIPED/results /scratch/me/results\n  \
        forebay stage out --background --list results.txt\n  \
        forebay stage out --job 1763761234567 results/wrfout_d01 /scratch/me/rescued/\n\n\
        If the source is a directory, its contents become the contents of the target."
    )]
    Out(OutArguments),
    /// Show the progress of stagings
    #[command(
        after_help = "Example:\n  forebay stage status\n  forebay stage status --json 1763761234567"
    )]
    Status(SelectionArguments),
    /// Wait until stagings are complete or have stopped
    #[command(after_help = "Example:\n  forebay stage wait 1763761234567")]
    Wait(SelectionArguments),
    /// Stop a staging, and remove its partial files
    #[command(after_help = "Example:\n  forebay stage cancel 1763761234567")]
    Cancel(CancelArguments),
    /// Resume a staging that was stopped or killed, and retry failed files
    #[command(after_help = "Example:\n  forebay stage retry last\n\n\
        A job id means the stage-out of that job, as in forebay clean.")]
    Retry(Retry),
    /// Delete the record of a stopped staging, and its partial files
    #[command(after_help = "Example:\n  forebay stage forget 1763761234567\n\n\
        Completed files and directories stay; only you can open unfinished directories. Cancel a running staging first. \
        For the leftovers of a job use forebay clean.")]
    Forget(Forget),
    /// List stagings, or their failed files with reason and remedy
    #[command(after_help = "Example:\n  forebay stage list --failed 1763761234567")]
    List(List),
    /// Carry out a staging that is planned
    #[command(name = "__carry-out", hide = true)]
    CarryOut {
        id: String,
        #[arg(long)]
        keep_changed: bool,
        #[arg(long)]
        keep_newer: bool,
    },
}

#[derive(Debug, Args)]
pub struct OutArguments {
    /// Copy from the allocation of this job: SOURCE is a path in its striped namespace, or begins with striped/ or
    /// private/
    #[arg(long, value_name = "ID", conflicts_with = "list")]
    pub job: Option<String>,
    #[command(flatten)]
    pub what: MoveArguments,
}

#[derive(Debug, Clone, Args)]
pub struct MoveArguments {
    /// File or directory to copy
    #[arg(required_unless_present = "list", requires = "target")]
    pub source: Option<PathBuf>,
    /// Destination; a file is copied into an existing directory, or into one whose name ends in a slash
    pub target: Option<PathBuf>,
    /// File with a source and a target on each line. Quote names with blanks as in a shell; # does not begin a
    /// comment
    #[arg(long, value_name = "FILE", conflicts_with = "source")]
    pub list: Option<PathBuf>,
    /// Return at once and print an id for status, wait and cancel
    #[arg(long)]
    pub background: bool,
    #[command(flatten)]
    pub how: CopyArguments,
    /// Print one JSON object about the staging
    #[arg(long)]
    pub json: bool,
}

/// How files are copied; it stays with the staging.
#[derive(Debug, Clone, Args, serde::Serialize, serde::Deserialize)]
pub struct CopyArguments {
    /// When to take checksums
    #[arg(long, value_name = "WHEN", default_value = "copy")]
    pub verify: VerifyWhen,
    /// Compare contents also if size and modification time match the source
    #[arg(long)]
    pub checksum: bool,
    /// Limit to so many bytes per second, for example 500MB/s
    #[arg(long, value_name = "SIZE", value_parser = rate)]
    pub rate: Option<u64>,
    /// Number of copying threads [default: 12, of which 4 copy large files]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub threads: Option<u32>,
    /// Files larger than this are copied in pieces of it
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = size, hide = true)]
    pub piece: u64,
}

impl Default for CopyArguments {
    fn default() -> Self {
        Self {
            verify: VerifyWhen::Copy,
            checksum: false,
            rate: None,
            threads: None,
            piece: PIECE_BYTES,
        }
    }
}

#[derive(Debug, Args)]
pub struct SelectionArguments {
    /// Stagings, or jobs: id, part of an id, or last [default: all stagings]
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
    /// Print a JSON list
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct CancelArguments {
    /// The staging, or the job: id, part of an id, or last
    pub id: String,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Forget {
    /// The staging: id, part of an id, or last
    pub id: String,
    /// Print one JSON object: what it was
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Retry {
    /// The staging, or the job: id, part of an id, or last
    pub id: String,
    /// Also replace destinations that have changed since the staging stopped or the job began
    #[arg(long)]
    pub overwrite_newer: bool,
    /// Return at once; for a staging, not for a job
    #[arg(long)]
    pub background: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct List {
    /// Stagings, or jobs: id, part of an id, or last [default: all stagings]
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
    /// List failed files, with reason and remedy
    #[arg(long)]
    pub failed: bool,
    /// Print a JSON list
    #[arg(long)]
    pub json: bool,
}
