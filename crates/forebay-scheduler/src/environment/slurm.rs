//! sbatch(1), OUTPUT ENVIRONMENT VARIABLES.

use super::facts::{Facts, Names};

pub(super) fn variables(facts: &Facts, set: &mut dyn FnMut(Names)) {
    let table: &[Names] = &[
        (&["SLURM_JOB_ID", "SLURM_JOBID"], facts.id),
        (&["SLURM_JOB_NAME"], facts.name.as_ref()),
        (&["SLURM_SUBMIT_DIR"], facts.submitted_in),
        (&["SLURM_NTASKS", "SLURM_NPROCS"], facts.tasks.as_ref()),
        (
            &["SLURM_TASKS_PER_NODE", "SLURM_NTASKS_PER_NODE"],
            facts.tasks.as_ref(),
        ),
        (&["SLURM_JOB_NUM_NODES", "SLURM_NNODES"], "1".as_ref()),
        (
            &["SLURM_NODEID", "SLURM_PROCID", "SLURM_LOCALID"],
            "0".as_ref(),
        ),
        (
            &["SLURM_JOB_CPUS_PER_NODE", "SLURM_CPUS_ON_NODE"],
            facts.processors.as_ref(),
        ),
        (
            &[
                "SLURM_JOB_NODELIST",
                "SLURM_NODELIST",
                "SLURM_SUBMIT_HOST",
                "SLURMD_NODENAME",
            ],
            facts.host.as_ref(),
        ),
    ];
    let optional: [(&'static [&'static str], _); 3] = [
        (&["SLURM_CPUS_PER_TASK"], facts.cpus_per_task.as_deref()),
        (&["SLURM_JOB_PARTITION"], facts.partition),
        (&["SLURM_JOB_ACCOUNT"], facts.account),
    ];
    table.iter().for_each(|line| set(*line));
    for (names, value) in optional {
        if let Some(value) = value {
            set((names, value.as_ref()));
        }
    }
}
