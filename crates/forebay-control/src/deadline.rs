//! Safe before the clock stops: inside a scheduler's job the final stage-out begins while there is time
//! for it (docs/clock.md).
//!
//! While the job runs a thread looks now and then at what is not at its destination yet ([`Guard::watch`]); what
//! is to be done is decided by arithmetic alone (`policy`). The job's data path is not touched.

mod end;
mod not_safe;
mod policy;
mod rate;

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use forebay_host::clock;
use forebay_host::process::{Bell, Events};
use forebay_mover::{Journal, Number};
use indicatif::{HumanBytes, HumanDuration};
use serde::Serialize;

use crate::execution::JOB_GRACE;
use crate::staging::StageOut;
use crate::{Staged, Watcher};

use end::End;
use policy::{Action, Said, Situation, Terms, decide};

pub use not_safe::NotSafe;
pub use rate::Measured;

/// Kept free before the end: a part of the time there is, and no more than so much.
const MARGIN_SHARE: f64 = 0.05;
const MARGIN_S_MAX: f64 = 60.0;
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

/// Watches over a job that stages out.
pub(crate) struct Guard<'a> {
    stage_out: StageOut<'a>,
    watcher: &'a dyn Watcher,
    terms: Terms,
    signal: Option<i32>,
    /// Is there nobody to be asked again?
    end_is_given: bool,
    wanted: Mutex<Option<Wanted>>,
    account: Mutex<DeadlineAccount>,
}

impl<'a> Guard<'a> {
    /// None if no end of the job is known.
    pub(crate) fn of(
        wishes: &DeadlineWishes,
        under_scheduler: bool,
        stage_out: StageOut<'a>,
        stage_in: Option<&Staged>,
        watcher: &'a dyn Watcher,
    ) -> Option<Self> {
        let end = match wishes.end_after {
            Some(after) => Some(end::after(after.as_secs_f64(), "--deadline")),
            None if under_scheduler => known_end(watcher),
            None => None,
        }?;
        let left_s = end.unix_s - clock::unix_seconds();
        let margin_s = (left_s * MARGIN_SHARE).clamp(0.0, MARGIN_S_MAX);
        let (bytes_per_s, measured) = rate::rate(wishes.drain_bytes_per_s, stage_in);
        let terms = Terms {
            bytes_per_s,
            margin_s: wishes
                .margin
                .map_or(margin_s, |margin| margin.as_secs_f64()),
            grace_s: JOB_GRACE.as_secs_f64(),
            signal_s: wishes.signal.map(|signal| signal.before.as_secs_f64()),
        };
        watcher.explain(&format!(
            "the job ends in {left_s:.0} s, as {} says; stage-out is reckoned with {:.0} MB/s ({measured:?}), \
             and {:.0} s are kept free",
            end.told_by,
            bytes_per_s / 1e6,
            terms.margin_s
        ));
        Some(Self {
            stage_out,
            watcher,
            terms,
            signal: wishes.signal.map(|signal| signal.signal),
            end_is_given: wishes.end_after.is_some(),
            wanted: Mutex::new(None),
            account: Mutex::new(DeadlineAccount {
                end_unix_s: end.unix_s,
                told_by: end.told_by,
                drain_bytes_per_s: bytes_per_s,
                drain_rate_from: measured,
                warnings: Vec::new(),
                signalled: None,
                ended_job: false,
            }),
        })
    }

    /// Looks until the job has ended (`stop` is closed then), and rings when the one who waits for it has
    /// something to do.
    pub(crate) fn watch(&self, stop: &Receiver<()>, bell: &Bell) {
        let mut said = Said::default();
        let mut ask_again_s = self.left_s() / 2.0;
        loop {
            if self.left_s() < ask_again_s && self.left_s() > MARGIN_S_MAX {
                self.end_has_moved();
                ask_again_s = self.left_s() / 2.0;
            }
            let now = self.look();
            let next_s = match decide(&now, &self.terms, &said) {
                Action::GoOn(seconds) => seconds,
                Action::Warn => {
                    said.warned_bytes = now.bytes.max(1);
                    self.warn(&now);
                    0.0
                }
                // The limit may have been extended meanwhile.
                Action::Signal | Action::End if self.end_has_moved() => 0.0,
                Action::Signal => {
                    said.signalled = true;
                    if let Some(signal) = self.signal {
                        self.want(Wanted::Signal(signal), bell);
                    }
                    1.0
                }
                Action::End => {
                    self.tell_of_the_end(&now);
                    return self.want(Wanted::End, bell);
                }
            };
            match stop.recv_timeout(Duration::from_secs_f64(next_s)) {
                Err(RecvTimeoutError::Timeout) => {}
                _ => return,
            }
        }
    }

