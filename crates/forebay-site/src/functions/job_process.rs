//! `job_process`: whether a script can be carried out, when the job is submitted.

use std::path::Path;

use crate::call::Call;
use crate::directives::{SymbolsAre, check_access, plan_of, request_of};
use crate::{Error, Site};

pub(super) fn job_process(call: &Call) -> Result<(), Error> {
    let request = request_of(Path::new(call.value("--job")), SymbolsAre::Written)?;
    let Some(job) = &request.job else {
        return Ok(());
    };
    let site = Site::load()?;
    // Slurm chooses the pool that the script does not name.
    let pool = job.pool.as_ref().map(|name| site.pool(name)).transpose()?;
    if let Some(pool) = pool {
        let line = job.position.on_line();
        check_access(pool, plan_of(&request).access)
            .map_err(|error| Error { message: format!("{line}: {}", error.message), ..error })?;
    }
    let largest =
        site.pools.iter().max_by_key(|pool| pool.quantity.saturating_mul(pool.granularity_bytes));
    let wanted = job.capacity_bytes.unwrap_or_default();
    match pool.or(largest) {
        Some(pool) if pool.grains_of(wanted) > pool.quantity => {
            let whole = indicatif::HumanBytes(pool.quantity * pool.granularity_bytes);
            let line = job.position.on_line();
            let message = format!(
                "{line}: capacity= is larger than the whole pool {}, which has {whole}",
                pool.name
            );
            Err(Error::new(message).with_hint("ask for less"))
        }
        _ => Ok(()),
    }
}
