//! The command line: its verbs, and manual pages generated from their descriptions.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{CommandFactory, Parser, Subcommand};
use forebay_doctor::DoctorArguments;
use forebay_terminal::print_error;

use crate::clean::CleanArguments;
use crate::compare::CompareArguments;
use crate::drain::DrainArguments;
use crate::gather::GatherArguments;
use crate::machines::MachinesArguments;
use crate::on_close::WatchArguments;
use crate::options::job::JobArguments;
use crate::persistent::PersistentArguments;
use crate::profile::ProfileArguments;
use crate::run::RunArguments;
use crate::stage::StageArguments;
use crate::status::StatusArguments;

const EXIT_CODES: &str = "\
Exit codes of run:
  the job's own, if it was started (128 + N if signal N ended it)
  122  the job was ended because its time was up, and not all of its data were staged out
  123  the job succeeded, but not all of its data were staged out
  124  the job was ended at its time limit
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
    #[command(
        after_help = "Example:\n  forebay run --dry-run job.sh\n  forebay run --store /nvme/me job.sh"
    )]
    Run(Box<RunArguments>),
    /// Show jobs that run, and what killed ones have left
    #[command(after_help = "Example:\n  forebay status")]
    Status(StatusArguments),
    /// In a job: tell what is drained, or wait until all is that was closed by now
    #[command(after_help = "Example:\n  forebay drain wait\n\n\
        Exit codes of drain:\n  1  something did not arrive, or nothing of the job is drained")]
    Drain(DrainArguments),
    /// Run a command for each file of a directory tree as soon as its last writer has closed it
    #[command(
        after_help = "Example:\n  forebay watch out --on-close '*.nc=python3 plot.py {}' --at-most 2\n\n\
        Exit codes of watch:\n  1  a command failed\n  128 + N  signal N ended it"
    )]
    Watch(WatchArguments),
    /// Stage out what killed jobs have left, and remove it
    #[command(
        after_help = "Example:\n  forebay clean\n  forebay clean --discard 1763761234567\n\n\
        Exit codes of clean:\n  123  not all data arrived; nothing of that job was removed"
    )]
    Clean(CleanArguments),
    /// Make, list and destroy allocations that outlive their jobs
    #[command(
        after_help = "Example:\n  forebay persistent create proj1 --capacity 10GiB --store /nvme/me\n  \
        forebay persistent list\n  forebay persistent destroy proj1\n\n\
        A job uses it with #DW persistentdw name=proj1, as $DW_PERSISTENT_STRIPED_proj1."
    )]
    Persistent(PersistentArguments),
    /// Copy files into or out of a burst buffer, so that nothing is lost on the way
    #[command(
        after_help = "Example:\n  forebay stage out $DW_JOB_STRIPED/results /scratch/me/results\n  \
        forebay stage retry 1763761234567\n\n\
        Exit codes of stage:\n  123  not everything has arrived; forebay stage retry goes on"
    )]
    Stage(StageArguments),
    /// Stage out what the nodes of jobs still hold, through srun
    #[command(after_help = "Example:\n  forebay gather\n  forebay gather --nodes n2,n7\n\n\
        Exit codes of gather:\n  1    a node could not be reached\n  123  not all data arrived")]
    Gather(GatherArguments),
    /// Run a job script on the file system and on the burst buffer, and tell what it gained
    #[command(
        after_help = "Example:\n  forebay compare --pfs-model lustre-small --repeat 3 job.sh\n\n\
        The time an application sees in I/O is taken from the line of JSON with the key \"io_s\" that\n\
        it prints, as Forebay's own kernels do; of other programs from the record of their calls."
    )]
    Compare(CompareArguments),
    /// Record what a command and the programs it starts do with their files
    #[command(
        args_conflicts_with_subcommands = true,
        subcommand_negates_reqs = true,
        after_help = "Example:\n  forebay profile -- mpiexec -n 4 ./a.out\n  \
        forebay profile export 1763761234567\n\n\
        Exit codes of profile:\n  the command's own, if it was started (128 + N if signal N ended it)\n  \
        124  the command was ended at its time limit\n  126  it could not be started\n  127  it was not found"
    )]
    Profile(ProfileArguments),
    /// Find faster settings for a job script, and write it anew
    #[command(disable_help_flag = true)]
    Tune {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        words: Vec<OsString>,
    },
    /// Show where the time of a job's I/O went, or compare several jobs
    #[command(disable_help_flag = true)]
    Report {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        words: Vec<OsString>,
    },
    /// Tell what a job waited for or why it failed, and the next step
    #[command(disable_help_flag = true)]
    Why {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        words: Vec<OsString>,
    },
    /// List the parallel file systems that can be emulated
    #[command(
        after_help = "Example:\n  forebay machines\n  forebay run --pfs-model lustre-small job.sh"
    )]
    Machines(MachinesArguments),
    /// Look at this machine: what Forebay finds, what it means for jobs, and what to do about it
    #[command(after_help = "Example:\n  forebay doctor --store /nvme/me\n\n\
        Exit codes of doctor:\n  1  no job can run here\n  2  the command line is wrong")]
    Doctor(DoctorArguments),
    /// Run what standard input says in one allocation (docs/tune.md)
    #[command(name = "__series", hide = true)]
    Series(JobArguments),
    /// Write the manual pages into a directory
    #[command(name = "__man", hide = true)]
    Man { directory: PathBuf },
    /// Try to mount memory privately
    #[command(name = "__probe-namespace", hide = true)]
    ProbeNamespace {
        #[arg(long)]
        huge: bool,
    },
    /// Become one task of srun
    #[command(name = "__rank", hide = true)]
    Rank {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        program: Vec<OsString>,
    },
}

/// Writes the manual pages, generated from the same descriptions as `--help`.
pub fn write_manual(directory: &Path) -> i32 {
    let command = Arguments::command().disable_help_subcommand(true);
    match clap_mangen::generate_to(command, directory) {
        Ok(()) => 0,
        Err(error) => {
            let directory = directory.display();
            let message = format!("cannot write the manual pages to {directory}: {error}");
            print_error(&message, None, 1)
        }
    }
}
