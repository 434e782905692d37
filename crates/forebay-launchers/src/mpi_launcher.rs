//! The real mpiexec behind the stand-ins that start ranks, and what else they share.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::Command;

use forebay_host::process::{command, replace_by};
use forebay_host::{system, users};
use forebay_profile::MpiFamily;
use forebay_scheduler::TASKS_VARIABLE;
use forebay_terminal::print_error;

use crate::spectral;

/// Exit code when no rank was started, as a shell gives it for a command it cannot run.
const CANNOT_LAUNCH: i32 = 127;

/// The real mpiexec behind us.
pub struct Launcher {
    path: PathBuf,
    flavour: MpiFamily,
}

impl Launcher {
    /// Finds it; if there is none, complains and returns the exit code.
    pub fn find() -> Result<Self, i32> {
        let names = ["mpiexec", "mpirun"];
        let Some(path) = names.into_iter().find_map(system::find_other_program) else {
            let hint = "install an MPI, for example: apt-get install openmpi-bin";
            let message = "no mpiexec in PATH to start ranks with";
            return Err(print_error(message, Some(hint), CANNOT_LAUNCH));
        };
        let flavour = MpiFamily::of_launcher(&path);
        Ok(Self { path, flavour })
    }

    /// An option as this launcher spells it.
    pub fn spell<'a>(&self, option: &'a OsStr) -> &'a OsStr {
        match (self.flavour, option.to_str()) {
            (MpiFamily::OpenMpi, Some("-l" | "--label")) => OsStr::new("--tag-output"),
            (MpiFamily::Hydra, Some("--tag-output" | "-tag-output")) => OsStr::new("-l"),
            _ => option,
        }
    }

    /// Becomes it. `prepare` may set directory, environment and output.
    pub fn start(&self, words: &[OsString], prepare: impl FnOnce(&mut Command)) -> i32 {
        spectral::announce_from_launcher();
        let mut process = command(&self.path);
        adapt(&mut process, self.flavour);
        process.args(words);
        prepare(&mut process);
        let error = replace_by(process);
        print_error(&error.to_string(), None, CANNOT_LAUNCH)
    }
}

/// Makes the launcher start all ranks here: as many as asked for, whatever the number of
/// processors, and although the environment looks like that of a scheduler's job.
fn adapt(process: &mut Command, flavour: MpiFamily) {
    match flavour {
        MpiFamily::OpenMpi => {
            process.arg("--oversubscribe");
            // 4.x and 5.x have different names for the parts that would look for a scheduler.
            for prefix in ["OMPI_MCA_", "PRTE_MCA_"] {
                for part in ["plm", "ras"] {
                    process.env(format!("{prefix}{part}"), "^slurm,tm,lsf");
                }
            }
            // The tasks of flux run have FLUX_JOB_ID, at which 4.x would seek Flux, and crash.
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

/// First of these variables that is set.
pub fn first_variable(names: &[&str]) -> Option<OsString> {
    names.iter().map(OsStr::new).find_map(std::env::var_os)
}

/// Tasks of the job, as its script asks for or has set since.
pub fn tasks_of_the_job() -> Option<OsString> {
    first_variable(&["SLURM_NTASKS", TASKS_VARIABLE])
}

/// Complains that there is nothing to start.
pub fn no_program(example: &str) -> i32 {
    print_error("no program to start", Some(&format!("write for example: {example}")), 2)
}
