//! `forebay run --dry-run`.

use forebay_control::{Planned, Preview};
use indicatif::HumanBytes;

use crate::messages::{data, json};

pub fn show(preview: &Preview, as_json: bool) -> i32 {
    if as_json {
        return json(preview, 0);
    }
    data(&text(preview), 0)
}

fn text(preview: &Preview) -> String {
    let mut lines = Vec::new();
    match &preview.store {
        Some(store) => {
            let (given, asked) = (
                HumanBytes(store.capacity_bytes),
                HumanBytes(store.asked_bytes),
            );
            let limit = if store.enforced {
                "a hard limit"
            } else {
                "not enforced"
            };
            lines.push(format!(
                "allocate    {given} in {} ({asked} asked; {limit})",
                store.store
            ));
            let variables = preview.variables.iter().map(|name| format!("${name}"));
            lines.push(format!(
                "variables   {}",
                variables.collect::<Vec<_>>().join(" ")
            ));
        }
        None => lines.push("allocate    nothing".to_owned()),
    }
    lines.extend(preview.persistent.iter().map(ToString::to_string));
    lines.extend(preview.shown.iter().map(|shown| {
        let directory = shown.directory.as_deref();
        let directory = directory.unwrap_or("a part of the allocation");
        format!("show        {directory} as {}", shown.path)
    }));
    lines.extend(
        preview
            .stage_in
            .iter()
            .map(|stage| line("stage in ", stage)),
    );
    let limit = match preview.time_limit_s {
        Some(seconds) => format!("ended after {seconds} s at most"),
        None => "no time limit".to_owned(),
    };
    let interpreter = preview.interpreter.join(" ");
    let tasks = preview.tasks;
    lines.push(format!(
        "run         with {interpreter}, {tasks} task(s), {limit}"
    ));
    lines.extend(
        preview
            .stage_out
            .iter()
            .map(|stage| line("stage out", stage)),
    );
    lines.join("\n")
}

fn line(name: &str, stage: &Planned) -> String {
    let size = match (stage.files, stage.bytes) {
        (Some(files), Some(bytes)) => format!(": {files} file(s), {}", HumanBytes(bytes)),
        _ => String::new(),
    };
    let (source, destination) = (&stage.source, &stage.destination);
    let of = if stage.of_option { "--bb, " } else { "" };
    format!(
        "{name}   {} {source} -> {destination}{size} ({of}line {})",
        stage.kind, stage.line
    )
}
