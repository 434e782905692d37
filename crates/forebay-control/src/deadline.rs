//! Safe before the clock stops: inside a scheduler's job the final stage-out begins while there is time
//! for it (docs/clock.md).
//!
//! While the job runs a thread looks now and then at what is not at its destination yet ([`Guard::watch`]); what
//! is to be done is decided by arithmetic alone (`policy`). The job's data path is not touched.

mod policy;
mod rate;

use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use forebay_host::clock;
use forebay_host::process::{Bell, Events};
use forebay_mover::{Journal, Number};
use forebay_scheduler::EndTime;
use indicatif::{HumanBytes, HumanDuration};
use serde::Serialize;

use crate::drain::Drain;
use crate::execution::JOB_GRACE;
use crate::{Messages, Staged};
use forebay_staging::StageOut;

use policy::{Action, Said, Situation, Terms, decide};

pub use rate::Measured;
use rate::Rate;

/// Kept free before the end: a part of the time there is, and no more than so much.
const MARGIN_SHARE: f64 = 0.05;
const MARGIN_S_MAX: f64 = 60.0;
/// How often a job that stages nothing out is looked at, whether it has asked for it meanwhile.
const ASKED_LOOK: Duration = Duration::from_secs(1);
/// Longer than any job: a thousand years.
const NEVER_S: f64 = 1000.0 * 365.0 * 86_400.0;

/// What the user says about the end of the job.
#[derive(Debug, Clone, Copy, Default)]
pub struct DeadlineWishes {
    /// The end is so far from now, whatever a scheduler says.
    pub end_after: Option<Duration>,
    /// Speed of stage-out in bytes per second, instead of what was measured.
    pub drain_bytes_per_s: Option<u64>,
    /// Time that is kept free before the end.
    pub margin: Option<Duration>,
    /// What the job's processes get before the job is ended.
    pub signal: Option<SignalBefore>,
}

/// A signal so long before the job is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignalBefore {
    /// Its number.
    pub signal: i32,
    /// How long before.
    pub before: Duration,
}

/// What became of the time, as `--json` shows it.
#[derive(Debug, Clone, Serialize)]
pub struct DeadlineAccount {
    /// When the scheduler ends the job, in seconds since 1970.
    pub end_unix_s: f64,
    /// Who says so.
    pub told_by: &'static str,
    /// Speed of stage-out that was reckoned with.
    pub drain_bytes_per_s: f64,
    /// Whence it is known.
    pub drain_rate_from: Measured,
    /// What was said of the time left.
    pub warnings: Vec<String>,
    /// Processes that got the signal; none if it was not sent.
    pub signalled: Option<usize>,
    /// The job was ended so that stage-out had time.
    pub ended_job: bool,
}

/// What the thread that looks wants of the one that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Signal(i32),
    End,
}

/// Watches over a job that stages out, or whose programs may ask for it.
pub(crate) struct Guard<'a> {
    /// As it was when the job began.
    stage_out: StageOut<'a>,
    drain: Option<&'a Drain<'a>>,
    watcher: &'a dyn Messages,
    wishes: &'a DeadlineWishes,
    stage_in: Option<Staged>,
    /// Stage-out writes no more than this.
    bytes_per_s_max: Option<u64>,
    /// The end that the user says.
    given: Option<EndTime>,
    /// Not settled: nobody was asked yet. None: the job has no end, or it cannot be known.
    duty: OnceLock<Option<Duty>>,
    wanted: Mutex<Option<Wanted>>,
    said: Mutex<Said>,
}

/// What there is to do where the end is known.
struct Duty {
    /// With the speed that was known then.
    terms: Terms,
    rate_from: Measured,
    end: Mutex<EndTime>,
    account: Mutex<DeadlineAccount>,
}

impl<'a> Guard<'a> {
    /// None if the job cannot have an end that anybody could know.
    pub(crate) fn of(
        wishes: &'a DeadlineWishes,
        under_scheduler: bool,
        stage_out: StageOut<'a>,
        drain: Option<&'a Drain<'a>>,
        stage_in: Option<&Staged>,
        bytes_per_s_max: Option<u64>,
        watcher: &'a dyn Messages,
    ) -> Option<Self> {
        let given = wishes.end_after;
        let given = given.map(|after| EndTime::after(after.as_secs_f64(), "--deadline"));
        (given.is_some() || under_scheduler).then(|| Self {
            stage_out,
            drain,
            watcher,
            wishes,
            stage_in: stage_in.cloned(),
            bytes_per_s_max,
            given,
            duty: OnceLock::new(),
            wanted: Mutex::new(None),
            said: Mutex::default(),
        })
    }

