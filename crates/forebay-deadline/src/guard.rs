//! Decides when to signal and when to end a job.
//! Assumes that measuring can take long, so a thread of its own does it. That thread never signals a process: the one that
//! waits for the job does.

use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::Duration;

use forebay_host::clock;
use forebay_host::messages::Messages;
use forebay_host::messages::counted;
use forebay_host::process::{EventSender, Events};
use forebay_scheduler::EndTime;
use indicatif::{HumanBytes, HumanDuration};
use parking_lot::Mutex;

use crate::account::DeadlineAccount;
use crate::open_work::{OpenWork, Outstanding};
use crate::options::DeadlineOptions;
use crate::policy::{Action, History, Parameters, Snapshot, decide};
use crate::rate::{self, Measurements, Rate, RateSource};

/// The time kept free before the end: a share of the time left, up to a maximum.
const MARGIN_SHARE: f64 = 0.05;
const MARGIN_S_MAX: f64 = 60.0;
/// The interval of checks whether a job has requested stage-out.
const ASKED_LOOK: Duration = Duration::from_secs(1);
/// Longer than any job: 1000 years.
const NEVER_S: f64 = 1000.0 * 365.0 * 86_400.0;

/// A request from the watching thread to the waiting thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PendingAction {
    Signal(i32),
    End,
}

/// Watches the end of a job that stages out, or whose programs may request it.
pub struct Guard<'a> {
    work: Box<dyn OpenWork + 'a>,
    messages: &'a dyn Messages,
    options: &'a DeadlineOptions,
    measurements: Measurements,
    /// The time between SIGTERM and SIGKILL.
    grace: Duration,
    /// The end from the user's options.
    given: Option<EndTime>,
    /// Unset before the first query. None if the job has no end or its end is unknown.
    known_end: OnceLock<Option<KnownEnd>>,
    pending: Mutex<Option<PendingAction>>,
    history: Mutex<History>,
}

/// The state for a known end.
struct KnownEnd {
    /// The parameters, with the rate at that time.
    terms: Parameters,
    rate_source: RateSource,
    end: Mutex<EndTime>,
    account: Mutex<DeadlineAccount>,
}

impl<'a> Guard<'a> {
    /// None if no source can provide the end of the job.
    pub fn new(
        options: &'a DeadlineOptions,
        under_scheduler: bool,
        work: Box<dyn OpenWork + 'a>,
        measurements: Measurements,
        grace: Duration,
        messages: &'a dyn Messages,
    ) -> Option<Self> {
        let given = options.end_after;
        let given = given.map(|after| EndTime::after(after.as_secs_f64(), "--deadline"));
        (given.is_some() || under_scheduler).then(|| Self {
            work,
            messages,
            options,
            measurements,
            grace,
            given,
            known_end: OnceLock::new(),
            pending: Mutex::new(None),
            history: Mutex::default(),
        })
    }

    /// Queries the end of a job with stage-out. Does nothing if programs of the job must request
    /// stage-out first.
    pub fn begin(&self) {
        if self.work.is_asked_for() {
            self.known_end(&|| true);
        }
    }

    /// Whether the end is known, or is still to be queried.
    pub fn is_active(&self) -> bool {
        let known_end = self.known_end.get();
        known_end.map_or_else(|| self.work.is_asked_for(), Option::is_some)
    }

    /// Queries the end at the first call. None if there is no end.
    fn known_end(&self, should_continue: &dyn Fn() -> bool) -> Option<&KnownEnd> {
        if let Some(known_end) = self.known_end.get() {
            return known_end.as_ref();
        }
        let end = match self.given {
            Some(end) => Some(end),
            None => find_end(self.messages, should_continue),
        };
        if end.is_none() && !should_continue() {
            return None; // the query was interrupted
        }
        let known = || end.map(|end| self.schedule_for(end));
        self.known_end.get_or_init(known).as_ref()
    }

    fn schedule_for(&self, end: EndTime) -> KnownEnd {
        let wishes = self.options;
        let left_s = end.left_s();
        let margin_s = (left_s * MARGIN_SHARE).clamp(0.0, MARGIN_S_MAX);
        let rate = rate::rate(wishes.drain_bytes_per_s, &self.measurements);
        let Rate { bytes_per_s, source } = rate.at_most(self.measurements.bytes_per_s_max);
        let terms = Parameters {
            bytes_per_s,
            margin_s: wishes.margin.map_or(margin_s, |margin| margin.as_secs_f64()),
            grace_s: self.grace.as_secs_f64(),
            signal_s: wishes.signal.map(|signal| signal.before.as_secs_f64()),
        };
        self.messages.explain(&format!(
            "the job ends in {left_s:.0} s, as {} says; stage-out is reckoned with {:.0} MB/s ({source:?}), \
             and {:.0} s are kept free",
            end.source,
            bytes_per_s / 1e6,
            terms.margin_s
        ));
        let account = DeadlineAccount {
            end_unix_s: end.unix_s,
            told_by: end.source,
            drain_bytes_per_s: bytes_per_s,
            drain_rate_from: source,
            warnings: Vec::new(),
            signalled: None,
            ended_job: false,
        };
        KnownEnd { terms, rate_source: source, end: Mutex::new(end), account: Mutex::new(account) }
    }

