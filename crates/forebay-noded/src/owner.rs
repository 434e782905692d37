//! Starts the processes of an allocation's owner.
//! Assumes that this daemon is root. Never starts one of them as root, or with the environment of this daemon.

use std::sync::Arc;
use std::time::Duration;

use forebay_host::process::{
    Cgroup, Cgroups, Counters, Credentials, Killer, Overdue, Rights, TimeLimit, UserProcess,
    command, start_as_user,
};
use forebay_host::{cgroup, users};
use forebay_site::Error;
use forebay_site::messages::{Outcome, PoolAllocation};

use crate::work::Work;

/// This program, also after it was replaced by a newer version.
pub(crate) const THIS_PROGRAM: &str = "/proc/self/exe";
/// Bytes of a result at most.
const RESULT_BYTES_MAX: usize = 64 << 10;
/// How long short work may take. The control host waits 60 s for an answer, and the user may have stopped the process:
/// it must not keep one of the daemon's places for requests.
const SHORT_WORK: Duration = Duration::from_secs(30);
/// How often short work is started again after its process was killed.
const SHORT_INTERRUPTIONS_MAX: u32 = 5;
/// The begin of the name of the cgroup that has those of the processes. An epilog knows them by it.
const CGROUP: &str = "forebay-noded";
/// The exit code of a process that has reported its result.
pub(crate) const REPORTED: i32 = 0;

/// Starts the processes of owners, each in a cgroup of its own where this daemon can make one.
pub(crate) struct Owners {
    cgroups: Option<Cgroups>,
    log: fn(&str),
}

/// A process of the owner.
pub(crate) struct OwnersProcess {
    process: UserProcess,
    counters: Arc<Counters>,
}

/// How the process ended.
pub(crate) enum WorkResult {
    /// It reported its result.
    Reported(Outcome),
    /// Somebody killed or stopped it, or it reported nothing that can be read.
    Interrupted { reason: String, by_us: bool },
    /// It was killed because it took too long.
    Late(String),
}

/// The owner of an allocation, in a group of the owner.
///
/// # Errors
/// If the owner is root, or not in the group.
pub(crate) fn credentials(place: &PoolAllocation, group: u32) -> Result<Credentials, Error> {
    if place.user == 0 {
        return Err(Error::new("root cannot have an allocation"));
    }
    let groups = match users::account_of(place.user)? {
        Some(account) if !account.groups.contains(&group) => {
            let (user, group) = (account.name, users::group_named(group));
            return Err(Error::new(format!("{user} is not in the group {group} on this node"))
                .with_hint("all hosts need the same users and groups"));
        }
        Some(account) => account.groups,
        // A user who was removed meanwhile, whose files are to be removed, too.
        None if group == 0 => {
            return Err(Error::new("the group root cannot have an allocation"));
        }
        None => vec![group],
    };
    Ok(Credentials { user: place.user, group, groups })
}

impl Owners {
    /// Kills what a former daemon of the node `name` left running, and logs how the processes of owners run.
    pub(crate) fn of(name: &str, log: fn(&str)) -> Self {
        let ours = cgroup::of_this_process();
        let made = ours.and_then(|ours| Cgroups::make(&ours, &format!("{CGROUP}.{name}")));
        match &made {
            Ok(made) => log(&format!("processes of users run below {}", made.path().display())),
            Err(error) => log(&format!(
                "processes of users run in the cgroup of this daemon: {error}; is Delegate=yes in its unit?"
            )),
        }
        Self { cgroups: made.ok(), log }
    }

    /// All run in the cgroup of this process.
    #[cfg(test)]
    pub(crate) fn without_cgroups() -> Self {
        Self { cgroups: None, log: |_| {} }
    }

    /// Starts a process of the owner that does the work.
    ///
    /// # Errors
    /// If the owner is root, or the process cannot be started.
    pub(crate) fn start(
        &self,
        place: &PoolAllocation,
        work: &Work,
    ) -> Result<OwnersProcess, Error> {
        let mut group = place.group;
        if matches!(work, Work::Empty { .. })
            && let Some(account) = users::account_of(place.user)?
        {
            group = account.group; // who left the group of the job still owns the directory
        }
        let who = credentials(place, group)?;
        // A mount of an engine that ended is detached by fusermount.
        let rights = match (work, &place.engine) {
            (Work::Empty { .. }, Some(_)) => Rights::WithSetuid,
            _ => Rights::OfUser,
        };
        let input = serde_json::to_vec(work).map_err(|error| Error::new(error.to_string()))?;
        let mut command = command(THIS_PROGRAM);
        let counters = Arc::new(Counters::new()?);
        command.arg("__site").arg(counters.descriptor().to_string());
        command.env_clear().env("PATH", "/usr/bin:/bin").env("LC_ALL", "C");
        let process =
            start_as_user(command, who, rights, &input, Some(&counters), self.cgroup(place))?;
        Ok(OwnersProcess { process, counters })
    }

    /// None if its process runs in the cgroup of this one.
    fn cgroup(&self, place: &PoolAllocation) -> Option<Cgroup> {
        let added = self.cgroups.as_ref()?.add(&place.name);
        added.inspect_err(|error| (self.log)(&format!("warning: {}: {error}", place.name))).ok()
    }

    /// Does short work, and waits for it. Slurm does not repeat a set-up that failed, so a process that is killed is
    /// started again.
    ///
    /// # Errors
    /// As [`Owners::start`].
    pub(crate) fn run(&self, place: &PoolAllocation, work: &Work) -> Result<Outcome, Error> {
        let mut interruptions = 0;
        let reason = loop {
            match self.start(place, work)?.finish(TimeLimit::Whole(SHORT_WORK))? {
                WorkResult::Reported(outcome) => return Ok(outcome),
                WorkResult::Late(reason) => break stopped(&reason),
                WorkResult::Interrupted { reason, .. }
                    if interruptions == SHORT_INTERRUPTIONS_MAX =>
                {
                    break reason;
                }
                WorkResult::Interrupted { .. } => interruptions += 1,
            }
        };
        Ok(Outcome::Failed { reason, is_final: false })
    }
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
    pub(crate) fn finish(self, limit: TimeLimit) -> Result<WorkResult, Error> {
        let ended = self.process.finish(RESULT_BYTES_MAX, limit)?;
        let s = |time: Duration| time.as_secs();
        match ended.overdue {
            None => {}
            Some(Overdue::Late(max)) => {
                return Ok(WorkResult::Late(format!(
                    "its process had not ended after {} s",
                    s(max)
                )));
            }
            Some(Overdue::Idle(max)) => {
                return Ok(WorkResult::Late(format!("its process did nothing for {} s", s(max))));
            }
            Some(Overdue::Stopped(max)) => {
                let reason = format!("its process was stopped for {} s", s(max));
                return Ok(WorkResult::Interrupted { reason, by_us: true });
            }
        }
        let reported =
            serde_json::from_slice(&ended.output).ok().filter(|_| ended.code == Some(REPORTED));
        let reason = match (reported, ended.signal) {
            (Some(outcome), _) => return Ok(WorkResult::Reported(outcome)),
            (None, Some(signal)) => format!("its process was ended by signal {signal}"),
            (None, None) => {
                let code = ended.code.unwrap_or_default();
                format!("its process ended with exit code {code} and without a result")
            }
        };
        Ok(WorkResult::Interrupted { reason, by_us: false })
    }
}

/// The reason with whom to ask.
pub(crate) fn stopped(reason: &str) -> String {
    format!("{reason}; who stops processes of the user there, or which file system hangs?")
}
