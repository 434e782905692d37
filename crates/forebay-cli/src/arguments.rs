//! The command line: its verbs, and the manual pages and completions generated from their descriptions.
//! Assumes that nothing has to be undone: `parse` ends the process if the words are wrong.
//! Never shows hidden verbs, which other parts of Forebay call, in help or manual pages.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;
use forebay_doctor::DoctorArguments;
use forebay_host::exit_codes::FAILED;
use forebay_host::files;
use forebay_terminal::print_error;

use crate::clean::CleanArguments;
use crate::compare::CompareArguments;
use crate::config::{ConfigArguments, Page};
use crate::configuration;
use crate::conformance::ConformanceArguments;
use crate::control::ControlArguments;
use crate::drain::DrainArguments;
use crate::engine::EngineArguments;
use crate::exit_codes;
use crate::gather::GatherArguments;
use crate::jobs::JobsArguments;
use crate::machines::MachinesArguments;
use crate::mount::MountArguments;
use crate::on_close::WatchArguments;
use crate::options::job::JobArguments;
use crate::options::nodes::NodeArguments;
use crate::persistent::PersistentArguments;
use crate::profile::ProfileArguments;
use crate::run::RunArguments;
use crate::stage::StageArguments;
use crate::status::StatusArguments;

/// A burst buffer and I/O tuner for unmodified MPI jobs.
#[derive(Debug, Parser)]
#[command(name = "forebay", version, arg_required_else_help = true)]
pub struct Arguments {
    #[command(subcommand)]
    pub verb: Verb,
}

#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run a job script and carry out its #DW directives
    #[command(
        after_help = "Example:\n  forebay run --dry-run job.sh\n  forebay run --store /nvme/me job.sh"
    )]
    Run(Box<RunArguments>),
    /// List running jobs, leftovers of killed jobs, and persistent allocations
    #[command(
        after_help = "Example:\n  forebay status\n\nforebay jobs also lists jobs that have ended."
    )]
    Status(StatusArguments),
    /// List this user's jobs, newest first, and what to do about those that need it
    #[command(after_help = "Example:\n  forebay jobs --limit 5\n\n\
        forebay status shows only what exists now: running jobs, leftovers, persistent allocations.\n\
        A job that ended with --no-profile is not listed. Forebay keeps the newest 200 records.")]
    Jobs(JobsArguments),
    /// Within a job: show how far the drain is, or wait for it
    #[command(after_help = "Example:\n  forebay drain wait")]
    Drain(DrainArguments),
    /// Run a command for each file of a directory tree as soon as its last writer closes it
    #[command(
        after_help = "Example:\n  forebay watch out --on-close '*.nc=python3 plot.py {}' --jobs 2"
    )]
    Watch(WatchArguments),
    /// Stage out the results of killed jobs, and remove their leftovers
    #[command(
        after_help = "Example:\n  forebay clean\n  forebay clean last\n  forebay clean --discard 1763761234567"
    )]
    Clean(CleanArguments),
    /// Create, list and destroy allocations that outlive their jobs
    #[command(
        after_help = "Example:\n  forebay persistent create proj1 --capacity 10GiB --store /nvme/me\n  \
        forebay persistent list\n  forebay persistent destroy proj1\n\n\
        A job uses it with #DW persistentdw name=proj1, as $DW_PERSISTENT_STRIPED_proj1."
    )]
    Persistent(PersistentArguments),
    /// Copy files into or out of a burst buffer; an interrupted copy can be resumed
    #[command(
        after_help = "Example:\n  forebay stage out $DW_JOB_STRIPED/results /scratch/me/results\n  \
        forebay stage retry 1763761234567"
    )]
    Stage(StageArguments),
    /// List the file systems that jobs on several nodes can use, or bundle one
    #[command(
        after_help = "Example:\n  forebay engine list\n  forebay engine bundle --output /scratch/me/ceph.tar.gz"
    )]
    Engine(EngineArguments),
    /// Look after a site's pools: show, drain, deliver kept results, remove leftovers
    #[command(after_help = "Example:\n  forebay control status\n  forebay control reap\n\n\
        For the user of slurmctld, or root, on the control host.")]
    Control(ControlArguments),
    /// Stage out what other nodes of jobs still hold, through srun
    #[command(after_help = "Example:\n  forebay gather\n  forebay gather --nodes n2,n7")]
    Gather(GatherArguments),
    /// Run a job script with and without its burst buffer, and compare the times
    #[command(
        after_help = "Example:\n  forebay compare --pfs-model lustre-small --repeat 3 job.sh\n\n\
        The I/O time comes from the record of the program's calls. If a program prints a line of JSON\n\
        with the key \"io_s\", as Forebay's kernels do, the time comes from there."
    )]
    Compare(Box<CompareArguments>),
    /// Record the I/O of a command and of the programs that it starts
    #[command(
        args_conflicts_with_subcommands = true,
        subcommand_negates_reqs = true,
        after_help = "Example:\n  forebay profile -- mpiexec -n 4 ./a.out\n  \
        forebay profile export 1763761234567"
    )]
    Profile(ProfileArguments),
    /// Find faster I/O settings for a job, and write a script with them
    #[command(disable_help_flag = true)]
    Tune {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        words: Vec<OsString>,
    },
    /// Predict the I/O time of a job on each storage of a machine, and how much burst buffer it needs
    #[command(disable_help_flag = true)]
    Plan {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        words: Vec<OsString>,
    },
    /// Show where a job spent its I/O time, or compare several jobs
    #[command(disable_help_flag = true)]
    Report {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        words: Vec<OsString>,
    },
    /// Explain in one paragraph why a job was slow or failed, and the next step
    #[command(disable_help_flag = true)]
    Why {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        words: Vec<OsString>,
    },
    /// Measure a file system with the phases of a known benchmark: IO500
    #[command(disable_help_flag = true)]
    Bench {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        words: Vec<OsString>,
    },
    /// List the parallel file systems that can be emulated
    #[command(
        after_help = "Example:\n  forebay machines\n  forebay run --pfs-model lustre-small job.sh"
    )]
    Machines(MachinesArguments),
    /// Check this machine: what Forebay finds, what it means for jobs, and what to change
    #[command(
        after_help = "Example:\n  forebay doctor --store /nvme/me\n  forebay doctor --engine ceph --nodes n1,n2"
    )]
    Doctor {
        #[command(flatten)]
        machine: DoctorArguments,
        #[command(flatten, next_help_heading = "Engine")]
        nodes: Box<NodeArguments>,
    },
    /// Show each setting, its value, and the file or variable that sets it
    #[command(after_help = "Example:\n  forebay config\n  forebay config --json job.sh")]
    Config(ConfigArguments),
    /// Run what standard input says in one allocation (docs/explanation/tuner.md)
    #[command(name = "__series", hide = true)]
    Series(Box<JobArguments>),
    /// Do what a JSON file says with a Ceph cluster; print one line of JSON for each action
    #[command(name = "__ceph", hide = true)]
    Ceph { file: PathBuf },
    /// Show a directory of CephFS in the foreground, until the mount is detached
    #[command(name = "__mount", hide = true)]
    Mount(MountArguments),
    /// Check what a file system promises on one node and across nodes (docs/development/conformance.md)
    #[command(name = "__conformance", hide = true)]
    Conformance(ConformanceArguments),
    /// Write the manual pages into a directory
    #[command(name = "__man", hide = true)]
    Man { directory: PathBuf },
    /// Write the completions of bash, zsh and fish below a directory, where these look in /usr/share
    #[command(name = "__completions", hide = true)]
    Completions { directory: PathBuf },
    /// Print a page of the reference
    #[command(name = "__reference", hide = true)]
    Reference { page: Page },
    /// Write the schemas of JSON output into a directory
    #[command(name = "__schemas", hide = true)]
    Schemas { directory: PathBuf },
    /// Print what a job script asks for, without a look at the files that it names
    #[command(name = "__request", hide = true)]
    Request { script: PathBuf },
    /// Try to mount memory privately
    #[command(name = "__probe-namespace", hide = true)]
    ProbeNamespace {
        #[arg(long)]
        huge: bool,
    },
    /// Serve one node of a job: requests on standard input
    #[command(name = "__node", hide = true)]
    Node,
    /// Become one task of srun
    #[command(name = "__rank", hide = true)]
    Rank {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        program: Vec<OsString>,
    },
}