    /// Watches until the job ends, which closes `stop`, and wakes `events` for each pending action.
    /// After the job's end, it waits only for a file-system call already in progress.
    pub fn watch(&self, stop: &Receiver<()>, events: &EventSender) {
        let is_over =
            |after: Duration| !matches!(stop.recv_timeout(after), Err(RecvTimeoutError::Timeout));
        let should_continue = || stop.try_recv() == Err(TryRecvError::Empty);
        while !self.work.is_asked_for() {
            if is_over(ASKED_LOOK) {
                return;
            }
        }
        let Some(known_end) = self.known_end(&should_continue) else {
            return;
        };
        let mut ask_again_s = known_end.left_s() / 2.0;
        let mut last_error = None;
        while should_continue() {
            if known_end.left_s() < ask_again_s && known_end.left_s() > MARGIN_S_MAX {
                self.refresh_end(known_end, &should_continue);
                ask_again_s = known_end.left_s() / 2.0;
            }
            let Some(now) = self.measure(known_end, &should_continue, &mut last_error) else {
                return;
            };
            let terms = self.terms(known_end);
            let history = *self.history.lock();
            let next_s = match decide(&now, &terms, &history) {
                Action::GoOn(seconds) => seconds,
                Action::Warn => {
                    self.history.lock().warned_bytes = now.bytes.max(1);
                    self.warn(known_end, &now, &terms);
                    0.0
                }
                // The time limit may have changed meanwhile.
                Action::Signal | Action::End if self.refresh_end(known_end, &should_continue) => {
                    0.0
                }
                Action::Signal | Action::End if !should_continue() => return,
                Action::Signal => {
                    self.history.lock().signalled = true;
                    if let Some(signal) = self.options.signal {
                        self.request(PendingAction::Signal(signal.signal), events);
                    }
                    1.0
                }
                Action::End => {
                    self.warn_ending_now(known_end, &now, &terms);
                    return self.request(PendingAction::End, events);
                }
            };
            if is_over(Duration::from_secs_f64(next_s)) {
                return;
            }
        }
    }

    /// Reports the end of the script: no signal is sent to the remaining processes.
    pub fn script_has_ended(&self) {
        self.history.lock().signalled = true;
        self.pending.lock().take_if(|wanted| *wanted != PendingAction::End);
    }

    /// The current parameters, with the rate of the job's own drain.
    fn terms(&self, known_end: &KnownEnd) -> Parameters {
        let first =
            Rate { bytes_per_s: known_end.terms.bytes_per_s, source: known_end.rate_source };
        let rate = first.or_drain(self.work.bytes_per_s());
        let mut account = known_end.account.lock();
        if account.drain_rate_from != rate.source {
            self.messages.explain(&format!(
                "stage-out is now reckoned with {:.0} MB/s ({:?})",
                rate.bytes_per_s / 1e6,
                rate.source
            ));
        }
        account.drain_bytes_per_s = rate.bytes_per_s;
        account.drain_rate_from = rate.source;
        Parameters { bytes_per_s: rate.bytes_per_s, ..known_end.terms }
    }

    /// Applies the pending action. Returns true if the job must end.
    ///
    /// # Errors
    /// If /proc cannot be read.
    pub fn apply_pending(&self, events: &Events) -> forebay_host::Result<bool> {
        let wanted = self.pending.lock().take();
        let Some((wanted, known_end)) = wanted.zip(self.known()) else {
            return Ok(false);
        };
        match wanted {
            PendingAction::End => {
                known_end.account.lock().ended_job = true;
                return Ok(true);
            }
            PendingAction::Signal(signal) => {
                let count = events.signal_catching(signal)?;
                known_end.account.lock().signalled = Some(count);
                if count == 0 {
                    self.warning(known_end, format!(
                        "the job's end is near, and none of its processes catches signal {signal}"
                    ));
                } else {
                    self.messages.note(&format!(
                        "the job's end is near: signal {signal} sent to {count} of its processes"
                    ));
                }
            }
        }
        Ok(false)
    }

    fn known(&self) -> Option<&KnownEnd> {
        self.known_end.get().and_then(Option::as_ref)
    }

