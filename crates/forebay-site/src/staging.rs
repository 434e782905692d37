//! Has a node stage the data of an allocation, and waits for it. Killing this process does not stop the work; the next
//! call finds it.

use std::time::{Duration, Instant};

use forebay_directive::Direction;
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
pub(crate) struct Staged {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
}

/// A number that no other attempt has.
pub(crate) fn new_attempt() -> Result<String, Error> {
    let bytes = system::random_bytes::<8>()?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
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
    /// Stages in or out.
    ///
    /// # Errors
    /// If it failed for good, the allocation was removed meanwhile, the node does not answer, or time is up.
    pub(crate) fn stage(
        &mut self,
        session: &Session,
        direction: Direction,
        patience: &Patience,
    ) -> Result<Staged, Error> {
        let staging = self.staging(session, direction)?;
        let node = self.node_of(session)?;
        let mut attempt = new_attempt()?;
        let (mut pause, mut retry) = (Pause::usual(), Pause(RETRY_MIN, RETRY_MAX));
        let (mut silent_since, mut failing_since) = (None, None);
        loop {
            self.check_alive(session)?;
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
                Ok(Outcome::Refused { reason }) => return Err(Error::new(reason)),
                Ok(Outcome::Names { .. }) => {
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

    /// Another call may remove the allocation, because the job was cancelled.
    fn check_alive(&self, session: &Session) -> Result<(), Error> {
        let now = self.database.session(&session.token)?;
        match now.filter(|now| now.id == session.id && now.phase != Phase::Removing) {
            Some(_) => Ok(()),
            None => Err(Error::new(format!(
                "the allocation of {} was removed meanwhile",
                session.token
            ))),
        }
    }

    fn staging(&self, session: &Session, direction: Direction) -> Result<Staging, Error> {
        let stages = match direction {
            Direction::In => &session.plan.stage_in,
            Direction::Out => &session.plan.stage_out,
        };
        let persistent = self.database.used_by(session.id)?;
        Ok(Staging {
            direction,
            stages: stages.clone(),
            persistent: persistent.iter().map(|one| (one.token.clone(), one.place())).collect(),
            capacity_bytes: session.capacity_bytes(),
        })
    }
}
