//! Runs the real mpiexec for the stand-ins, and holds their shared functions.
//! Assumes that all nodes of the job are this machine. `start` returns only if it cannot start the launcher.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::Command;

use forebay_host::exit_codes::CANNOT_RUN;
use forebay_host::process::{command, replace_by};
use forebay_host::{system, users};
use forebay_profile::MpiFamily;
use forebay_scheduler::TASKS_VARIABLE;
use forebay_terminal::{print_error, print_warning};

use crate::spectral;

/// The real mpiexec.
pub struct Launcher {
    path: PathBuf,
    flavour: MpiFamily,
}

impl Launcher {
    /// Finds the real mpiexec. Otherwise prints an error and returns the exit code.
    pub fn find() -> Result<Self, i32> {
        let names = ["mpiexec", "mpirun"];
        let Some(path) = names.into_iter().find_map(system::find_other_program) else {
            let hint = "install an MPI, for example: apt-get install openmpi-bin";
            let message = "no mpiexec in PATH to start ranks with";
            return Err(print_error(message, Some(hint), CANNOT_RUN));
        };
        let flavour = MpiFamily::of_launcher(&path);
        Ok(Self { path, flavour })
    }

    /// Translates an option to the spelling of this launcher.
    pub fn spell<'a>(&self, option: &'a OsStr) -> &'a OsStr {
        match (self.flavour, option.to_str()) {
            (MpiFamily::OpenMpi, Some("-l" | "--label")) => OsStr::new("--tag-output"),
            (MpiFamily::Hydra, Some("--tag-output" | "-tag-output")) => OsStr::new("-l"),
            _ => option,
        }
    }

    /// Replaces this process by the launcher. `prepare` may set directory, environment and output.
    pub fn start(&self, words: &[OsString], prepare: impl FnOnce(&mut Command)) -> i32 {
        spectral::announce_from_launcher();
        let mut process = command(&self.path);
        adapt(&mut process, self.flavour);
        process.args(words);
        prepare(&mut process);
        let error = replace_by(process);
        print_error(&error.to_string(), None, CANNOT_RUN)
    }
}

/// Makes the launcher start all ranks on this machine, even more than processors. The launcher must
/// ignore that the environment resembles that of a scheduler's job.
fn adapt(process: &mut Command, flavour: MpiFamily) {
    match flavour {
        MpiFamily::OpenMpi => {
            process.arg("--oversubscribe");
            // Open MPI 4.x and 5.x use different prefixes for the parts that detect schedulers.
            for prefix in ["OMPI_MCA_", "PRTE_MCA_"] {
                for part in ["plm", "ras"] {
                    process.env(format!("{prefix}{part}"), "^slurm,tm,lsf");
                }
            }
            // `flux run` sets FLUX_JOB_ID for tasks. Open MPI 4.x would then look for it and crash.
            process.env("OMPI_MCA_pmix", "^flux");
            if users::user_id() == 0 {
                for name in ["OMPI_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT"] {
                    process.env(name, "1").env(format!("{name}_CONFIRM"), "1");
                }
            }
        }
        MpiFamily::Hydra => {
            process.args(["-launcher", "fork"]).env("HYDRA_RMK", "user");
        }
        MpiFamily::Unknown => {}
    }
}

/// Ranks for each processor from which a warning is printed: their waiting for each other takes most of the time.
const RANKS_WARNED: usize = 4;
/// Ranks for each processor that are refused: their start alone takes many minutes.
const RANKS_MAX: usize = 64;
/// Set to the number of ranks that may be started nevertheless.
const RANKS_VARIABLE: &str = "FOREBAY_RANKS_MAX";

/// Warns of many ranks for the processors of this machine, and refuses too many.
///
/// # Errors
/// The exit code, after the error was printed.
pub fn check_ranks(ranks: usize) -> Result<(), i32> {
    let processors = system::processors();
    let allowed = std::env::var(RANKS_VARIABLE).ok().and_then(|text| text.parse().ok());
    if ranks > allowed.unwrap_or(RANKS_MAX * processors) {
        let message = format!(
            "{ranks} ranks on the {processors} processors of this machine are not started: all nodes of the job are this one"
        );
        let hint = format!(
            "ask for fewer tasks, as with --ntasks={processors}, or set {RANKS_VARIABLE}={ranks} to start them nevertheless"
        );
        return Err(print_error(&message, Some(&hint), CANNOT_RUN));
    }
    if ranks > RANKS_WARNED * processors {
        print_warning(&format!(
            "{ranks} ranks share the {processors} processors of this machine: times say little about the job"
        ));
    }
    Ok(())
}

/// First of these variables that is set.
pub fn first_variable(names: &[&str]) -> Option<OsString> {
    names.iter().map(OsStr::new).find_map(std::env::var_os)
}

/// The number of tasks that the script requests or has set later.
pub fn tasks_of_the_job() -> Option<OsString> {
    first_variable(&["SLURM_NTASKS", TASKS_VARIABLE])
}

/// Prints the error that no program is given.
pub fn no_program(example: &str) -> i32 {
    print_error("no program to start", Some(&format!("write for example: {example}")), 2)
}
