//! Catches signals and passes them on as events. Assumes that one thread waits for them.
//! Children from before `listen` never count as a job's. A signal that was ignored before (nohup) stays ignored.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::path::Path;
use std::sync::mpsc;

use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;

use super::proc_table::{Identity, children_of, processes, signals_of};
use super::send::own_pid;
use super::signal_sender;
use super::stop_requests::{EventSender, StopRequests};
use super::transferred::Transferred;
use super::wait::Events;
use crate::{Result, threads, with_context};

/// Signals that request a stop.
const STOPS: [i32; 4] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT];
/// Signals with a meaning for the job only (`sbatch --signal=B:USR1@60`).
pub(super) const OF_THE_JOB: [i32; 2] = [SIGUSR1, SIGUSR2];
/// Catches signals, and queues them until [`SignalGuard::watch`].
pub struct SignalGuard {
    signals: Signals,
    /// Caught signals that request a stop.
    stops: Vec<i32>,
    /// Earlier children, from `exec forebay` in a shell. They do not belong to a job.
    others: HashSet<i32>,
}

impl SignalGuard {
    /// Catches SIGINT, SIGTERM, SIGHUP and SIGQUIT as stop requests, and SIGUSR1 and SIGUSR2 for
    /// the job. Signals that are already ignored (nohup) stay ignored. Makes this process the
    /// reaper of all descendants.
    pub fn listen() -> Result<Self> {
        Self::listen_to(&STOPS)
    }

    /// The same, with SIGUSR1 and SIGUSR2 as stop requests.
    pub fn listen_all() -> Result<Self> {
        Self::listen_to(&[&STOPS[..], &OF_THE_JOB].concat())
    }

    fn listen_to(stops: &[i32]) -> Result<Self> {
        let here = Path::new("this process");
        with_context(
            rustix::process::set_child_subreaper(Some(rustix::process::getpid())),
            "become the reaper of the children of",
            here,
        )?;
        let ignored = signals_of("self", "SigIgn:")?;
        let all = [&STOPS[..], &OF_THE_JOB].concat();
        let wanted = all.into_iter().filter(|signal| ignored & (1 << (signal - 1)) == 0);
        let wanted: Vec<_> = wanted.collect();
        with_context(signal_sender::note(&wanted), "catch the signals of", here)?;
        let caught = Signals::new(wanted.into_iter().chain([SIGCHLD]));
        let signals = with_context(caught, "catch the signals of", here)?;
        let others = children_of(own_pid(), &HashSet::new(), &processes()?);
        let others = others.into_iter().collect();
        let stops = stops.to_vec();
        Ok(Self { signals, stops, others })
    }

    /// Starts to look at what was caught and what comes, in a thread. The keeper of our view is none
    /// of a job's processes.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn watch(self, keeper: Option<Identity>) -> Result<Events> {
        let Self { mut signals, stops: asking, others } = self;
        let (sender, receiver) = mpsc::channel();
        let stops = StopRequests::default();
        let event_sender = EventSender { sender: sender.clone(), stops: stops.clone() };
        for signal in signals.pending().filter(|signal| *signal != SIGCHLD) {
            if asking.contains(&signal) {
                stops.add(signal);
            }
            sender.send(signal).ok(); // the receiver exists
        }
        threads::spawn(move || {
            for signal in signals.forever() {
                if asking.contains(&signal) {
                    stops.add(signal);
                }
                if sender.send(signal).is_err() {
                    return;
                }
            }
        })?;
        let keeper = keeper.map(|keeper| keeper.pid);
        let excluded = others.iter().copied().chain(keeper).collect();
        Ok(Events {
            receiver,
            sender: event_sender,
            others: RefCell::new(others),
            excluded: RefCell::new(excluded),
            ended: RefCell::default(),
            transferred: Cell::new(Some(Transferred::default())),
        })
    }
}

/// Keeps the signals that a scheduler sends to all processes of a job from this process and from those that
/// it starts: SIGTERM and what users ask for as a warning. Call it before a thread is started.
///
/// # Errors
/// If the kernel refuses.
pub fn postpone_scheduler_signals() -> Result<()> {
    use nix::sys::signal::{SigSet, Signal};
    let postponed = SigSet::from_iter([Signal::SIGTERM, Signal::SIGUSR1, Signal::SIGUSR2]);
    let blocked = postponed.thread_block().map_err(std::io::Error::from);
    with_context(blocked, "block signals of", Path::new("this process"))
}

/// The number of a signal, from its name, with or without SIG, or its number.
pub fn signal_number(name: &str) -> Option<i32> {
    let name = name.to_ascii_uppercase();
    let name = name.strip_prefix("SIG").unwrap_or(&name);
    let named = |signal: &i32| {
        let found = signal_hook::low_level::signal_name(*signal);
        found.and_then(|found| found.strip_prefix("SIG")) == Some(name)
    };
    let numbered = |signal: &i32| name.parse() == Ok(*signal);
    (1..32).find(|signal| named(signal) || numbered(signal))
}
