//! Finds the number of nodes of a scheduler's job. Reads the environment and PBS's list of nodes; asks Flux.

use std::collections::BTreeSet;
use std::path::Path;

use forebay_host::files;

use crate::in_a_schedulers_job;
use crate::node_launcher::{flux_hosts, lines_of};

/// Variables that `srun`, `jsrun`, MPI launchers and PALS set in tasks on each node.
const TASK_VARIABLES: [&str; 6] = [
    "SLURM_STEP_ID",
    "JSM_NAMESPACE_RANK",
    "PMIX_RANK",
    "PMI_RANK",
    "OMPI_COMM_WORLD_RANK",
    "PALS_RANKID",
];

/// The number of nodes of a scheduler's job, called from its batch script. None outside of a job,
/// and in a launcher's task, which has its own node.
pub fn nodes_of_batch_script() -> Option<usize> {
    let is_task = TASK_VARIABLES.iter().any(|name| std::env::var_os(name).is_some());
    if is_task || !in_a_schedulers_job() {
        return None;
    }
    let number = |name: &str| std::env::var(name).ok()?.parse().ok();
    let of_slurm = number("SLURM_JOB_NUM_NODES").or_else(|| number("SLURM_NNODES"));
    let of_flux = || number("FLUX_JOB_NNODES");
    of_slurm.or_else(of_flux).or_else(nodes_of_lsf).or_else(nodes_of_pbs).or_else(nodes_of_flux)
}

/// The script of `flux batch` is the first program of an instance of its own, without variables of a job. The
/// instance of the whole system has level 0 (flux-broker-attributes(7)); its nodes are of no job.
fn nodes_of_flux() -> Option<usize> {
    std::env::var_os("FLUX_URI")?;
    let level = lines_of(&["flux", "getattr", "instance-level"]).ok()?;
    let level: u32 = level.first()?.trim().parse().ok()?;
    (level > 0).then(|| flux_hosts().ok().map(<[String]>::len)).flatten()
}

/// `LSB_MCPU_HOSTS` lists host names, each followed by its number of slots.
fn nodes_of_lsf() -> Option<usize> {
    let hosts = std::env::var("LSB_MCPU_HOSTS").ok()?;
    Some(hosts.split_whitespace().step_by(2).collect::<BTreeSet<_>>().len())
}

/// `PBS_NODEFILE` has one line for each task.
fn nodes_of_pbs() -> Option<usize> {
    let list = std::env::var_os("PBS_NODEFILE")?;
    let text = files::read_lossy(Path::new(&list)).ok()?;
    Some(text.lines().collect::<BTreeSet<_>>().len())
}
