//! Spectrum LSF 10.1, environment variables set for job execution.

use super::facts::{Facts, Names};

/// Linux takes no variable that is much longer.
const LONGEST_BYTES: usize = 100_000;

pub(super) fn variables(facts: &Facts, set: &mut dyn FnMut(Names)) {
    let tasks: usize = facts.tasks.parse().unwrap_or(1);
    let hosts = vec![facts.host.as_str(); tasks].join(" ");
    let host_and_tasks = format!("{} {tasks}", facts.host);
    let table: &[Names] = &[
        (&["LSB_JOBID", "LSB_BATCH_JID"], facts.id),
        (&["LSB_JOBINDEX"], "0".as_ref()),
        (&["LSB_JOBNAME"], facts.name.as_ref()),
        // bsub puts a job that names no queue into the default one; LSF's own is called normal.
        (&["LSB_QUEUE"], facts.partition.unwrap_or("normal").as_ref()),
        (&["LSB_MCPU_HOSTS"], host_and_tasks.as_ref()),
        (&["LSB_DJOB_HOSTFILE"], &facts.node_file),
        (&["LSB_DJOB_NUMPROC"], facts.tasks.as_ref()),
        (&["LSB_SUB_HOST"], facts.host.as_ref()),
        (&["LS_SUBCWD"], facts.submitted_in),
    ];
    table.iter().for_each(|line| set(*line));
    if hosts.len() < LONGEST_BYTES {
        set((&["LSB_HOSTS"], hosts.as_ref()));
    }
    if let Some(account) = facts.account {
        set((&["LSB_PROJECT_NAME"], account.as_ref()));
    }
}