/// The command line with the exit codes in each help.
pub fn command() -> clap::Command {
    configuration::with_values_of_flags(exit_codes::append(Arguments::command(), ""))
}

/// The arguments in `words` and in the configuration; ends the process with a message if the words are wrong.
///
/// # Errors
/// The exit code, after the errors of the configuration were printed.
pub fn parse(words: Vec<OsString>) -> Result<Arguments, i32> {
    let matches = configuration::matches(command(), words)?;
    Ok(Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit()))
}

/// Writes the manual pages, generated from the same descriptions as `--help`.
pub fn write_manual(directory: &Path) -> i32 {
    let command = command().disable_help_subcommand(true);
    match clap_mangen::generate_to(command, directory) {
        Ok(()) => 0,
        Err(error) => {
            let directory = directory.display();
            let message = format!("cannot write the manual pages to {directory}: {error}");
            print_error(&message, None, FAILED)
        }
    }
}

/// The commands that a user types, at all levels; those that other parts of Forebay call are left out.
fn visible_command() -> clap::Command {
    let visible = visible_subcommands(&Arguments::command());
    clap::Command::new("forebay").subcommands(visible)
}

fn visible_subcommands(command: &clap::Command) -> Vec<clap::Command> {
    let visible = command.get_subcommands().filter(|one| !one.is_hide_set());
    let without_hidden = |one: &clap::Command| {
        if !one.get_subcommands().any(clap::Command::is_hide_set) {
            return one.clone();
        }
        // clap cannot remove a subcommand.
        let arguments = one.get_arguments().cloned();
        let about = one.get_about().cloned().unwrap_or_default();
        let bare = clap::Command::new(one.get_name().to_owned()).about(about).args(arguments);
        bare.subcommands(visible_subcommands(one))
    };
    visible.map(without_hidden).collect()
}

/// Writes completions for bash, zsh and fish below `directory`, which is a `share` directory.
pub fn write_completions(directory: &Path) -> i32 {
    let shells = [
        (Shell::Bash, "bash-completion/completions"),
        (Shell::Zsh, "zsh/site-functions"),
        (Shell::Fish, "fish/vendor_completions.d"),
    ];
    for (shell, place) in shells {
        let place = directory.join(place);
        let written = files::make_directories(&place, 0o755)
            .map_err(|error| error.to_string())
            .and_then(|_| {
                clap_complete::generate_to(shell, &mut visible_command(), "forebay", &place)
                    .map_err(|error| {
                        format!("cannot write completions to {}: {error}", place.display())
                    })
            });
        if let Err(message) = written {
            return print_error(&message, None, FAILED);
        }
    }
    0
}
