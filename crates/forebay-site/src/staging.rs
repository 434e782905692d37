//! Has a node stage the data of an allocation, and waits for it. Killing this process does not stop the work; the next
//! call finds it.

use std::time::{Duration, Instant};

use forebay_directive::{Direction, Stage};
use forebay_host::{clock, system};

use crate::context::Context;
use crate::messages::{Operation, Outcome, Staging};
use crate::{Error, NoAnswer, Phase, Session};

/// The first wait between two questions; it doubles up to the second.
const INTERVAL_MIN: Duration = Duration::from_millis(25);
const INTERVAL_MAX: Duration = Duration::from_secs(2);
/// The first wait before a failed stage-out is tried again; it doubles up to the second.
const RETRY_MIN: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(60);

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
}

impl Context {
    /// Stages in or out, and sets the phase after that. Stores the error.
    ///
    /// # Errors
    /// If it failed for good, the allocation was removed meanwhile, the node does not answer, or time is up.
    pub(crate) fn stage(
        &mut self,
        session: &Session,
        direction: Direction,
        patience: &Patience,
    ) -> Result<(), Error> {
        let (stages, word, from, to) = match direction {
            Direction::In => (&session.plan.stage_in, "in", Phase::StagingIn, Phase::StagedIn),
            Direction::Out => (&session.plan.stage_out, "out", Phase::StagingOut, Phase::StagedOut),
        };
        if !stages.is_empty() {
            match self.stage_on_node(session, direction, stages, patience) {
                Ok(Staged { files, bytes }) => {
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
            true => Ok(()),
            false => Err(removed_meanwhile(&session.token)),
        }
    }

    fn stage_on_node(
        &mut self,
        session: &Session,
        direction: Direction,
        stages: &[Stage],
        patience: &Patience,
    ) -> Result<Staged, Error> {
        let persistent = self.database.used_by(session.id)?;
        let staging = Staging {
            direction,
            stages: stages.to_vec(),
            persistent: persistent.iter().map(|one| (one.token.clone(), one.place())).collect(),
            capacity_bytes: session.capacity_bytes(),
        };
        let node = self.node_of(session)?;
        let mut attempt = new_attempt()?;
        let (mut pause, mut retry) = (Pause::usual(), Pause(RETRY_MIN, RETRY_MAX));
        let (mut silent_since, mut failing_since) = (None, None);
        loop {
            if !self.is_kept(session)? {
                return Err(removed_meanwhile(&session.token));
            }
            let operation = Operation::Stage {
                place: session.place(),
                staging: staging.clone(),
                attempt: attempt.clone(),
            };
            let wait = match self.ask(&node, operation) {
                Ok(Outcome::Done { files, bytes, .. }) => return Ok(Staged { files, bytes }),
                Ok(Outcome::Running) => {
                    silent_since = None;
                    pause.next()
                }
                Ok(Outcome::Failed { reason, is_final }) => {
                    silent_since = None;
                    let since = *failing_since.get_or_insert_with(clock::now);
                    let wait = retry.next();
                    if is_final || since.elapsed() + wait > patience.retry {
                        return Err(Error::new(reason));
                    }
                    self.log.line(&format!(
                        "{}: {reason}; trying again in {} s",
                        session.token,
                        wait.as_secs()
                    ));
                    attempt = new_attempt()?;
                    pause = Pause::usual();
                    wait
                }
                Ok(_) => {
                    return Err(Error::new(format!("{node} answered another question")));
                }
                Err(NoAnswer::Wrong(error)) => return Err(error),
                Err(NoAnswer::Unreachable(error) | NoAnswer::Lost(error)) => {
                    let since = *silent_since.get_or_insert_with(clock::now);
                    if since.elapsed() > self.site.node_wait {
                        return Err(error);
                    }
                    pause.next()
                }
            };
            if patience.until.is_some_and(|until| clock::now() + wait > until) {
                return Err(
                    Error::new("the staging goes on").with_hint("it will be asked for again")
                );
            }
            clock::sleep(wait);
        }
    }

    /// Whether no other call removes the allocation, for example because the job was cancelled.
    pub(crate) fn is_kept(&self, session: &Session) -> Result<bool, Error> {
        let now = self.database.session(&session.token)?;
        Ok(now.is_some_and(|now| now.id == session.id && now.phase != Phase::Removing))
    }
}
