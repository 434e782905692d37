//! Slurm: `#SBATCH` lines and variables (sbatch(1)), and the end time from squeue(1).
//! The variables always describe a job on one node.

use std::time::Duration;

use crate::dialect::{Dialect, Meaning as M};
use crate::end_time::{EndTime, at};
use crate::job_facts::{Facts, Names};
use crate::quantity::mixed_radix;
use crate::scheduler_program::{parse_error, run_command};

pub(crate) static DIALECT: Dialect = Dialect {
    options: &[
        (&["-J", "--job-name"], M::JobName),
        (&["-n", "--ntasks"], M::Tasks),
        (&["-N", "--nodes"], M::Nodes),
        (&["--ntasks-per-node", "--tasks-per-node"], M::TasksPerNode),
        (&["-c", "--cpus-per-task"], M::CpusPerTask),
        (&["-D", "--chdir", "--workdir"], M::Directory),
        (&["-p", "--partition"], M::Partition),
        (&["-A", "--account"], M::Account),
        (&["-o", "--output"], M::Output),
        (&["-e", "--error"], M::Error),
        (&["-t", "--time"], M::TimeLimit),
        (&["--mem"], M::Memory),
        (&["--bb"], M::Bb),
        (&["--bbf"], M::Bbf),
        (&["-C", "--constraint"], M::Features),
    ],
    split: split_option,
    time,
    time_form: "such as 30, 1:30:00 or 1-12",
    memory_unit_bytes: 1 << 20,
};

/// Whether this line ends a component of a heterogeneous job.
pub(crate) fn ends_component(options: &str) -> bool {
    matches!(options.split_whitespace().next(), Some("hetjob" | "packjob"))
}

/// Splits `--name=value` or `-nVALUE`.
pub(crate) fn split_option(word: &str) -> (&str, Option<&str>) {
    if let Some((name, value)) = word.split_once('=').filter(|_| word.starts_with("--")) {
        return (name, Some(value));
    }
    match word.char_indices().nth(2) {
        Some((at, _)) if word.starts_with('-') && !word.starts_with("--") => {
            (&word[..at], Some(&word[at..]))
        }
        _ => (word, None),
    }
}

fn time(text: &str) -> Option<Duration> {
    if ["UNLIMITED", "INFINITE"].iter().any(|word| text.eq_ignore_ascii_case(word)) {
        return Some(Duration::ZERO);
    }
    let seconds = match text.split_once('-') {
        None => mixed_radix(text, &[&[60], &[60, 1], &[3600, 60, 1]])?,
        Some((days, rest)) => mixed_radix(rest, &[&[3600], &[3600, 60], &[3600, 60, 1]])?
            .checked_add(mixed_radix(days, &[&[24 * 3600]])?)?,
    };
    Some(Duration::from_secs(seconds))
}

pub(crate) fn variables(facts: &Facts, set: &mut dyn FnMut(Names)) {
    let table: &[Names] = &[
        (&["SLURM_JOB_ID", "SLURM_JOBID"], facts.id),
        (&["SLURM_JOB_NAME"], facts.name.as_ref()),
        (&["SLURM_SUBMIT_DIR"], facts.submit_directory),
        (&["SLURM_TASKS_PER_NODE", "SLURM_NTASKS_PER_NODE"], facts.tasks.as_ref()),
        (&["SLURM_JOB_NUM_NODES", "SLURM_NNODES"], "1".as_ref()),
        (&["SLURM_NODEID", "SLURM_PROCID", "SLURM_LOCALID"], "0".as_ref()),
        (&["SLURM_JOB_CPUS_PER_NODE", "SLURM_CPUS_ON_NODE"], facts.processors.as_ref()),
        (
            &["SLURM_JOB_NODELIST", "SLURM_NODELIST", "SLURM_SUBMIT_HOST", "SLURMD_NODENAME"],
            facts.host.as_ref(),
        ),
    ];
    let optional: [(&'static [&'static str], _); 4] = [
        (&["SLURM_NTASKS", "SLURM_NPROCS"], facts.requested_tasks.as_deref()),
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

/// squeue lists all tasks of an array under the ID of one of them.
pub(crate) fn query_end_time(
    job: &str,
    should_continue: &dyn Fn() -> bool,
) -> Result<Option<EndTime>, String> {
    let output = run_command("squeue", &["-h", "-j", job, "-o", "%A %e"], should_continue)?;
    let of_job = |line: &str| line.trim().strip_prefix(job)?.strip_prefix(' ').map(str::to_owned);
    match output.lines().find_map(of_job).as_deref() {
        Some("N/A" | "NONE") => Ok(None),
        word => {
            let end = word.and_then(|word| word.parse().ok());
            let end = end.map(|unix_s| Some(at(unix_s, "squeue")));
            end.ok_or_else(|| parse_error("squeue", &output))
        }
    }
}
