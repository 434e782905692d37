//! `show_sessions`, `show_instances` and `show_configurations`: what Slurm learns when it starts. Each allocation is
//! one session with one instance and one configuration, which all have its number.

use serde_json::{Value, json};

use crate::Session;
use crate::context::Context;
use forebay_site::Error;

pub(super) fn sessions(context: &Context) -> Result<String, Error> {
    list(context, "sessions", |session| {
        json!({
            "id": session.id, "created": session.created_unix_s, "owner": session.user, "token": session.token,
        })
    })
}

pub(super) fn instances(context: &Context) -> Result<String, Error> {
    list(context, "instances", |session| {
        json!({
            "id": session.id, "capacity": { "bytes": session.capacity_bytes(), "nodes": 1 },
            "links": { "session": session.id },
        })
    })
}

pub(super) fn configurations(context: &Context) -> Result<String, Error> {
    list(
        context,
        "configurations",
        |session| json!({ "id": session.id, "links": { "instance": session.id } }),
    )
}

fn list(context: &Context, name: &str, entry: impl Fn(&Session) -> Value) -> Result<String, Error> {
    let sessions = context.database.sessions()?;
    // Slurm would take an allocation that was set aside for that of the job which has its ID now.
    let shown = sessions.iter().filter(|session| !session.is_set_aside());
    let entries: Vec<_> = shown.map(entry).collect();
    Ok(json!({ name: entries }).to_string())
}
