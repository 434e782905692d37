//! Queries the scheduler for the end time of the current job.

use crate::end_time::EndTime;
use crate::{flux, lsf, pbs, slurm};

impl EndTime {
    /// Queries the scheduler while `should_continue` returns true. None if the job has no time limit.
    ///
    /// # Errors
    /// Why the end is unknown.
    pub fn query(should_continue: &dyn Fn() -> bool) -> Result<Option<Self>, String> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        if let Some(job) = variable("SLURM_JOB_ID") {
            return slurm::query_end_time(&job, should_continue);
        }
        if let Some(job) = variable("LSB_JOBID") {
            return lsf::query_end_time(&job, should_continue);
        }
        if let Some(job) = variable("PBS_JOBID") {
            return pbs::query_end_time(&job, should_continue);
        }
        if std::env::var_os("FLUX_URI").is_some() {
            return flux::query_end_time(should_continue);
        }
        Ok(None)
    }
}