    /// Does what is wanted. Is the job to be ended?
    ///
    /// # Errors
    /// If /proc cannot be read.
    pub(crate) fn obey(&self, events: &Events) -> forebay_host::Result<bool> {
        let wanted = locked(&self.wanted).take();
        match wanted {
            None => {}
            Some(Wanted::End) => {
                locked(&self.account).ended_job = true;
                return Ok(true);
            }
            Some(Wanted::Signal(signal)) => {
                let count = events.signal_those_that_catch(signal)?;
                locked(&self.account).signalled = Some(count);
                if count == 0 {
                    self.warning(format!(
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

    /// How it went.
    pub(crate) fn account(&self) -> DeadlineAccount {
        locked(&self.account).clone()
    }

    /// Is so little time left that a stage-out which begins now may be cut short?
    pub(crate) fn is_near(&self, journal: &Journal) -> bool {
        // A journal that cannot be read will be said to be so by the stage-out.
        let open = journal
            .counts()
            .map_or_else(|_| Number::default(), |counts| counts.open());
        let now = Situation {
            left_s: self.left_s(),
            files: open.files,
            bytes: open.bytes,
            look_s: 0.0,
        };
        now.is_near(&self.terms)
    }

    fn want(&self, wanted: Wanted, bell: &Bell) {
        *locked(&self.wanted) = Some(wanted);
        bell.ring();
    }

    fn left_s(&self) -> f64 {
        locked(&self.account).end_unix_s - clock::unix_seconds()
    }

    /// What would have to be staged out now. Only names, sizes and times are looked at.
    fn look(&self) -> Situation {
        let began = clock::now();
        let (mut files, mut bytes) = (0, 0);
        let planned = Journal::in_memory().and_then(|journal| self.stage_out.plan_in(journal));
        let looked = planned.and_then(|journal| {
            journal.missing(|missing| {
                files += 1;
                bytes += missing.bytes;
            })
        });
        if let Err(error) = looked {
            self.watcher.warning(&error.to_string());
        }
        let look_s = began.elapsed().as_secs_f64();
        let left_s = self.left_s();
        Situation {
            left_s,
            files,
            bytes,
            look_s,
        }
    }

    /// Asks the scheduler again.
    fn end_has_moved(&self) -> bool {
        if self.end_is_given {
            return false;
        }
        // What cannot be known now is as it was.
        let Ok(end) = end::ask() else { return false };
        let mut account = locked(&self.account);
        // No limit any more is a limit that never comes.
        let end = end.unwrap_or_else(|| end::after(NEVER_S, "the scheduler"));
        let moved_s = end.unix_s - account.end_unix_s;
        if moved_s.abs() < end.exact_within_s {
            return false;
        }
        account.end_unix_s = end.unix_s;
        drop(account);
        let direction = if moved_s > 0.0 { "later" } else { "earlier" };
        self.watcher.note(&format!(
            "the scheduler now ends the job {direction} than it said"
        ));
        true
    }

    fn warn(&self, now: &Situation) {
        let (files, needed_s) = (now.files, now.needed_s(&self.terms));
        self.warning(format!(
            "{} in {files} files are not safe yet: stage-out takes about {}, and the job ends in {}",
            HumanBytes(now.bytes),
            seconds(needed_s),
            seconds(now.left_s)
        ));
    }

    fn tell_of_the_end(&self, now: &Situation) {
        let (files, needed_s) = (now.files, now.needed_s(&self.terms));
        let fits = if needed_s > now.left_s {
            ": not all of it will fit"
        } else {
            ""
        };
        self.warning(format!(
            "the job is ended now, so that {} in {files} files can be staged out: about {} of the {} that are \
             left{fits}",
            HumanBytes(now.bytes),
            seconds(needed_s),
            seconds(now.left_s)
        ));
    }

    fn warning(&self, text: String) {
        self.watcher.warning(&text);
        locked(&self.account).warnings.push(text);
    }
}

fn known_end(watcher: &dyn Watcher) -> Option<End> {
    if let Some(end) = end::in_environment() {
        return Some(end);
    }
    match end::ask() {
        Ok(end) => end,
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
