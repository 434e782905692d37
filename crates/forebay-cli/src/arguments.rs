//! The command line.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args, CommandFactory, Parser, Subcommand};

use crate::messages;

const EXIT_CODES: &str = "\
Exit codes of run:
  the job's own, if it was started (128 + N if signal N ended it)
  123  the job succeeded, but not all of its data were staged out
  125  the job was not started: script, allocation or stage-in failed
  2    the command line is wrong";

/// A burst buffer for unmodified MPI jobs.
#[derive(Debug, Parser)]
#[command(name = "forebay", version, after_help = EXIT_CODES, arg_required_else_help = true)]
pub struct Arguments {
    #[command(subcommand)]
    pub verb: Verb,
}

#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run a job script with its #DW directives obeyed
    #[command(after_help = "Example:\n  forebay run --store /nvme/me job.sh")]
    Run(RunArguments),
    /// Run a job script on the file system and on the burst buffer, and tell what it gained
    #[command(
        after_help = "Example:\n  forebay compare --pfs-model machines/lustre-small.toml --repeat 3 job.sh\n\n\
        The time an application sees in I/O is taken from the line of JSON with the key \"io_s\" that\n\
        it prints, as Forebay's own kernels do; of other programs it is not known."
    )]
    Compare(CompareArguments),
    /// Write the manual pages into a directory
    #[command(name = "__man", hide = true)]
    Man { directory: PathBuf },
    /// Become one task of srun
    #[command(name = "__rank", hide = true)]
    Rank {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        program: Vec<OsString>,
    },
}

#[derive(Debug, Args)]
pub struct RunArguments {
    /// The job script
    pub script: PathBuf,
    /// Words for the script, behind --
    #[arg(last = true, value_name = "ARGUMENT")]
    pub arguments: Vec<OsString>,
    /// Directory for allocations [default: $FOREBAY_STORE, else memory, in /dev/shm]
    #[arg(long, value_name = "DIR")]
    pub store: Option<PathBuf>,
    /// Take the #DW lines for comments, as a machine without a burst buffer does
    #[arg(long)]
    pub no_burst_buffer: bool,
    /// Write the job's standard output to FILE
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print one JSON object on what happened; the job's own output goes to standard error
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub emulation: EmulationArguments,
}

#[derive(Debug, Args)]
pub struct EmulationArguments {
    /// Emulate the parallel file system that FILE describes
    #[arg(long, value_name = "FILE")]
    pub pfs_model: Option<PathBuf>,
    /// Directory that is emulated; may be repeated [default: the current directory]
    #[arg(long, value_name = "DIR", requires = "pfs_model")]
    pub pfs_root: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub struct CompareArguments {
    /// The job script
    pub script: PathBuf,
    /// Directory for allocations [default: $FOREBAY_STORE, else memory, in /dev/shm]
    #[arg(long, value_name = "DIR")]
    pub store: Option<PathBuf>,
    /// How often each way is run; the table shows medians
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub repeat: u32,
    /// Leave out the runs on the real file system (only with --pfs-model)
    #[arg(long, requires = "pfs_model")]
    pub no_real: bool,
    /// Print JSON instead of the table
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub emulation: EmulationArguments,
}

/// The store named on the command line, else by the site in `FOREBAY_STORE`.
pub fn store(given: Option<&PathBuf>) -> Option<PathBuf> {
    let of_site = || std::env::var_os("FOREBAY_STORE").filter(|value| !value.is_empty());
    given.cloned().or_else(|| of_site().map(PathBuf::from))
}

/// Writes the manual pages, made from the same descriptions as `--help`.
pub fn write_manual(directory: &Path) -> i32 {
    let command = Arguments::command().disable_help_subcommand(true);
    match clap_mangen::generate_to(command, directory) {
        Ok(()) => 0,
        Err(error) => {
            let directory = directory.display();
            let message = format!("cannot write the manual pages to {directory}: {error}");
            messages::fail(&message, None, 1)
        }
    }
}