    /// Asks for the end of a job of which something is to be staged out. Where its programs will first have to
    /// ask for that, nobody is troubled yet.
    pub(crate) fn begin(&self) {
        if self.is_asked_for() {
            self.duty(&|| true);
        }
    }

    /// Is the job's end known, or to be reckoned with since nobody was asked yet?
    pub(crate) fn is_on_duty(&self) -> bool {
        let duty = self.duty.get();
        duty.map_or_else(|| self.is_asked_for(), Option::is_some)
    }

    fn is_asked_for(&self) -> bool {
        self.stage_out().is_asked_for()
    }

    /// As it is now: launchers may have told Spectral's directories meanwhile.
    fn stage_out(&self) -> StageOut<'a> {
        StageOut {
            elsewhere: self.drain.map(Drain::elsewhere).unwrap_or_default(),
            ..self.stage_out.clone()
        }
    }

    /// Learns the end if nobody was asked yet; none if there is none.
    fn duty(&self, go_on: &dyn Fn() -> bool) -> Option<&Duty> {
        if let Some(duty) = self.duty.get() {
            return duty.as_ref();
        }
        let end = match self.given {
            Some(end) => Some(end),
            None => known_end(self.watcher, go_on),
        };
        if end.is_none() && !go_on() {
            return None; // it was not waited for
        }
        let settled = || end.map(|end| self.settled(end));
        self.duty.get_or_init(settled).as_ref()
    }

    fn settled(&self, end: EndTime) -> Duty {
        let wishes = self.wishes;
        let left_s = end.left_s();
        let margin_s = (left_s * MARGIN_SHARE).clamp(0.0, MARGIN_S_MAX);
        let rate = rate::rate(wishes.drain_bytes_per_s, self.stage_in.as_ref());
        let Rate { bytes_per_s, from } = rate.at_most(self.bytes_per_s_max);
        let terms = Terms {
            bytes_per_s,
            margin_s: wishes
                .margin
                .map_or(margin_s, |margin| margin.as_secs_f64()),
            grace_s: JOB_GRACE.as_secs_f64(),
            signal_s: wishes.signal.map(|signal| signal.before.as_secs_f64()),
        };
        self.watcher.explain(&format!(
            "the job ends in {left_s:.0} s, as {} says; stage-out is reckoned with {:.0} MB/s ({from:?}), \
             and {:.0} s are kept free",
            end.source,
            bytes_per_s / 1e6,
            terms.margin_s
        ));
        let account = DeadlineAccount {
            end_unix_s: end.unix_s,
            told_by: end.source,
            drain_bytes_per_s: bytes_per_s,
            drain_rate_from: from,
            warnings: Vec::new(),
            signalled: None,
            ended_job: false,
        };
        Duty {
            terms,
            rate_from: from,
            end: Mutex::new(end),
            account: Mutex::new(account),
        }
    }

    /// Looks until the job has ended (`stop` is closed then), and rings when the one who waits for it has
    /// something to do. A job that has ended waits for one call to a file system at most.
    pub(crate) fn watch(&self, stop: &Receiver<()>, bell: &Bell) {
        let is_over =
            |after: Duration| !matches!(stop.recv_timeout(after), Err(RecvTimeoutError::Timeout));
        let go_on = || stop.try_recv() == Err(TryRecvError::Empty);
        while !self.is_asked_for() {
            if is_over(ASKED_LOOK) {
                return;
            }
        }
        let Some(duty) = self.duty(&go_on) else {
            return;
        };
        let mut ask_again_s = duty.left_s() / 2.0;
        let mut trouble = None;
        while go_on() {
            if duty.left_s() < ask_again_s && duty.left_s() > MARGIN_S_MAX {
                self.end_has_moved(duty, &go_on);
                ask_again_s = duty.left_s() / 2.0;
            }
            let Some(now) = self.look(duty, &go_on, &mut trouble) else {
                return;
            };
            let terms = self.terms(duty);
            let said = *locked(&self.said);
            let next_s = match decide(&now, &terms, &said) {
                Action::GoOn(seconds) => seconds,
                Action::Warn => {
                    locked(&self.said).warned_bytes = now.bytes.max(1);
                    self.warn(duty, &now, &terms);
                    0.0
                }
                // The limit may have been extended meanwhile.
                Action::Signal | Action::End if self.end_has_moved(duty, &go_on) => 0.0,
                Action::Signal | Action::End if !go_on() => return,
                Action::Signal => {
                    locked(&self.said).signalled = true;
                    if let Some(signal) = self.wishes.signal {
                        self.want(Wanted::Signal(signal.signal), bell);
                    }
                    1.0
                }
                Action::End => {
                    self.tell_of_the_end(duty, &now, &terms);
                    return self.want(Wanted::End, bell);
                }
            };
            if is_over(Duration::from_secs_f64(next_s)) {
                return;
            }
        }
    }

    /// Its script has ended: what runs still gets no signal before the end.
    pub(crate) fn script_has_ended(&self) {
        locked(&self.said).signalled = true;
        locked(&self.wanted).take_if(|wanted| *wanted != Wanted::End);
    }

    /// What is reckoned with now, as far as the job's own drain shows it.
    fn terms(&self, duty: &Duty) -> Terms {
        let first = Rate {
            bytes_per_s: duty.terms.bytes_per_s,
            from: duty.rate_from,
        };
        let rate = first.or_drain(self.drain.and_then(Drain::bytes_per_s));
        let mut account = locked(&duty.account);
        if account.drain_rate_from != rate.from {
            self.watcher.explain(&format!(
                "stage-out is now reckoned with {:.0} MB/s ({:?})",
                rate.bytes_per_s / 1e6,
                rate.from
            ));
        }
        account.drain_bytes_per_s = rate.bytes_per_s;
        account.drain_rate_from = rate.from;
        Terms {
            bytes_per_s: rate.bytes_per_s,
            ..duty.terms
        }
    }

    /// Does what is wanted. Is the job to be ended?
    ///
    /// # Errors
    /// If /proc cannot be read.
    pub(crate) fn obey(&self, events: &Events) -> forebay_host::Result<bool> {
        let wanted = locked(&self.wanted).take();
        let Some((wanted, duty)) = wanted.zip(self.known()) else {
            return Ok(false);
        };
        match wanted {
            Wanted::End => {
                locked(&duty.account).ended_job = true;
                return Ok(true);
            }
            Wanted::Signal(signal) => {
                let count = events.signal_those_that_catch(signal)?;
                locked(&duty.account).signalled = Some(count);
                if count == 0 {
                    self.warning(duty, format!(
                        "the job's end is near, and none of its processes catches signal {signal}"
                    ));
                } else {
                    self.watcher.note(&format!(
                        "the job's end is near: signal {signal} sent to {count} of its processes"
                    ));
                }
            }
        }
        Ok(false)
    }

    fn known(&self) -> Option<&Duty> {
        self.duty.get().and_then(Option::as_ref)
    }

    /// How it went; none if no end was known.
    pub(crate) fn account(&self) -> Option<DeadlineAccount> {
        self.known().map(|duty| locked(&duty.account).clone())
    }

    /// Was the job ended so that stage-out has time?
    pub(crate) fn has_ended_job(&self) -> bool {
        self.known()
            .is_some_and(|duty| locked(&duty.account).ended_job)
    }

    /// Is so little time left that a stage-out which begins now may be cut short? Where nobody was asked yet,
    /// it may be.
    pub(crate) fn is_near(&self, journal: &Journal) -> bool {
        let Some(duty) = self.known() else {
            return self.duty.get().is_none();
        };
        // A journal that cannot be read will be said to be so by the stage-out.
        let open = journal
            .counts()
            .map_or_else(|_| Number::default(), |counts| counts.open());
        let now = Situation {
            left_s: duty.left_s(),
            files: open.files,
            bytes: open.bytes,
            look_s: 0.0,
        };
        now.is_near(&self.terms(duty))
    }

    fn want(&self, wanted: Wanted, bell: &Bell) {
        *locked(&self.wanted) = Some(wanted);
        bell.ring();
    }

    /// What would have to be staged out now; none if it was not to go on. Only names, sizes and times are looked
    /// at. What cannot be looked at counts as a file: it may hold data. `trouble` is what was told last of a look
    /// that failed.
    fn look(
        &self,
        duty: &Duty,
        go_on: &dyn Fn() -> bool,
        trouble: &mut Option<String>,
    ) -> Option<Situation> {
        let began = clock::now();
        let (mut files, mut bytes) = (0, 0);
        let planned = Journal::in_memory()
            .and_then(|journal| self.stage_out().plan_in(journal, &|_| go_on()));
        let looked = planned.and_then(|journal| {
            if let Some(drain) = self.drain {
                drain.tell_coarse(&journal);
            }
            journal.missing(go_on, |missing| {
                if !missing.is_hopeless {
                    files += 1;
                    bytes += missing.bytes;
                }
            })
        });
        if !go_on() {
            return None;
        }
        if let Err(error) = looked {
            let error = error.to_string();
            files += 1;
            if trouble.as_ref() != Some(&error) {
                self.watcher.warning(&error);
            }
            *trouble = Some(error);
        }
        Some(Situation {
            left_s: duty.left_s(),
            files,
            bytes,
            look_s: began.elapsed().as_secs_f64(),
        })
    }

    /// Asks the scheduler again.
    fn end_has_moved(&self, duty: &Duty, go_on: &dyn Fn() -> bool) -> bool {
        if self.given.is_some() {
            return false;
        }
        // What cannot be known now is as it was.
        let Ok(end) = EndTime::query(go_on) else {
            return false;
        };
        // No limit any more is a limit that never comes.
        let end = end.unwrap_or_else(|| EndTime::after(NEVER_S, "the scheduler"));
        let moved_s = end.left_s() - duty.left_s();
        if moved_s.abs() < end.resolution_s {
            return false;
        }
        locked(&duty.account).end_unix_s = end.unix_s;
        *locked(&duty.end) = end;
        let direction = if moved_s > 0.0 { "later" } else { "earlier" };
        self.watcher.note(&format!(
            "the scheduler now ends the job {direction} than it said"
        ));
        true
    }

    fn warn(&self, duty: &Duty, now: &Situation, terms: &Terms) {
        let (files, needed_s) = (now.files, now.needed_s(terms));
        self.warning(duty, format!(
            "{} in {files} files are not safe yet: stage-out takes about {}, and the job ends in {}",
            HumanBytes(now.bytes),
            seconds(needed_s),
            seconds(now.left_s)
        ));
    }

    fn tell_of_the_end(&self, duty: &Duty, now: &Situation, terms: &Terms) {
        let (files, needed_s) = (now.files, now.needed_s(terms));
        let fits = if needed_s > now.left_s {
            ": not all of it will fit"
        } else {
            ""
        };
        self.warning(duty, format!(
            "the job is ended now, so that {} in {files} files can be staged out: about {} of the {} that are \
             left{fits}",
            HumanBytes(now.bytes),
            seconds(needed_s),
            seconds(now.left_s)
        ));
    }

    fn warning(&self, duty: &Duty, text: String) {
        self.watcher.warning(&text);
        locked(&duty.account).warnings.push(text);
    }
}

