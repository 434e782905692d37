//! `pools`: the pools with their free granules.

use serde_json::json;

use crate::context::Context;
use forebay_site::Error;

pub(super) fn pools(context: &Context) -> Result<String, Error> {
    let pools = context.site.pools.iter().map(|pool| {
        let free = context.database.free_granules(pool)?;
        Ok(json!({
            "id": pool.name, "units": "bytes", "granularity": pool.granularity_bytes,
            "quantity": pool.quantity, "free": free,
        }))
    });
    let pools: Vec<_> = pools.collect::<Result<_, Error>>()?;
    Ok(json!({ "pools": pools }).to_string())
}
