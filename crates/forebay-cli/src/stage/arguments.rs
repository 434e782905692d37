//! The command line of `forebay stage`.

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
    /// Copy files out of a burst buffer, each whole and synced before it gets its name
    #[command(
        after_help = "Example:\n  forebay stage out $DW_JOB_STRIPED/results /scratch/me/results\n  \
        forebay stage out --background --list results.txt\n\n\
        A source that is a directory stands for its contents, which become the contents of the target."
    )]
    Out(MoveArguments),
    /// Tell how far stagings are
    #[command(
        after_help = "Example:\n  forebay stage status\n  forebay stage status --json 1763761234567\n\n\
        Exit codes of status:\n  1  a journal cannot be read, or there is no such staging"
    )]
    Status(Which),
    /// Wait until stagings are done or have stopped
    #[command(after_help = "Example:\n  forebay stage wait 1763761234567\n\n\
        Exit codes of wait:\n  1    a journal cannot be read, or there is no such staging\n  \
        123  something has not arrived")]
    Wait(Which),
    /// Stop a staging, and take away what is half done
    #[command(after_help = "Example:\n  forebay stage cancel 1763761234567")]
    Cancel(One),
    /// Go on with a staging that was stopped or killed, and try again what failed
    #[command(after_help = "Example:\n  forebay stage retry 1763761234567\n\n\
        The id of a job stands for its stage-out, as in forebay clean.")]
    Retry(Retry),
    /// Forget a staging that does not run, and take away what is half done
    #[command(after_help = "Example:\n  forebay stage forget 1763761234567\n\n\
        What has arrived stays, and so do directories, unfinished ones open to you alone. One that runs has to be \
        cancelled before; what a job has left is brought home by \
        forebay clean.")]
    Forget(Forget),
    /// List stagings, or what failed in them with reason and remedy
    #[command(after_help = "Example:\n  forebay stage list --failed 1763761234567\n\n\
        Exit codes of list:\n  1  a journal cannot be read, or there is no such staging")]
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
pub struct MoveArguments {
    /// File or directory to copy
    #[arg(required_unless_present = "list", requires = "target")]
    pub source: Option<PathBuf>,
    /// Where it goes; a file goes into a directory that is there, or whose name ends in a slash
    pub target: Option<PathBuf>,
    /// Copy what FILE names: source and target on each line, quoted as in a shell where they have blanks; no
    /// comments: # is part of a name
    #[arg(long, value_name = "FILE", conflicts_with = "source")]
    pub list: Option<PathBuf>,
    /// Return at once and print an id, for status, wait and cancel
    #[arg(long)]
    pub background: bool,
    #[command(flatten)]
    pub how: How,
    /// Print one JSON object on what happened
    #[arg(long)]
    pub json: bool,
}

/// How files are copied; it stays with the staging.
#[derive(Debug, Clone, Args, serde::Serialize, serde::Deserialize)]
pub struct How {
    /// When checksums are taken
    #[arg(long, value_name = "WHEN", default_value = "copy")]
    pub verify: VerifyWhen,
    /// Compare the contents of files that are as long and as old as their sources, too
    #[arg(long)]
    pub checksum: bool,
    /// Write no more than so many bytes in a second, for example 500MB/s
    #[arg(long, value_name = "SIZE", value_parser = rate)]
    pub rate: Option<u64>,
    /// Threads that copy [default: 12, and 4 of them large files]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub threads: Option<u32>,
    /// Files larger than this are copied in pieces of it
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = size, hide = true)]
    pub piece: u64,
}

impl Default for How {
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
pub struct Which {
    /// Stagings, or jobs [default: all stagings]
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
    /// Print a JSON list
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct One {
    /// The staging, or the job
    pub id: String,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Forget {
    /// The staging
    pub id: String,
    /// Print one JSON object: what it was
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Retry {
    /// The staging, or the job
    pub id: String,
    /// Replace also destinations that others have changed since the staging stopped, or since the job began
    #[arg(long)]
    pub overwrite_newer: bool,
    /// Return at once; of a staging, not of a job
    #[arg(long)]
    pub background: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct List {
    /// Stagings, or jobs [default: all stagings]
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
    /// What failed, with reason and remedy
    #[arg(long)]
    pub failed: bool,
    /// Print a JSON list
    #[arg(long)]
    pub json: bool,
}
