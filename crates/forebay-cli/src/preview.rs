//! Prints the result of `forebay run --dry-run`, as text or as JSON.
//! Assumes that `forebay-job` made the preview. Never looks at a file itself.

use forebay_job::{DryRun, PlannedDrain, PlannedSpectral, PlannedStage};
use forebay_onclose::OnClose;
use forebay_terminal::{print_json, print_stdout};
use indicatif::HumanBytes;
use schemars::JsonSchema;
use serde::Serialize;

/// The JSON object of `forebay run --dry-run --json`.
#[derive(Serialize, JsonSchema)]
pub struct Plan<'a> {
    #[serde(flatten)]
    preview: &'a DryRun,
    /// Commands on close, as the user gave them.
    on_close: &'a [String],
    /// The number of commands on close that run at the same time.
    on_close_at_most: u32,
}

pub fn show(preview: &DryRun, on_close: &[OnClose], at_most: u32, as_json: bool) -> i32 {
    let on_close = on_close.iter().map(|rule| rule.text.clone());
    let plan = Plan { preview, on_close: &on_close.collect::<Vec<_>>(), on_close_at_most: at_most };
    if as_json {
        return print_json(&plan, 0);
    }
    print_stdout(&text(&plan), 0)
}

fn text(plan: &Plan) -> String {
    let preview = plan.preview;
    let mut lines = Vec::new();
    match &preview.store {
        Some(store) => {
            let (given, asked) = (HumanBytes(store.capacity_bytes), store.asked());
            let limit = if store.enforced { "a hard limit" } else { "not enforced" };
            lines.push(format!("allocate    {given} in {} ({asked} asked; {limit})", store.store));
            let variables = preview.variables.iter().map(|name| format!("${name}"));
            lines.push(format!("variables   {}", variables.collect::<Vec<_>>().join(" ")));
        }
        None => lines.push("allocate    nothing".to_owned()),
    }
    lines.extend(preview.persistent.iter().map(ToString::to_string));
    lines.extend(preview.shown.iter().map(|shown| {
        let directory = shown.directory.as_deref();
        let directory = directory.unwrap_or("a part of the allocation");
        format!("show        {directory} as {}", shown.path)
    }));
    lines.extend(preview.stage_in.iter().map(|stage| line("stage in ", stage)));
    let limit = match preview.time_limit_s {
        Some(seconds) => format!("ended after {seconds} s at most"),
        None => "no time limit".to_owned(),
    };
    let interpreter = preview.interpreter.join(" ");
    let tasks = preview.tasks;
    lines.push(format!("run         with {interpreter}, {tasks} task(s), {limit}"));
    lines.extend(preview.drain.iter().map(drain_line));
    lines.extend(preview.spectral.iter().map(spectral_line));
    lines.extend(plan.on_close.iter().map(|rule| {
        let at_most = plan.on_close_at_most;
        format!("on close    {rule} ({at_most} at a time)")
    }));
    lines.extend(preview.stage_out.iter().map(|stage| line("stage out", stage)));
    lines.join("\n")
}

fn line(name: &str, stage: &PlannedStage) -> String {
    let size = match (stage.files, stage.bytes) {
        (Some(files), Some(bytes)) => format!(": {files} file(s), {}", HumanBytes(bytes)),
        _ => String::new(),
    };
    let (source, destination) = (&stage.source, &stage.destination);
    let of = if stage.of_option { "--bb, " } else { "" };
    format!("{name}   {} {source} -> {destination}{size} ({of}line {})", stage.kind, stage.line)
}

fn drain_line(drain: &PlannedDrain) -> String {
    let patterns = drain.patterns.join(",");
    let to = drain
        .to
        .as_ref()
        .map_or_else(|| "where stage_out says".to_owned(), |to| to.display().to_string());
    let rate = drain.rate_bytes_per_s.map(HumanBytes);
    let rate =
        rate.map_or_else(|| "as fast as it goes".to_owned(), |rate| format!("at most {rate}/s"));
    let newest = if drain.newest { ", only the newest" } else { "" };
    format!("drain       {patterns} -> {to} ({rate}{newest})")
}

fn spectral_line(spectral: &PlannedSpectral) -> String {
    match (&spectral.persist_dir, &spectral.pfs_dir) {
        (Some(persist), Some(pfs)) => {
            format!("drain       all of {} -> {} (Spectral)", persist.display(), pfs.display())
        }
        _ => "drain       all of $PERSIST_DIR -> $PFS_DIR, which the script will say (Spectral)"
            .to_owned(),
    }
}
