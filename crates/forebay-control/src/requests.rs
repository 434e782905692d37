//! What programs of a job ask for while it runs (docs/libdatawarp.md).
//!
//! A few threads of `forebay run`, which are in the job's view, answer at a socket beside the namespaces; others
//! copy. What is to be staged out and has not arrived stands on disk beside the data (`requests.sqlite`), so that it is
//! carried out when the job ends, or by `forebay clean` when we were killed.

mod book;
mod copy;
mod serve;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use forebay_directive::AccessMode;
use forebay_engine::Space;
use forebay_host::clock;
use forebay_host::files;
use forebay_host::process::Stops;
use forebay_host::socket::Listener;
use forebay_requests::{SOCKET_NAME, SOCKET_VARIABLE};
use serde::Serialize;

use crate::pace::Pace;
use crate::{Direction, Error};
use book::{Book, Ended, Errno, Task};
use copy::Became;
use forebay_persistent::Askable;
use forebay_record::{OpenRequests, StagingWish, open_in};

/// Threads that answer. Waiting takes none of them.
const ANSWERERS: usize = 3;
/// Files that are copied at the same time unless the program says otherwise: the job computes meanwhile.
const WORKERS: usize = 2;
const WORKERS_MAX: u32 = 64;

/// What was staged because programs asked for it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Requested {
    /// Files staged in while the job ran.
    pub files_in: u64,
    /// Their bytes.
    pub bytes_in: u64,
    /// Files staged out while the job ran.
    pub files_out: u64,
    /// Their bytes.
    pub bytes_out: u64,
    /// Failures while the job ran; what did not get out of the burst buffer was tried again at its end.
    pub failed: u64,
    /// Files and directories that were left to be staged out at its end, with what its script stages out.
    pub left_to_stage_out: usize,
}

/// All that is known, for one thread at a time.
struct State {
    book: Book,
    open: OpenRequests,
    requested: Requested,
    workers: usize,
    workers_max: usize,
    /// Of all requests together.
    pace: Pace,
    /// Something could not be written down.
    trouble: Option<Errno>,
    /// The job has ended: what is asked now was asked too late.
    is_closed: bool,
}

struct Shared {
    state: Mutex<State>,
    /// Something has ended.
    changed: Condvar,
    /// Root of the striped namespace, with links resolved.
    root: PathBuf,
    /// Namespaces that outlive the job.
    persistent: Vec<Askable>,
    allocation: PathBuf,
    is_mounted: bool,
    capacity_bytes: u64,
    namespaces: usize,
    /// Id of the job.
    tag: String,
    how: StagingWish,
}

/// Those of one job, being carried out.
pub(crate) struct Requests {
    shared: Arc<Shared>,
    listener: Arc<Listener>,
    socket: PathBuf,
}

impl Requests {
    /// Begins to listen, if the job has a striped namespace. We must be in the job's view.
    ///
    /// # Errors
    /// If there can be no socket.
    pub(crate) fn listen(
        space: &Space,
        access: &[AccessMode],
        persistent: Vec<Askable>,
        tag: &str,
        how: StagingWish,
    ) -> Result<Option<Self>, Error> {
        if !access.contains(&AccessMode::Striped) {
            return Ok(None);
        }
        let allocation = space.allocation.root();
        let root = space.allocation.namespace(AccessMode::Striped.directory());
        let socket = allocation.join(SOCKET_NAME);
        let listener = Arc::new(Listener::bind(&socket)?);
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                book: Book::default(),
                open: OpenRequests::beside(allocation),
                requested: Requested::default(),
                workers: 0,
                workers_max: WORKERS,
                pace: Pace::default(),
                trouble: None,
                is_closed: false,
            }),
            changed: Condvar::new(),
            root: files::real_path(&root)?,
            persistent,
            allocation: files::real_path(allocation)?,
            is_mounted: space.allocation.is_mounted(),
            capacity_bytes: space.used.capacity_bytes,
            namespaces: access.len(),
            tag: tag.to_owned(),
            how,
        });
        for _ in 0..ANSWERERS {
            let (shared, listener) = (Arc::clone(&shared), Arc::clone(&listener));
            std::thread::spawn(move || serve::answer(&shared, &listener));
        }
        Ok(Some(Self {
            shared,
            listener,
            socket,
        }))
    }

    /// What tells programs where to ask.
    pub(crate) fn variable(&self) -> (String, String) {
        let socket = self.socket.to_string_lossy().into_owned(); // paths of stores are UTF-8
        (SOCKET_VARIABLE.to_owned(), socket)
    }

    /// The job has ended: nobody asks any more. What is being staged out, or waits for it, is brought to its
    /// end, unless we are asked to stop or it `is_late`: then the stage-out has it; what is being staged in is of no use any more. Returns what was done
    /// and what could not be written down.
    pub(crate) fn end(
        &self,
        stops: &Stops,
        before: usize,
        is_late: bool,
    ) -> (Requested, Option<Error>) {
        let closed = self.listener.close().err();
        let mut state = self.shared.state();
        state.is_closed = true;
        state.book.stop(|copy| copy.direction == Direction::Out);
        while state.workers > 0 {
            if stops.count() > before || is_late {
                state.book.stop(|_| false);
            }
            // A signal does not wake us: so often it is looked for.
            let waited = self.shared.changed.wait_timeout(state, LOOK);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let mut requested = state.requested.clone();
        requested.left_to_stage_out = open_in(&self.shared.allocation).map_or(0, |open| open.len());
        let trouble = state.trouble.map(|number| Error::RequestsNotKept {
            allocation: self.shared.allocation.clone(),
            error: std::io::Error::from_raw_os_error(number),
        });
        (requested, closed.map(Error::from).or(trouble))
    }
}

const LOOK: std::time::Duration = std::time::Duration::from_millis(100);

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// After so many bytes, waits as long as `--stage-rate` says; less long if told to stop.
    fn pause(&self, bytes: u64, is_cancelled: impl Fn() -> bool) {
        let Some(bytes_per_s) = self.how.bytes_per_s_max else {
            return;
        };
        let until = self.state().pace.after(bytes, bytes_per_s, clock::now());
        loop {
            let left = until.saturating_duration_since(clock::now());
            if left.is_zero() || is_cancelled() {
                return;
            }
            clock::sleep(left.min(LOOK));
        }
    }

    /// A worker's task has ended.
    fn ended(&self, task: &Task, became: Became) {
        let mut state = self.state();
        let failed = became.failed.len() as u64;
        let ended = state.book.ended(task, became.failed);
        let requested = &mut state.requested;
        if ended != Ended::Again {
            let (files, bytes) = match task.copy.direction {
                Direction::In => (&mut requested.files_in, &mut requested.bytes_in),
                Direction::Out => (&mut requested.files_out, &mut requested.bytes_out),
            };
            *files += became.files;
            *bytes += became.bytes;
        }
        match ended {
            Ended::Failed => requested.failed += failed,
            Ended::Complete => state.closed(&task.copy.inner, task.copy.is_directory),
            Ended::Forgotten | Ended::Again => {}
        }
        self.changed.notify_all();
    }
}

impl State {
    /// A request is open no more.
    fn closed(&mut self, inner: &Path, is_directory: bool) {
        let removed = self.open.remove(inner, is_directory);
        // Then it will be staged out once more at the end: no harm to the data.
        self.trouble = self
            .trouble
            .or(removed.err().map(|error| number_of(&error)));
    }
}

/// The number of an error, which programs are told.
fn number_of(error: &std::io::Error) -> Errno {
    error.raw_os_error().unwrap_or(libc::EIO)
}
