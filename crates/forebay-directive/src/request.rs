//! What a script asks for as a whole.

use crate::args::{Directive, Token, check};
use crate::lines::logical_lines;
use crate::{AccessMode, Place, Problem, Symbols, access, parse_size};

/// Everything that the directives of one script ask for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    /// The job's own allocation.
    pub job: Option<JobDw>,
    /// What is brought in before the job starts, in the order of the script.
    pub stage_in: Vec<Stage>,
    /// What is carried out after the job has ended, in the order of the script.
    pub stage_out: Vec<Stage>,
}

/// `#DW jobdw`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobDw {
    /// The namespaces, at least one, each once.
    pub access: Vec<AccessMode>,
    /// Least size of the allocation, as asked.
    pub capacity_bytes: u64,
    /// `pool=`.
    pub pool: Option<String>,
    /// Where the directive stands.
    pub place: Place,
}

/// What kind of thing a stage moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StageKind {
    /// One file.
    File,
    /// What is in a directory, recursively.
    Directory,
}

/// `#DW stage_in` or `#DW stage_out`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stage {
    /// File or directory.
    pub kind: StageKind,
    /// Path below the namespace's root, without leading slash; empty for the root itself. A
    /// trailing slash is kept: it says "into this directory".
    pub inner_path: String,
    /// Absolute path on the parallel file system.
    pub pfs_path: String,
    /// Where the directive stands.
    pub place: Place,
}

/// Reads a script's directives.
///
/// # Errors
/// Every problem of the script at once, in the order of the lines.
pub fn parse(script: &str, symbols: &Symbols) -> Result<Request, Vec<Problem>> {
    let (lines, mut problems) = logical_lines(script, symbols);
    let mut request = Request::default();
    for line in &lines {
        match check(line) {
            Ok(directive) => {
                if let Err(problem) = add(&mut request, &directive) {
                    problems.push(problem);
                }
            }
            Err(found) => problems.extend(found),
        }
    }
    if problems.is_empty() {
        problems.extend(whole(&request));
    }
    if problems.is_empty() {
        return Ok(request);
    }
    problems.sort_by_key(|p| p.place);
    Err(problems)
}

/// Rules over all directives together.
fn whole(request: &Request) -> Option<Problem> {
    let first = request.stage_in.iter().chain(&request.stage_out).next()?;
    let Some(job) = &request.job else {
        return Some(Problem::new(
            first.place,
            "staging without an allocation",
            "add a line such as: #DW jobdw type=scratch access_mode=striped capacity=10GiB",
        ));
    };
    if job.access.contains(&AccessMode::Striped) {
        return None;
    }
    Some(Problem::new(
        first.place,
        "staging needs access_mode=striped, and the allocation is private only",
        "write access_mode=striped or access_mode=striped,private in the #DW jobdw line",
    ))
}

fn add(request: &mut Request, directive: &Directive) -> Result<(), Problem> {
    match directive.command.name {
        "jobdw" => {
            let job = job(directive)?;
            if let Some(first) = &request.job {
                return Err(Problem::new(
                    directive.start,
                    format!("a second jobdw; the first is on line {}", first.place.line),
                    "a job has one allocation: add the capacities up in one line",
                ));
            }
            request.job = Some(job);
        }
        "stage_in" => request
            .stage_in
            .push(stage(directive, "destination", "source")?),
        _ => request
            .stage_out
            .push(stage(directive, "source", "destination")?),
    }
    Ok(())
}

fn needed<'a>(directive: &'a Directive, key: &str) -> Result<&'a Token, Problem> {
    directive.value(key).ok_or_else(|| {
        let message = format!("{} needs {key}=", directive.command.name);
        Problem::new(directive.start, message, directive.command.example)
    })
}

fn job(directive: &Directive) -> Result<JobDw, Problem> {
    let capacity = needed(directive, "capacity")?;
    let modes = needed(directive, "access_mode")?;
    let problem =
        |token: &Token, message: String, hint: String| Problem::new(token.place, message, hint);
    Ok(JobDw {
        access: access::parse(&modes.text).map_err(|(m, h)| problem(modes, m, h))?,
        capacity_bytes: parse_size(&capacity.text)
            .map_err(|e| problem(capacity, e.to_string(), directive.command.example.into()))?,
        pool: directive.value("pool").map(|token| token.text.clone()),
        place: directive.start,
    })
}

fn stage(directive: &Directive, inner_key: &str, outer_key: &str) -> Result<Stage, Problem> {
    let inner = needed(directive, inner_key)?;
    let outer = needed(directive, outer_key)?;
    let kind = match needed(directive, "type")?.text.as_str() {
        "file" => StageKind::File,
        _ => StageKind::Directory,
    };
    Ok(Stage {
        kind,
        inner_path: inner_path(inner, inner_key)?,
        pfs_path: outer_path(outer, outer_key)?,
        place: directive.start,
    })
}

/// The part behind `$DW_JOB_STRIPED`, proved to stay inside.
fn inner_path(token: &Token, key: &str) -> Result<String, Problem> {
    let here = |message: String, hint: &str| Err(Problem::new(token.place, message, hint));
    let text = token
        .text
        .replacen("${DW_JOB_STRIPED}", "$DW_JOB_STRIPED", 1);
    if text.starts_with("$DW_JOB_PRIVATE") || text.starts_with("${DW_JOB_PRIVATE}") {
        return here(
            format!(
                "{key}={} is private to each node and cannot be staged",
                token.text
            ),
            "stage to or from $DW_JOB_STRIPED",
        );
    }
    let rest = match text.strip_prefix("$DW_JOB_STRIPED") {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => rest.trim_start_matches('/'),
        _ => {
            return here(
                format!("{key}={} is not in the burst buffer", token.text),
                "begin it with $DW_JOB_STRIPED/",
            );
        }
    };
    if rest.split('/').any(|part| part == "..") {
        return here(
            format!("{key}={} leaves the burst buffer", token.text),
            "write the path without \"..\"",
        );
    }
    Ok(rest.to_owned())
}

fn outer_path(token: &Token, key: &str) -> Result<String, Problem> {
    let hint = "directives are not expanded by a shell: write the whole path; %d is the \
                directory of submission, %u the user, %j the job id";
    if token.has_variable {
        let message = format!("{key}={} holds a variable", token.text);
        return Err(Problem::new(token.place, message, hint));
    }
    if !token.text.starts_with('/') {
        let message = format!("{key}={} is not an absolute path", token.text);
        return Err(Problem::new(token.place, message, hint));
    }
    Ok(token.text.clone())
}