    /// The report; none if no end was known.
    pub fn account(&self) -> Option<DeadlineAccount> {
        self.known().map(|known_end| known_end.account.lock().clone())
    }

    /// Whether Forebay ended the job to leave time for stage-out.
    pub fn has_ended_job(&self) -> bool {
        self.known().is_some_and(|known_end| known_end.account.lock().ended_job)
    }

    /// Whether the end may cut off a stage-out that starts now. True before the first query. `open`
    /// returns the files and bytes of that stage-out.
    pub fn is_near(&self, open: impl FnOnce() -> (u64, u64)) -> bool {
        let Some(known_end) = self.known() else {
            return self.known_end.get().is_none();
        };
        let (files, bytes) = open();
        let now = Snapshot { left_s: known_end.left_s(), files, bytes, look_s: 0.0 };
        now.is_near(&self.terms(known_end))
    }

    fn request(&self, wanted: PendingAction, events: &EventSender) {
        *self.pending.lock() = Some(wanted);
        events.wake();
    }

    /// The current snapshot; none if interrupted. `last_error` is the last reported error.
    fn measure(
        &self,
        known_end: &KnownEnd,
        should_continue: &dyn Fn() -> bool,
        last_error: &mut Option<String>,
    ) -> Option<Snapshot> {
        let began = clock::now();
        let Outstanding { files, bytes, error } = self.work.outstanding(should_continue);
        if !should_continue() {
            return None;
        }
        if let Some(error) = error {
            if last_error.as_ref() != Some(&error) {
                self.messages.warning(&error);
            }
            *last_error = Some(error);
        }
        Some(Snapshot {
            left_s: known_end.left_s(),
            files,
            bytes,
            look_s: began.elapsed().as_secs_f64(),
        })
    }

    /// Queries the scheduler again. Returns true if the end has changed.
    fn refresh_end(&self, known_end: &KnownEnd, should_continue: &dyn Fn() -> bool) -> bool {
        if self.given.is_some() {
            return false;
        }
        // After a failed query, keep the known end.
        let Ok(end) = EndTime::query(should_continue) else {
            return false;
        };
        // Without a time limit, use an end that never comes.
        let end = end.unwrap_or_else(|| EndTime::after(NEVER_S, "the scheduler"));
        let moved_s = end.left_s() - known_end.left_s();
        if moved_s.abs() < end.resolution_s {
            return false;
        }
        known_end.account.lock().end_unix_s = end.unix_s;
        *known_end.end.lock() = end;
        let direction = if moved_s > 0.0 { "later" } else { "earlier" };
        self.messages.note(&format!("the scheduler now ends the job {direction} than it said"));
        true
    }

    fn warn(&self, known_end: &KnownEnd, now: &Snapshot, terms: &Parameters) {
        let verb = if now.files == 1 { "is" } else { "are" };
        let files = format!("{} {verb}", counted(now.files, "file"));
        let needed_s = now.needed_s(terms);
        self.warning(
            known_end,
            format!(
                "{} in {files} not safe yet: stage-out takes about {}, and the job ends in {}",
                HumanBytes(now.bytes),
                seconds(needed_s),
                seconds(now.left_s)
            ),
        );
    }

    fn warn_ending_now(&self, known_end: &KnownEnd, now: &Snapshot, terms: &Parameters) {
        let (files, needed_s) = (counted(now.files, "file"), now.needed_s(terms));
        let fits = if needed_s > now.left_s { ": not all of it will fit" } else { "" };
        self.warning(known_end, format!(
            "the job is ended now, so that {} in {files} can be staged out: about {} of the {} that are \
             left{fits}",
            HumanBytes(now.bytes),
            seconds(needed_s),
            seconds(now.left_s)
        ));
    }

    fn warning(&self, known_end: &KnownEnd, text: String) {
        self.messages.warning(&text);
        known_end.account.lock().warnings.push(text);
    }
}

impl KnownEnd {
    fn left_s(&self) -> f64 {
        self.end.lock().left_s()
    }
}

/// None if there is no end, it is unknown, or the query is interrupted.
fn find_end(messages: &dyn Messages, should_continue: &dyn Fn() -> bool) -> Option<EndTime> {
    if let Some(end) = EndTime::from_environment() {
        return Some(end);
    }
    match EndTime::query(should_continue) {
        Ok(end) => end,
        Err(_) if !should_continue() => None,
        Err(why) => {
            messages.warning(&format!(
                "when the job ends is not known ({why}): stage-out will not begin before the job has ended; \
                 --deadline TIME says it"
            ));
            None
        }
    }
}

fn seconds(seconds: f64) -> HumanDuration {
    HumanDuration(Duration::try_from_secs_f64(seconds).unwrap_or_default())
}