impl Duty {
    fn left_s(&self) -> f64 {
        locked(&self.end).left_s()
    }
}

/// None also if it was not to go on.
fn known_end(watcher: &dyn Messages, go_on: &dyn Fn() -> bool) -> Option<EndTime> {
    if let Some(end) = EndTime::from_environment() {
        return Some(end);
    }
    match EndTime::query(go_on) {
        Ok(end) => end,
        Err(_) if !go_on() => None,
        Err(why) => {
            watcher.warning(&format!(
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

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A signal and a time before, as for `sbatch --signal`: `USR1@120`, `10@60`, `SIGTERM`.
///
/// # Errors
/// What should be written.
pub fn parse_signal(text: &str) -> Result<SignalBefore, String> {
    const DEFAULT_S: u64 = 60; // Slurm's
    let (name, seconds) = text.split_once('@').unwrap_or((text, ""));
    let signal = forebay_host::process::signal_number(name);
    let seconds = if seconds.is_empty() && !text.contains('@') {
        Some(DEFAULT_S)
    } else {
        seconds.parse().ok()
    };
    match (signal, seconds) {
        (Some(signal), Some(seconds)) => Ok(SignalBefore {
            signal,
            before: Duration::from_secs(seconds),
        }),
        _ => {
            Err("write for example USR1@120: a signal, and seconds before the job is ended".into())
        }
    }
}
