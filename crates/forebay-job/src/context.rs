//! The data of a job: its specification, directory, directives and allocation. The steps are in
//! other modules.

use std::path::{Path, PathBuf};

use forebay_cluster::Session;
use forebay_directive::Request;
use forebay_engine::{JobAllocation, Provisioned, Provisioner};
use forebay_host::files::{self, Kind};
use forebay_host::process::{Events, Identity};
use forebay_host::system;
use forebay_persistent::{JobPersistents, Owner};
use forebay_record::{JobDirectory, RecordFile, WriteFailures, reserved_bytes};

use crate::Error;
use crate::job_spec::{JobSpec, Reporter};
use crate::store_watch::StoreWatch;

/// The highest number of printed reasons if a stage-in cannot begin.
pub(crate) const FAILURES_MAX: usize = 1000;

/// A job with a parsed script.
pub(crate) struct JobContext<'a> {
    pub(crate) spec: &'a JobSpec<'a>,
    pub(crate) directory: &'a JobDirectory,
    pub(crate) reporter: &'a dyn Reporter,
    pub(crate) request: Request,
    pub(crate) submit_directory: PathBuf,
    pub(crate) working_directory: PathBuf,
    /// The scheduler's job id, else Forebay's.
    pub(crate) job_id: String,
    pub(crate) under_scheduler: bool,
}

/// A job that has its allocation.
pub(crate) struct ActiveJob<'a> {
    pub(crate) context: &'a JobContext<'a>,
    pub(crate) events: Events,
    pub(crate) keeper: Option<Identity>,
    pub(crate) job_allocation: Option<&'a JobAllocation>,
    /// The engine of an allocation over several nodes.
    pub(crate) session: Option<&'a Session>,
    pub(crate) persistents: &'a mut JobPersistents,
    /// The directory of the list of programs' requests.
    pub(crate) requests_root: PathBuf,
    pub(crate) store_watch: StoreWatch,
    pub(crate) write_failures: WriteFailures,
}

impl<'a> JobContext<'a> {
    pub(crate) fn new(
        spec: &'a JobSpec<'a>,
        directory: &'a JobDirectory,
        reporter: &'a dyn Reporter,
    ) -> Result<Self, Error> {
        let submit_directory = system::current_directory()?;
        let working_directory = spec.script.working_directory(&submit_directory);
        let outer_job = forebay_scheduler::scheduler_job_id(directory.id());
        let job_id = outer_job.clone().unwrap_or_else(|| directory.id().to_owned());
        let request = spec.request(&submit_directory, &job_id, reporter)?;
        Ok(Self {
            spec,
            directory,
            reporter,
            request,
            submit_directory,
            working_directory,
            job_id,
            under_scheduler: outer_job.is_some(),
        })
    }

    /// The owner of the job's persistent allocations.
    pub(crate) fn owner(&self) -> Owner<'_> {
        let job = (self.job_id.as_str(), self.under_scheduler);
        self.spec.owner(&self.request, job, self.reporter)
    }

    /// Creates the allocation and the view, and enters the view.
    pub(crate) fn provision(&self, recorded: &mut RecordFile) -> Result<Provisioned, Error> {
        let store_options = self.spec.store_options(self.under_scheduler);
        let persistent = recorded.record.persistent.iter();
        let provisioner = Provisioner {
            options: &store_options,
            id: self.directory.id(),
            scratch: self.directory.scratch(),
            needed: vec![self.directory.path().to_owned(), recorded.path().to_owned()],
            persistent: persistent.map(|one| one.root.clone()).collect(),
            reserved_bytes: &reserved_bytes,
            progress: self.reporter,
            asked: self.request.job.as_ref(),
            node_local: self.spec.node_local_path(),
        };
        Ok(provisioner.provision(recorded)?)
    }
}

/// Checks that a working directory exists.
pub(crate) fn check_directory(directory: &Path) -> Result<(), Error> {
    let is_directory = files::status(directory).is_ok_and(|s| s.kind == Kind::Directory);
    if is_directory {
        return Ok(());
    }
    Err(Error::NoDirectory(directory.to_owned()))
}
