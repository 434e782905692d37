//! Answers and carries out the requests of a job's programs while it runs (docs/reference/libdatawarp.md).
//! Assumes that its threads are in the job's view. Never loses a stage-out that failed: a list next
//! to the data keeps it for the end of the job or `forebay clean`.

mod accounting;
mod copy;
mod error;
mod rate_limit;
mod serve;
mod state;
mod table;
mod waiting;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use forebay_directive::AccessMode;
use forebay_host::files;
use forebay_host::process::StopRequests;
use forebay_host::socket::Listener;
use forebay_host::threads;
use forebay_requests::{SOCKET_NAME, SOCKET_VARIABLE};
use forebay_store::Allocation;
use parking_lot::{Condvar, Mutex};

pub use accounting::Accounting;
pub use error::Error;
use forebay_directive::Direction;
use forebay_persistent::RequestNamespace;
use forebay_record::{PendingList, StagingOptions, WriteFailures, load_pending};
use rate_limit::RateLimit;
pub use state::Requested;
use state::{Shared, State};
use table::RequestTable;

/// The number of threads that answer. A program that waits occupies none of them.
const ANSWERERS: usize = 3;
/// Default number of files copied at the same time. It is low because the job computes meanwhile.
const WORKERS: usize = 2;
/// How often to check for a stop request: it does not wake this thread.
const SIGNAL_CHECK: Duration = Duration::from_millis(100);

/// What a job's programs may stage, and where their requests are.
pub struct RequestPlace<'a> {
    /// The job's own allocation, if there is one, with its capacity in bytes.
    pub allocation: Option<(&'a Allocation, u64)>,
    /// The access modes of its namespaces.
    pub access: &'a [AccessMode],
    /// The persistent namespaces.
    pub persistent: Vec<RequestNamespace>,
    /// The directory of the list of requests.
    pub list: PathBuf,
    /// The directory of the socket.
    pub socket: PathBuf,
}

/// The requests of one job.
pub struct Requests {
    shared: Arc<Shared>,
    listener: Arc<Listener>,
    socket: PathBuf,
}

impl Requests {
    /// Listens, if the job has a striped namespace. The caller must be in the job's view.
    ///
    /// # Errors
    /// If the socket or the directory of the list cannot be created.
    pub fn listen(
        place: RequestPlace,
        tag: &str,
        how: StagingOptions,
        write_failures: WriteFailures,
    ) -> Result<Option<Self>, Error> {
        let RequestPlace { allocation, access, persistent, list, socket } = place;
        let own = allocation.filter(|_| access.contains(&AccessMode::Striped));
        if own.is_none() && persistent.is_empty() {
            return Ok(None);
        }
        files::make_directories(&list, 0o700)?;
        let root = own.map(|(own, _)| own.namespace(AccessMode::Striped.directory()));
        let socket = socket.join(SOCKET_NAME);
        let listener = Arc::new(Listener::bind(&socket)?);
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                table: RequestTable::default(),
                open: PendingList::in_allocation(&list),
                waiting: Vec::new(),
                requested: Requested::default(),
                workers: 0,
                workers_max: WORKERS,
                rate_limit: RateLimit::default(),
                list_error: None,
                is_closed: false,
            }),
            changed: Condvar::new(),
            root: root.map(|root| files::real_path(&root)).transpose()?,
            persistent,
            allocation: allocation.map(|(own, _)| files::real_path(own.root())).transpose()?,
            is_mounted: allocation.is_some_and(|(own, _)| own.is_mounted()),
            capacity_bytes: allocation.map_or(0, |(_, capacity_bytes)| capacity_bytes),
            namespaces: access.len(),
            list,
            tag: tag.to_owned(),
            how,
            write_failures,
        });
        for number in 0..ANSWERERS {
            let (theirs, listening) = (Arc::clone(&shared), Arc::clone(&listener));
            match threads::spawn(move || serve::answer(&theirs, &listening)) {
                Err(error) if number == 0 => return Err(error.into()),
                Err(_) => break, // those that run answer more slowly
                Ok(_) => {}
            }
        }
        Ok(Some(Self { shared, listener, socket }))
    }

    /// The environment variable with the path of the socket.
    pub fn variable(&self) -> (String, String) {
        let socket = self.socket.to_string_lossy().into_owned(); // paths of stores are UTF-8
        (SOCKET_VARIABLE.to_owned(), socket)
    }

    /// Ends the service after the job. Completes stage-outs in progress or queued, except after a
    /// stop request or if `is_late`: then the final stage-out copies them. Cancels stage-ins.
    /// Returns the counts, and the error if the list of requests is not up to date.
    pub fn end(
        &self,
        stops: &StopRequests,
        before: usize,
        is_late: bool,
    ) -> (Requested, Option<Error>) {
        let closed = self.listener.close().err();
        let mut state = self.shared.state.lock();
        state.is_closed = true;
        state.table.stop(|copy| copy.direction == Direction::Out);
        while state.workers > 0 {
            if stops.count() > before || is_late {
                state.table.stop(|_| false);
            }
            self.shared.changed.wait_for(&mut state, SIGNAL_CHECK);
        }
        let mut requested = state.requested.clone();
        requested.left_to_stage_out = load_pending(&self.shared.list).map_or(0, |open| open.len());
        let list_error = state.list_error.map(|number| Error::RequestsNotKept {
            directory: self.shared.list.clone(),
            error: std::io::Error::from_raw_os_error(number),
        });
        (requested, closed.map(Error::from).or(list_error))
    }
}
