//! `job_process`: whether a script can be carried out, when the job is submitted.

use std::path::Path;

use forebay_directive::JobDw;

use crate::call::Call;
use crate::directives::{SymbolState, check_access, plan_of, request_of};
use forebay_site::{Error, Pool, Site};

pub(super) fn job_process(call: &Call) -> Result<(), Error> {
    let request = request_of(Path::new(call.value("--job")), SymbolState::Written)?;
    let Some(job) = &request.job else {
        return Ok(());
    };
    let site = Site::load()?;
    // Slurm chooses the pool that the script does not name.
    let pool = job.pool.as_ref().map(|name| site.pool(name)).transpose()?;
    if let Some(pool) = pool {
        check_access(pool, plan_of(&request).access).map_err(|error| on_line(job, error))?;
    }
    let wanted = job.capacity_bytes.unwrap_or_default();
    let size = |pool: &&Pool| pool.quantity.saturating_mul(pool.granularity_bytes);
    let fits_any = pool.is_none() && site.pools.iter().any(|pool| check_size(pool, wanted).is_ok());
    match pool.or(site.pools.iter().max_by_key(size)).filter(|_| !fits_any) {
        Some(pool) => check_size(pool, wanted).map_err(|error| on_line(job, error)),
        None => Ok(()),
    }
}

/// Whether the pool can have so large an allocation, if nobody has another.
fn check_size(pool: &Pool, bytes: u64) -> Result<(), Error> {
    let granules = pool.granules_of(bytes);
    if granules > pool.quantity {
        let whole = indicatif::HumanBytes(pool.quantity * pool.granularity_bytes);
        let message =
            format!("capacity= is larger than the whole pool {}, which has {whole}", pool.name);
        return Err(Error::new(message).with_hint("ask for less"));
    }
    pool.check_user_max(granules)
}

fn on_line(job: &JobDw, error: Error) -> Error {
    Error { message: format!("{}: {}", job.position.on_line(), error.message), ..error }
}
