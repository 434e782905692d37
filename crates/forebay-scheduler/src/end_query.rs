//! Queries the scheduler for the end time of the current job.

use crate::end_time::EndTime;
use crate::{flux, lsf, pbs, slurm};

impl EndTime {
    /// Queries the scheduler while `go_on` returns true. None if the job has no time limit.
    ///
    /// # Errors
    /// Why the end is unknown.
    pub fn query(go_on: &dyn Fn() -> bool) -> Result<Option<Self>, String> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        if let Some(job) = variable("SLURM_JOB_ID") {
            return slurm::end(&job, go_on);
        }
        if let Some(job) = variable("LSB_JOBID") {
            return lsf::end(&job, go_on);
        }
        if let Some(job) = variable("PBS_JOBID") {
            return pbs::end(&job, go_on);
        }
        if std::env::var_os("FLUX_URI").is_some() {
            return flux::end(go_on);
        }
        Ok(None)
    }
}
