//! Allocations that Slurm never asks to remove. When a pending job is cancelled, Slurm starts the removal and then ends the
//! programs that run for the job; it sometimes ends the removal with them, and forgets it (seen with 22.05).

use std::collections::HashSet;
use std::time::Duration;

use forebay_host::process::{command, run_captured};

use crate::state::is_job;
use crate::{Phase, Session};
use forebay_site::Error;

/// How long Slurm may take to list its jobs.
const LIST_JOBS: Duration = Duration::from_secs(60);

/// States of jobs that are over, as `squeue -o %T` and `scontrol show job` print them.
const OVER: [&str; 9] = [
    "BOOT_FAIL",
    "CANCELLED",
    "COMPLETED",
    "DEADLINE",
    "FAILED",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "PREEMPTED",
    "TIMEOUT",
];

/// Of these allocations, those of jobs that Slurm has ended or forgotten, if nothing that users want is in them: the job
/// never started, or left no results to deliver.
///
/// # Errors
/// If Slurm does not list its jobs.
pub(crate) fn of_ended_jobs(sessions: &[Session]) -> Result<Vec<Session>, Error> {
    let asked: Vec<_> = sessions.iter().filter(|session| may_go(session)).cloned().collect();
    if asked.is_empty() {
        return Ok(Vec::new());
    }
    let listed = list_jobs()?;
    let still = unfinished_jobs(&listed);
    Ok(asked.into_iter().filter(|one| !still.contains(one.token.as_str())).collect())
}

/// Whether nothing runs or is staged any more in this state of a job, as Slurm prints it.
pub(crate) fn is_over(state: &str) -> bool {
    OVER.contains(&state)
}

fn may_go(session: &Session) -> bool {
    let (has_no_start, has_ended) =
        (session.phase < Phase::Running, session.phase > Phase::Running);
    is_job(&session.token)
        && session.phase != Phase::Removing
        && (has_no_start || has_ended && !session.has_undelivered_results())
}

fn list_jobs() -> Result<String, Error> {
    let mut ask = command("squeue");
    ask.args(["--noheader", "--all", "--array", "--states=all", "--format=%A %T"]);
    // Variables that would leave out jobs, or ask another cluster.
    let named = std::env::vars_os().map(|(name, _)| name);
    for name in named.filter(|name| leaves_out_jobs(&name.to_string_lossy())) {
        ask.env_remove(name);
    }
    let problem = |why: &str, hint: &str| {
        Error::new(format!("squeue does not say which jobs have ended: {why}")).with_hint(hint)
    };
    match run_captured(ask, LIST_JOBS, &|| true) {
        Ok(Some(listed)) if listed.success => Ok(listed.output),
        Ok(Some(_)) => Err(problem("it failed", "look at: scontrol ping")),
        Ok(None) => Err(problem("it did not end", "look at: scontrol ping")),
        Err(error) => Err(problem(&error.to_string(), "squeue must be in PATH")),
    }
}

fn leaves_out_jobs(variable: &str) -> bool {
    variable.starts_with("SQUEUE_") || variable == "SLURM_CLUSTERS"
}

/// The IDs in the lines `ID STATE` of jobs that are not over.
fn unfinished_jobs(listed: &str) -> HashSet<&str> {
    let jobs = listed.lines().filter_map(|line| line.trim().split_once(' '));
    jobs.filter(|(_, state)| !is_over(state)).map(|(job, _)| job).collect()
}

#[cfg(test)]
mod tests {
    use super::unfinished_jobs;

    #[test]
    fn jobs_that_stage_out_or_complete_are_not_over() {
        let listed =
            "1 PENDING\n2 CANCELLED\n3 STAGE_OUT\n4 COMPLETING\n5 COMPLETED\n6 NEW_STATE\n";
        let mut still: Vec<_> = unfinished_jobs(listed).into_iter().collect();
        still.sort_unstable();
        assert_eq!(still, ["1", "3", "4", "6"]);
    }
}
