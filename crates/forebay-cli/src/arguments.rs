//! The command line.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use clap::{Args, CommandFactory, Parser, Subcommand};
use forebay_control::{DrainWish, Map, OnClose, Wishes, parse_time};
use forebay_directive::parse_size;
use forebay_host::files;

use crate::deadline::DeadlineArguments;
use crate::gather::GatherArguments;
use crate::messages;
use crate::stage::{JobStagingArguments, StageArguments};

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
    /// Move files into or out of a burst buffer, so that nothing is lost on the way
    #[command(
        after_help = "Example:\n  forebay stage out $DW_JOB_STRIPED/results /scratch/me/results\n  \
        forebay stage retry 1763761234567\n\n\
        Exit codes of stage:\n  123  not everything has arrived; forebay stage retry goes on"
    )]
    Stage(StageArguments),
    /// Stage out what the nodes of jobs still hold, through srun
    #[command(
        after_help = "Example:\n  forebay gather\n  forebay gather --nodes n2,n7\n\n\
        Exit codes of gather:\n  1    a node could not be reached\n  123  not all data arrived"
    )]
    Gather(GatherArguments),
    /// Run a job script on the file system and on the burst buffer, and tell what it gained
    #[command(
        after_help = "Example:\n  forebay compare --pfs-model machines/lustre-small.toml --repeat 3 job.sh\n\n\
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

#[derive(Debug, Args)]
pub struct RunArguments {
    #[command(flatten)]
    pub job: JobArguments,
    #[command(flatten)]
    pub deadline: DeadlineArguments,
    /// Keep the allocation at the end
    #[arg(long)]
    pub keep: bool,
    /// Say what would happen, with sizes; do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Write the job's standard output to FILE
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Stage out each file that matches as soon as it is closed, while the job computes; WHAT is
    /// PATTERN[,PATTERN...][:rate=500MB/s][:newest][:to=DIR]; may be repeated [default: $FOREBAY_DRAIN]
    #[arg(long, value_name = "WHAT", value_parser = DrainWish::parse, conflicts_with = "no_burst_buffer")]
    pub drain: Vec<DrainWish>,
    /// The same, for all files below $PERSIST_DIR to $PFS_DIR, as Spectral does it on Summit
    #[arg(long, conflicts_with = "no_burst_buffer")]
    pub spectral: bool,
    /// Run COMMAND in the job for each file in the burst buffer that matches, as soon as its last writer has
    /// closed it; {} in it is the file; may be repeated
    #[arg(long, value_name = "PATTERN=COMMAND", value_parser = OnClose::parse, conflicts_with = "no_burst_buffer")]
    pub on_close: Vec<OnClose>,
    #[command(flatten)]
    pub staging: JobStagingArguments,
    #[command(flatten)]
    pub handling: RunHandlingArguments,
    /// Do not record what the job's programs do with their files. Open MPI and MPICH then get no
    /// MPICH_MPIIO_HINTS either, unless the script preloads libforebay_mpi itself
    #[arg(long)]
    pub no_profile: bool,
    /// Record each of their I/O calls too
    #[arg(long, conflicts_with = "no_profile")]
    pub trace: bool,
    /// Print one JSON object on what happened; the job's own output goes to standard error
    #[arg(long)]
    pub json: bool,
}

