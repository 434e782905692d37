//! Has a node stage the data of an allocation, and waits for it. Killing this process does not stop the work; the next
//! call finds it.

use std::time::{Duration, Instant};

use forebay_directive::{Direction, Stage};
use forebay_host::{clock, system};

use crate::call::Call;
use crate::context::Context;
use crate::messages::{Operation, Outcome, Staging};
use crate::progress::Shown;
use crate::{Error, NoAnswer, Phase, Session};

/// The first wait between two questions; it doubles up to the second.
const INTERVAL_MIN: Duration = Duration::from_millis(25);
const INTERVAL_MAX: Duration = Duration::from_secs(2);
/// The longest wait before a failed stage-out is tried again. The first is 1 s, and each next one twice as long.
const RETRY_MAX: Duration = Duration::from_secs(60);
/// How long a call waits that comes again.
const POLL: Duration = Duration::from_secs(3);

/// Files and bytes that a staging copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Staged {
    files: u64,
    bytes: u64,
}

/// A text that no other attempt has.
pub(crate) fn new_attempt() -> Result<String, Error> {
    Ok(system::random_text::<8>()?)
}

/// Why a call ends whose allocation another call removed.
pub(crate) fn removed_meanwhile(token: &str) -> Error {
    Error::new(format!("the allocation of {token} was removed meanwhile"))
}

/// Waits that grow.
pub(crate) struct Pause(Duration, Duration);

impl Pause {
    pub(crate) fn usual() -> Self {
        Self(INTERVAL_MIN, INTERVAL_MAX)
    }

    pub(crate) fn next(&mut self) -> Duration {
        let now = self.0;
        self.0 = (self.0 * 2).min(self.1);
        now
    }
}

/// How long a staging is waited for and tried again.
pub(crate) struct Patience {
    /// Tries again for so long after the first failure.
    pub(crate) retry: Duration,
    /// Gives up at this time.
    pub(crate) until: Option<Instant>,
    /// Whether the caller comes again soon, so that what failed before counts, too.
    pub(crate) polls: bool,
}

impl Patience {
    /// Waits for the end.
    pub(crate) fn of(retry: Duration) -> Self {
        Self { retry, until: None, polls: false }
    }

    /// As the caller wants it.
    pub(crate) fn of_call(call: &Call, retry: Duration) -> Self {
        let until = call.polls.then(|| clock::now() + POLL);
        Self { retry, until, polls: call.polls }
    }
}

/// Whether a staging is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waited {
    ToTheEnd,
    /// It goes on: time is up.
    NotToTheEnd,
}

impl Context {
    /// Stages in or out, and sets the phase after that. Stores the error.
    ///
    /// # Errors
    /// If it failed for good, the allocation was removed meanwhile, or the node does not answer.
    pub(crate) fn stage(
        &mut self,
        session: &Session,
        direction: Direction,
        patience: &Patience,
    ) -> Result<Waited, Error> {
        let (stages, word, from, to) = match direction {
            Direction::In => (&session.plan.stage_in, "in", Phase::StagingIn, Phase::StagedIn),
            Direction::Out => (&session.plan.stage_out, "out", Phase::StagingOut, Phase::StagedOut),
        };
        if !stages.is_empty() {
            match self.stage_on_node(session, direction, stages, patience) {
                Ok(None) => return Ok(Waited::NotToTheEnd),
                Ok(Some(Staged { files, bytes })) => {
                    let token = &session.token;
                    self.log.line(&format!("{token}: staged {word} {files} files, {bytes} bytes"));
                }
                Err(error) => {
                    self.database.set_problem(session.id, Some(&error.to_string()))?;
                    return Err(error);
                }
            }
        }
        self.database.set_problem(session.id, None)?;
        // Another call may have completed it.
        match self.database.advance(session.id, &[from, to], to)? {
            true => Ok(Waited::ToTheEnd),
            false => Err(removed_meanwhile(&session.token)),
        }
    }

    /// None if time is up.
    fn stage_on_node(
        &mut self,
        session: &Session,
        direction: Direction,
        stages: &[Stage],
        patience: &Patience,
    ) -> Result<Option<Staged>, Error> {
        let persistent = self.database.used_by(session.id)?;
        let staging = Staging {
            direction,
            stages: stages.to_vec(),
            persistent: persistent.iter().map(|one| (one.token.clone(), one.place())).collect(),
            capacity_bytes: session.capacity_bytes(),
        };
        let node = self.node_of(session)?;
        let mut shown = Shown::of(&self.site, session, direction, patience.polls)?;
        if patience.polls && shown.waits_for_next_try() {
            shown.show(true);
            return Ok(None);
        }
        let mut pause = Pause::usual();
        loop {
            if !self.is_kept(session)? {
                return Err(removed_meanwhile(&session.token));
            }
            let operation = Operation::Stage {
                place: session.place(),
                staging: staging.clone(),
                attempt: shown.staging.attempt.clone(),
            };
            let wait = match self.ask(&node, operation) {
                Ok(Outcome::Done { files, bytes, .. }) => return Ok(Some(Staged { files, bytes })),
                Ok(Outcome::Running { progress }) => {
                    shown.staging.answered(Some(progress));
                    pause.next()
                }
                Ok(Outcome::Failed { reason, is_final }) => {
                    shown.staging.answered(None);
                    pause = Pause::usual();
                    self.wait_after(&mut shown, session, (reason, is_final), patience)?
                }
                Ok(_) => {
                    return Err(Error::new(format!("{node} answered another question")));
                }
                Err(NoAnswer::Wrong(error)) => return Err(error),
                Err(NoAnswer::Unreachable(error) | NoAnswer::Lost(error)) => {
                    if shown.staging.is_silent() > self.site.node_wait {
                        return Err(error);
                    }
                    pause.next()
                }
            };
            let is_over = patience.until.is_some_and(|until| clock::now() + wait > until);
            shown.show(is_over);
            if is_over {
                return Ok(None);
            }
            clock::sleep(wait);
        }
    }

    /// How long to wait before a failed staging is tried again.
    fn wait_after(
        &mut self,
        shown: &mut Shown,
        session: &Session,
        (reason, is_final): (String, bool),
        patience: &Patience,
    ) -> Result<Duration, Error> {
        let wait = Duration::from_secs(1 << shown.staging.failures.min(6)).min(RETRY_MAX);
        let failing = shown.staging.failed(wait)?;
        if is_final || failing + wait > patience.retry {
            return Err(Error::new(reason));
        }
        self.database.set_problem(session.id, Some(&reason))?;
        self.log.line(&format!(
            "{}: {reason}; trying again in {} s",
            session.token,
            wait.as_secs()
        ));
        Ok(wait)
    }

    /// Whether no other call removes the allocation, for example because the job was cancelled.
    pub(crate) fn is_kept(&self, session: &Session) -> Result<bool, Error> {
        let now = self.database.session(&session.token)?;
        Ok(now.is_some_and(|now| now.id == session.id && now.phase != Phase::Removing))
    }
}
