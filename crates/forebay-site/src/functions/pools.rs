//! `pools`: the pools with their free grains.

use serde_json::json;

use crate::context::Context;
use crate::{Error, Pool};

pub(super) fn pools(context: &Context) -> Result<String, Error> {
    let drained = context.database.drained()?;
    let pools = context.site.pools.iter().map(|pool| {
        let free = free_grains(context, pool, &drained)?;
        Ok(json!({
            "id": pool.name, "units": "bytes", "granularity": pool.granularity_bytes,
            "quantity": pool.quantity, "free": free,
        }))
    });
    let pools: Vec<_> = pools.collect::<Result<_, Error>>()?;
    Ok(json!({ "pools": pools }).to_string())
}

/// Grains that a new job can get.
fn free_grains(context: &Context, pool: &Pool, drained: &[String]) -> Result<u64, Error> {
    if drained.contains(&pool.name) {
        return Ok(0);
    }
    Ok(pool.quantity.saturating_sub(context.database.used_grains(pool)?))
}