/// What a job is, and where it lies.
#[derive(Debug, Args)]
pub struct JobArguments {
    /// The job script
    pub script: PathBuf,
    /// Words for the script, behind --
    #[arg(last = true, value_name = "ARGUMENT")]
    pub arguments: Vec<OsString>,
    #[command(flatten)]
    pub space: SpaceArguments,
    /// Take the #DW lines for comments, as a machine without a burst buffer does
    #[arg(long)]
    pub no_burst_buffer: bool,
    /// Say why each thing is decided as it is
    #[arg(long)]
    pub explain: bool,
    /// End the job after TIME instead of the script's limit: minutes, h:m:s, d-h:m:s; 0: no limit
    #[arg(short, long, value_name = "TIME", value_parser = time)]
    pub time: Option<Duration>,
    /// Burst buffer of a job without directives, as for sbatch: capacity=1G access=striped type=scratch
    #[arg(long, value_name = "TEXT")]
    pub bb: Option<String>,
    /// The same: a file of #DW lines
    #[arg(long, value_name = "FILE", conflicts_with = "bb")]
    pub bbf: Option<PathBuf>,
    /// Show the job the directory DIR as PATH, which need not exist; may be repeated
    #[arg(long, value_name = "PATH=DIR", value_parser = map)]
    pub map: Vec<Map>,
    #[command(flatten)]
    pub emulation: EmulationArguments,
}

