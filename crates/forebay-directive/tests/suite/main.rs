//! The behaviour of the crate, by theme. `vectors.rs` holds the table of single lines.

mod dialects;
mod docs;
mod large;
mod lists;
mod option;
mod persistent;
mod scripts;
mod warnings;

use forebay_directive::{Problem, Request, Symbols, parse};

const JOBDW: &str = "#DW jobdw type=scratch access_mode=striped capacity=1TiB";

fn symbols() -> Symbols {
    Symbols {
        job_id: "4711".into(),
        array_job_id: String::new(),
        array_task: String::new(),
        job_name: "btio".into(),
        user: "ada".into(),
        directory: "/scratch/ada/my run".into(),
    }
}

fn good(script: &str) -> Request {
    parse(script, &symbols()).unwrap_or_else(|problems| panic!("{script}\n{problems:#?}"))
}

/// Formats problems as `line:column message | hint`.
fn lines_of(problems: &[Problem]) -> Vec<String> {
    let line = |p: &Problem| {
        let position = p.position;
        format!("{}:{} {} | {}", position.line, position.column, p.message, p.hint)
    };
    problems.iter().map(line).collect()
}

/// The problems of a script.
fn all_bad(script: &str) -> Vec<String> {
    match parse(script, &symbols()) {
        Ok(request) => panic!("{script}\n{request:#?}"),
        Err(problems) => lines_of(&problems),
    }
}

/// The only problem of a script.
fn bad(script: &str) -> String {
    let problems = all_bad(script);
    assert_eq!(problems.len(), 1, "{script}\n{problems:#?}");
    problems.concat()
}

/// The only warning of a valid script.
fn warned(script: &str) -> String {
    let warnings = lines_of(&good(script).warnings);
    assert_eq!(warnings.len(), 1, "{script}\n{warnings:#?}");
    warnings.concat()
}

#[track_caller]
fn assert_begins(found: &str, expected: &str) {
    assert!(found.starts_with(expected), "\n  found    {found}\n  expected {expected}");
}
