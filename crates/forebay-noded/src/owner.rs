//! Starts the processes of an allocation's owner.

use std::sync::Arc;
use std::time::Duration;

use forebay_host::process::{
    Counters, Credentials, Killer, TimeLimit, UserProcess, command, start_as_user,
};
use forebay_host::users;
use forebay_site::Error;
use forebay_site::messages::{Outcome, Place};

use crate::work::Work;

/// This program, also after it was replaced by a newer version.
const THIS_PROGRAM: &str = "/proc/self/exe";
/// Bytes of a result at most.
const RESULT_BYTES_MAX: usize = 64 << 10;
/// How long short work may take. The control host waits 60 s for an answer, and the user may have stopped the process:
/// it must not keep one of the daemon's places for requests.
const SHORT_WORK: Duration = Duration::from_secs(30);
/// The exit code of a process that has reported its result.
pub(crate) const REPORTED: i32 = 0;

/// A process of the owner.
pub(crate) struct OwnersProcess {
    process: UserProcess,
    counters: Arc<Counters>,
}

/// How the process ended.
pub(crate) enum Ended {
    /// It reported its result.
    Reported(Outcome),
    /// It was killed, or reported nothing that can be read.
    Interrupted(String),
    /// It was killed because of its time limit.
    Late(String),
}

/// Starts a process of the owner that does the work.
///
/// # Errors
/// If the owner is root, or the process cannot be started.
pub(crate) fn start(place: &Place, work: &Work) -> Result<OwnersProcess, Error> {
    if place.user == 0 {
        return Err(Error::new("root cannot have an allocation"));
    }
    let mut group = place.group;
    let groups = match users::account_of(place.user)? {
        // Who left the group of the job still owns the directory.
        Some(account) if matches!(work, Work::Empty { .. }) => {
            group = account.group;
            account.groups
        }
        Some(account) if !account.groups.contains(&place.group) => {
            let (user, group) = (account.name, users::group_named(place.group));
            return Err(Error::new(format!("{user} is not in the group {group} on this node"))
                .with_hint("all hosts need the same users and groups"));
        }
        Some(account) => account.groups,
        // A user who was removed meanwhile, whose files are to be removed, too.
        None if place.group == 0 => {
            return Err(Error::new("the group root cannot have an allocation"));
        }
        None => vec![place.group],
    };
    let who = Credentials { user: place.user, group, groups };
    let input = serde_json::to_vec(work).map_err(|error| Error::new(error.to_string()))?;
    let mut command = command(THIS_PROGRAM);
    let counters = Arc::new(Counters::new()?);
    command.arg("__site").arg(counters.descriptor().to_string());
    command.env_clear().env("PATH", "/usr/bin:/bin").env("LC_ALL", "C");
    let process = start_as_user(command, who, &input, Some(&counters))?;
    Ok(OwnersProcess { process, counters })
}

impl OwnersProcess {
    pub(crate) fn killer(&self) -> Killer {
        self.process.killer()
    }

    /// How far it says that it is.
    pub(crate) fn counters(&self) -> Arc<Counters> {
        Arc::clone(&self.counters)
    }

    /// Waits for its end, and kills it at the limit.
    pub(crate) fn finish(self, limit: TimeLimit) -> Result<Ended, Error> {
        let ended = self.process.finish(RESULT_BYTES_MAX, limit)?;
        if ended.is_late {
            return Ok(Ended::Late(match limit {
                TimeLimit::Whole(time_max) => {
                    format!("its process had not ended after {} s", time_max.as_secs())
                }
                TimeLimit::Idle(time_max) => {
                    format!("its process did nothing for {} s", time_max.as_secs())
                }
            }));
        }
        let reported =
            serde_json::from_slice(&ended.output).ok().filter(|_| ended.code == Some(REPORTED));
        Ok(match (reported, ended.signal) {
            (Some(outcome), _) => Ended::Reported(outcome),
            (None, Some(signal)) => {
                Ended::Interrupted(format!("its process was ended by signal {signal}"))
            }
            (None, None) => {
                let code = ended.code.unwrap_or_default();
                Ended::Interrupted(format!(
                    "its process ended with exit code {code} and without a result"
                ))
            }
        })
    }
}

/// Does short work, and waits for it.
///
/// # Errors
/// As [`start`].
pub(crate) fn run(place: &Place, work: &Work) -> Result<Outcome, Error> {
    Ok(match start(place, work)?.finish(TimeLimit::Whole(SHORT_WORK))? {
        Ended::Reported(outcome) => outcome,
        Ended::Interrupted(reason) => Outcome::Failed { reason, is_final: false },
        Ended::Late(reason) => Outcome::Failed { reason: stopped(&reason), is_final: false },
    })
}

/// The reason with whom to ask.
pub(crate) fn stopped(reason: &str) -> String {
    format!("{reason}; who stops processes of the user there, or which file system hangs?")
}
