//! `real_size`: the size of an allocation after rounding.

use serde_json::json;

use crate::call::Call;
use crate::context::Context;
use forebay_site::Error;

pub(super) fn real_size(context: &Context, call: &Call) -> Result<String, Error> {
    let session = context.session(call.token()?)?;
    Ok(json!({ "token": session.token, "capacity": session.capacity_bytes(), "units": "bytes" })
        .to_string())
}
