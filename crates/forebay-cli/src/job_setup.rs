//! Prepares the job specification for `forebay run` and a series.
//! Assumes that the process has started nothing yet: the emulation may restart it. Never makes the allocation.

use std::path::PathBuf;

use forebay_directive::JobDw;
use forebay_engine::{LocalFiles, StoreOptions};
use forebay_host::exit_codes::{FAILED_BEFORE_THE_JOB, USAGE};
use forebay_host::process::SignalGuard;
use forebay_job::{Error, JobSpec, NodeOptions, Output};
use forebay_onclose::Spectral;
use forebay_profile::Recording;
use forebay_record::StagingOptions;
use forebay_scheduler::{JobScript, in_a_schedulers_job};
use forebay_terminal::{CliError, MPI_LIBRARY, print_status};

use crate::effective_config;
use crate::emulation::{self, Emulation};
use crate::options::job::JobArguments;
use crate::pfs_directory;

/// Hints for MPI-IO. Without Forebay's library only Cray's MPI reads this variable.
const HINTS_VARIABLE: &str = "MPICH_MPIIO_HINTS";
/// Whether Forebay's library asks for lazy I/O of the files of MPI-IO.
const LAZY_IO_VARIABLE: &str = "FOREBAY_MPI_LAZY_IO";

/// A job script with its options from the command line and the environment.
pub struct JobSetup<'a> {
    arguments: &'a JobArguments,
    site_store: Option<PathBuf>,
    pub emulation: Option<Emulation>,
    script: JobScript,
    /// Where the allocation is with `--no-burst-buffer`.
    pfs_directory: Option<PathBuf>,
    shims: Vec<&'static str>,
    nodes: Option<NodeOptions>,
    /// Settings for the job's programs.
    variables: Vec<(String, String)>,
}

impl<'a> JobSetup<'a> {
    /// Enters the emulation, which may restart this process. Afterwards it catches signals and
    /// reads the script.
    pub fn of(arguments: &'a JobArguments) -> Result<(Self, SignalGuard), CliError> {
        let emulated = |error: CliError| match error.exit_code {
            USAGE => error,
            _ => error.with_exit_code(FAILED_BEFORE_THE_JOB),
        };
        let site_store = effective_config::store();
        let emulation =
            emulation::activate(&arguments.emulation, &arguments.map).map_err(emulated)?;
        if let Some(emulation) = &emulation {
            if !arguments.no_burst_buffer {
                let store_options =
                    arguments.space.store_options(site_store.as_deref(), &arguments.map);
                emulation.check_store(&store_options).map_err(emulated)?;
            }
            let model = &emulation.model().name;
            print_status(&format!("the parallel file system is emulated: {model}"));
        }
        let caught = SignalGuard::listen().map_err(Error::from).map_err(CliError::of_job)?;
        let burst_buffer = arguments.burst_buffer().map_err(Error::from);
        let burst_buffer = burst_buffer.map_err(CliError::of_job)?;
        let mut script =
            JobScript::read(&arguments.script).map_err(|error| CliError::of_job(error.into()))?;
        script.burst_buffer = burst_buffer.or(script.burst_buffer);
        if !in_a_schedulers_job() {
            script.header.notes().iter().for_each(|note| print_status(note)); // there its scheduler obeys them
        }
        let pfs_directory = arguments
            .no_burst_buffer
            .then(|| pfs_directory::choose(arguments, &script, emulation.as_ref()));
        let pfs_directory = pfs_directory.transpose()?;
        let shims = forebay_launchers::names(emulation.is_some());
        let variables = effective_config::variables_of_jobs();
        let mut setup = Self {
            arguments,
            site_store,
            emulation,
            script,
            pfs_directory,
            shims,
            nodes: None,
            variables,
        };
        let wants_storage = setup.wants_burst_buffer() || setup.script.header.node_local;
        if setup.pfs_directory.is_none() && wants_storage {
            let job = setup.job_of_directive();
            setup.nodes = arguments.nodes.options(job.as_ref()).map_err(emulated)?;
        }
        setup.choose_lazy_io();
        Ok((setup, caught))
    }