#[derive(Debug, Args)]
pub struct ProfileArguments {
    #[command(subcommand)]
    pub verb: Option<ProfileVerb>,
    /// The command, behind --
    #[arg(last = true, value_name = "COMMAND", required = true)]
    pub command: Vec<OsString>,
    /// Record each I/O call too
    #[arg(long)]
    pub trace: bool,
    /// End the command after TIME: minutes, h:m:s, d-h:m:s; 0: no limit
    #[arg(short, long, value_name = "TIME", value_parser = time)]
    pub time: Option<Duration>,
    /// Print one JSON object on what happened; the command's own output goes to standard error
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum ProfileVerb {
    /// Write what was recorded about a job as a Darshan log
    #[command(disable_help_flag = true)]
    Export {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        words: Vec<OsString>,
    },
}

#[derive(Debug, Args)]
pub struct SpaceArguments {
    /// Where allocations lie: a directory, memory, or memory:huge (huge pages, for few large files)
    /// [default: $FOREBAY_STORE, else local NVMe, else memory]
    #[arg(long, value_name = "STORE")]
    pub store: Option<PathBuf>,
    /// Capacity instead of the script's, for example 4GiB
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub capacity: Option<u64>,
    /// Do not start with less capacity than is asked for
    #[arg(long)]
    pub strict_capacity: bool,
    /// Do without user namespaces: memory is then a directory in /dev/shm, its size not enforced
    #[arg(long)]
    pub no_userns: bool,
}

#[derive(Debug, Args)]
pub struct StatusArguments {
    /// Print a JSON list
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct RunHandlingArguments {
    /// So many of these commands at a time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024), requires = "on_close")]
    pub on_close_at_most: u32,
    /// Run one that failed so often again
    #[arg(long, value_name = "K", default_value_t = 0, requires = "on_close")]
    pub on_close_retries: u32,
    /// Write their output to FILE [default: standard error]
    #[arg(long, value_name = "FILE", requires = "on_close")]
    pub on_close_log: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct WatchArguments {
    /// Directories to watch, with all below them
    #[arg(required = true, value_name = "DIR")]
    pub directories: Vec<PathBuf>,
    /// The command, run by sh; {} in it is the file; may be repeated
    #[arg(long, required = true, value_name = "PATTERN=COMMAND", value_parser = OnClose::parse)]
    pub on_close: Vec<OnClose>,
    /// So many commands at a time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub at_most: u32,
    /// Run a command that failed so often again
    #[arg(long, value_name = "K", default_value_t = 0)]
    pub retries: u32,
    /// Write the commands' output to FILE [default: standard error]
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Print one JSON object on what happened
    #[arg(long)]
    pub json: bool,
    /// Started by forebay run
    #[arg(long, hide = true)]
    pub beside_job: bool,
    /// Started by a program that does itself what the commands only name
    #[arg(long, hide = true)]
    pub calls: bool,
}

impl WatchArguments {
    /// Does whoever started us speak to us over our standard streams?
    pub fn is_started(&self) -> bool {
        self.beside_job || self.calls
    }
}

#[derive(Debug, Args)]
pub struct DrainArguments {
    #[command(subcommand)]
    pub verb: DrainVerb,
}

#[derive(Debug, Subcommand)]
pub enum DrainVerb {
    /// Tell how far it is
    #[command(after_help = "Example:\n  forebay drain status --json")]
    Status {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Wait until everything that is closed by now has been copied, and tell
    #[command(after_help = "Example:\n  forebay drain wait")]
    Wait {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub struct CleanArguments {
    /// Jobs to clean [default: all that left something on this machine, except what was kept or stages
    /// nothing out]
    #[arg(value_name = "JOB")]
    pub jobs: Vec<String>,
    /// Delete without staging out
    #[arg(long)]
    pub discard: bool,
    /// End processes of the job that are still alive
    #[arg(long)]
    pub kill: bool,
    #[command(flatten)]
    pub staging: JobStagingArguments,
    /// Print a JSON object for each job
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct PersistentArguments {
    #[command(subcommand)]
    pub verb: PersistentVerb,
}

#[derive(Debug, Subcommand)]
pub enum PersistentVerb {
    /// Make a persistent allocation
    #[command(
        after_help = "Example:\n  forebay persistent create proj1 --capacity 10GiB --store /nvme/me\n  \
        forebay persistent create proj1 --capacity 1TiB --group climate --mode 0770 --expires 30d"
    )]
    Create(CreateArguments),
    /// List persistent allocations
    #[command(after_help = "Example:\n  forebay persistent list --store /nvme/me")]
    List(FoundArguments),
    /// Show one persistent allocation and the jobs that use it
    #[command(after_help = "Example:\n  forebay persistent show proj1")]
    Show {
        /// Its name
        name: String,
        #[command(flatten)]
        found: FoundArguments,
    },
    /// Destroy a persistent allocation with all that is in it
    #[command(after_help = "Example:\n  forebay persistent destroy proj1")]
    Destroy {
        /// Its name
        name: String,
        /// Delete what killed jobs were to stage out, too
        #[arg(long)]
        hurry: bool,
        #[command(flatten)]
        found: FoundArguments,
    },
}

#[derive(Debug, Args)]
pub struct FoundArguments {
    /// The store to look in [default: $FOREBAY_STORE, local NVMe, /dev/shm, and where you have made some]
    #[arg(long, value_name = "STORE")]
    pub store: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct CreateArguments {
    /// Its name: a letter, then letters, digits, dots, _ and -
    pub name: String,
    /// Least size, for example 10GiB
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub capacity: u64,
    /// Do not make one with less capacity
    #[arg(long)]
    pub strict_capacity: bool,
    /// The directory it is made in [default: $FOREBAY_STORE, else local NVMe, else /dev/shm]
    #[arg(long, value_name = "STORE")]
    pub store: Option<PathBuf>,
    /// How the nodes of a job see it
    #[arg(long, value_name = "MODE", default_value = "striped", value_parser = ["striped"])]
    pub access_mode: String,
    /// The group it is given to
    #[arg(long, value_name = "GROUP")]
    pub group: Option<String>,
    /// Who may use it, in octal digits: 0700 its owner alone, 0770 the group too
    #[arg(long, value_name = "MODE", default_value = "0700", value_parser = mode)]
    pub mode: u32,
    /// After this time no job may begin to use it, for example 30d; nothing deletes it
    #[arg(long, value_name = "TIME", value_parser = expiry)]
    pub expires: Option<u64>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct DoctorArguments {
    /// The store to look at [default: the one a job would get]
    #[arg(long, value_name = "STORE")]
    pub store: Option<PathBuf>,
    /// Print a JSON list of what was found
    #[arg(long)]
    pub json: bool,
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
    #[command(flatten)]
    pub space: SpaceArguments,
    /// How often each way is run; the table shows medians
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub repeat: u32,
    /// Leave out the runs on the real file system (only with --pfs-model)
    #[arg(long, requires = "pfs_model")]
    pub no_real: bool,
    /// Do not record what the job's programs do with their files. Open MPI and MPICH then get no
    /// MPICH_MPIIO_HINTS either, unless the script preloads libforebay_mpi itself
    #[arg(long)]
    pub no_profile: bool,
    /// Print JSON instead of the table
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub emulation: EmulationArguments,
}

impl JobArguments {
    /// The burst buffer that is asked for beside the script.
    pub fn burst_buffer(&self) -> Result<Option<String>, forebay_host::Error> {
        match &self.bbf {
            Some(file) => files::read_to_string(file).map(Some),
            None => Ok(self.bb.clone()),
        }
    }
}

impl SpaceArguments {
    /// What the options ask for; `maps` may be empty.
    pub fn wishes<'a>(&'a self, site_store: Option<&'a Path>, maps: &'a [Map]) -> Wishes<'a> {
        Wishes {
            store: self.store.as_deref(),
            site_store,
            capacity_bytes: self.capacity,
            strict_capacity: self.strict_capacity,
            no_view: self.no_userns.then_some("--no-userns"),
            maps,
        }
    }

    /// The same options for a process of ours.
    pub fn words(&self) -> Vec<OsString> {
        let mut words = Vec::new();
        if let Some(store) = &self.store {
            words.extend(["--store".into(), store.into()]);
        }
        if let Some(bytes) = self.capacity {
            words.extend(["--capacity".into(), bytes.to_string().into()]);
        }
        let flags = [
            ("--strict-capacity", self.strict_capacity),
            ("--no-userns", self.no_userns),
        ];
        let given = flags.into_iter().filter(|(_, given)| *given);
        words.extend(given.map(|(flag, _)| OsString::from(flag)));
        words
    }
}

/// The store that the site names in `FOREBAY_STORE`.
pub fn site_store() -> Option<PathBuf> {
    let named = std::env::var_os("FOREBAY_STORE").filter(|value| !value.is_empty());
    named.map(PathBuf::from)
}

pub fn size(text: &str) -> Result<u64, String> {
    parse_size(text).map_err(|error| error.to_string())
}

/// `500MB`, `500MB/s`.
pub fn rate(text: &str) -> Result<u64, String> {
    size(text.strip_suffix("/s").unwrap_or(text))
}

pub fn time(text: &str) -> Result<Duration, String> {
    parse_time(text).ok_or_else(|| "write for example 30, 1:30:00 or 1-12".to_owned())
}

fn mode(text: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(text, 8).ok();
    // Its owner must be able to use it.
    let mode = mode.filter(|mode| mode & !0o777 == 0 && mode & 0o700 == 0o700);
    mode.ok_or_else(|| "write three octal digits that begin with 7, for example 0770".to_owned())
}

/// Seconds.
fn expiry(text: &str) -> Result<u64, String> {
    let time = humantime::parse_duration(text).map(|time| time.as_secs());
    let time = time.ok().filter(|seconds| *seconds > 0);
    time.ok_or_else(|| "write for example 30d, 12h or 2weeks".to_owned())
}

fn map(text: &str) -> Result<Map, String> {
    let (at, from) = text.split_once('=').ok_or("write PATH=DIR")?;
    let at = PathBuf::from(at);
    if !at.is_absolute() || from.is_empty() {
        return Err("PATH must be absolute, DIR not empty".into());
    }
    let plain: PathBuf = at.components().collect();
    if plain.parent().is_none() || plain.components().any(|part| part == Component::ParentDir) {
        return Err("PATH must be below /, without ..".into());
    }
    if ["/proc", "/dev", "/sys"]
        .iter()
        .any(|system| plain.starts_with(system))
    {
        return Err("PATH must not be in /proc, /dev or /sys".into());
    }
    let from = std::path::absolute(from).map_err(|error| error.to_string())?;
    Ok(Map { at: plain, from })
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
