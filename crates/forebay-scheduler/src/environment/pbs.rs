//! qsub(1B), ENVIRONMENT VARIABLES: PBS Professional, and `PBS_NP` and its like of Torque.

use std::ffi::OsString;

use super::facts::{Facts, Names};

/// Taken from the environment of `qsub`, under a name of its own.
const FROM_SUBMISSION: [(&[&str], &str); 4] = [
    (&["PBS_O_HOME"], "HOME"),
    (&["PBS_O_LOGNAME"], "LOGNAME"),
    (&["PBS_O_PATH"], "PATH"),
    (&["PBS_O_SHELL"], "SHELL"),
];

pub(super) fn variables(facts: &Facts, set: &mut dyn FnMut(Names)) {
    let table: &[Names] = &[
        (&["PBS_JOBID"], facts.id),
        (&["PBS_JOBNAME"], facts.name.as_ref()),
        (&["PBS_O_WORKDIR"], facts.submitted_in),
        (&["PBS_O_HOST"], facts.host.as_ref()),
        (
            &["PBS_QUEUE", "PBS_O_QUEUE"],
            facts.partition.unwrap_or("workq").as_ref(),
        ),
        (&["PBS_NODEFILE"], &facts.node_file),
        (&["PBS_NP"], facts.tasks.as_ref()),
        (&["PBS_NUM_NODES"], "1".as_ref()),
        (&["PBS_NUM_PPN"], facts.tasks.as_ref()),
        (&["PBS_NODENUM"], "0".as_ref()),
        (&["PBS_TASKNUM"], "1".as_ref()),
        (&["NCPUS"], facts.processors.as_ref()),
        (&["PBS_ENVIRONMENT"], "PBS_BATCH".as_ref()),
    ];
    table.iter().for_each(|line| set(*line));
    if let Some(threads) = &facts.cpus_per_task {
        set((&["OMP_NUM_THREADS"], threads.as_ref()));
    }
    for (names, source) in FROM_SUBMISSION {
        let value: Option<OsString> = std::env::var_os(source);
        if let Some(value) = value {
            set((names, &value));
        }
    }
}