    /// Lets Forebay's library ask for lazy I/O in a namespace of several nodes, unless the user decides otherwise.
    fn choose_lazy_io(&mut self) {
        let is_off = self.arguments.nodes.no_lazy_io;
        let is_chosen = std::env::var_os(LAZY_IO_VARIABLE).is_some();
        if self.nodes.is_none() || (is_chosen && !is_off) {
            return;
        }
        let value = if is_off { "0" } else { "1" };
        self.variables.push((LAZY_IO_VARIABLE.to_owned(), value.to_owned()));
        if self.arguments.explain {
            print_status(match is_off {
                true => "files of MPI-IO are strict (--no-lazy-io)",
                false => {
                    "files that several ranks open by MPI-IO are lazy where the mount offers it: nodes see each \
                     other's writes after MPI_File_sync and MPI_File_close"
                }
            });
        }
    }

    /// Lets directories of the namespace get other layouts between the runs of a series.
    pub fn allow_local_files(&mut self) {
        if let Some(nodes) = &mut self.nodes
            && nodes.local_files == LocalFiles::Named
        {
            nodes.local_files = LocalFiles::OnRequest;
        }
    }

    /// True if the job sets hints for MPI-IO and does not load Forebay's library itself. Does not
    /// detect Cray's MPI, which reads the hints directly.
    pub fn hints_are_unused(&self) -> bool {
        let has = |variable: &str, word: &str| {
            std::env::var(variable).is_ok_and(|value| value.contains(word))
        };
        let text = &self.script.text;
        let sets = text.contains(HINTS_VARIABLE) || has(HINTS_VARIABLE, "=");
        sets && !text.contains(MPI_LIBRARY) && !has("LD_PRELOAD", MPI_LIBRARY)
    }

    /// The allocation that the directive requests. Errors of the request are reported later.
    fn job_of_directive(&self) -> Option<JobDw> {
        let here = forebay_host::system::current_directory().unwrap_or_default();
        self.script.request(&here, "no-job").ok()?.job
    }

    /// True if the script requests a burst buffer. Errors of the request are reported later.
    pub fn wants_burst_buffer(&self) -> bool {
        let here = forebay_host::system::current_directory().unwrap_or_default();
        self.script.request(&here, "no-job").map_or(true, |request| request.job.is_some())
    }

    /// The specification of a job whose allocation is not kept.
    pub fn spec<'b>(&'b self, output: Output<'b>, recording: Option<Recording<'b>>) -> JobSpec<'b> {
        let arguments = self.arguments;
        let space = &arguments.space;
        // In a scheduler's job the scheduler enforces the header's limit, and may have changed it.
        let of_header = self.script.header.time_limit;
        let of_header = of_header.filter(|_| !in_a_schedulers_job());
        let own_limit = arguments.time.or(of_header);
        JobSpec {
            script: &self.script,
            arguments: &arguments.arguments,
            store_options: StoreOptions {
                pfs_directory: self.pfs_directory.as_deref(),
                ..space.store_options(self.site_store.as_deref(), &arguments.map)
            },
            keep: false,
            time_limit: own_limit.filter(|limit| !limit.is_zero()),
            deadline: None,
            output,
            shims: &self.shims,
            variables: &self.variables,
            staging: StagingOptions::default(),
            emulation: self.emulation.as_ref().map(Emulation::state_path),
            drain: &[],
            on_close: &[],
            spectral: Spectral::default(),
            nodes: self.nodes.clone(),
            recording,
        }
    }

    /// Spectral's settings in the environment and the script's header.
    pub fn spectral(&self, wanted: bool) -> Spectral {
        let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let directories = named("PERSIST_DIR").zip(named("PFS_DIR"));
        if self.arguments.no_burst_buffer {
            return Spectral::default();
        }
        Spectral {
            wanted: wanted || self.script.header.spectral,
            directories: directories.map(|(persist, pfs)| (persist.into(), pfs.into())),
        }
    }
}
