//! Combines the directives of a script into one request.
//! Never opens a list of files: `stages_of_list` parses its lines later. Any problem refuses the whole script.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::dialect::Dialect;
use crate::directive_check::{Directive, check};
use crate::ignored_directives::IgnoredDirective;
use crate::lines::{Line, ParsedLines};
use crate::paths::{self, Side};
use crate::persistent::{self, CreatePersistent, DestroyPersistent, PersistentDw};
use crate::problem::{Finding, Origin, Position, Problem, Weight};
use crate::{AccessMode, Symbols, VariableStyle, access, bb_option, dialect, lines, parse_size};

/// The request of one script.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    /// The job's own allocation.
    pub job: Option<JobDw>,
    /// Persistent allocations that the job uses, each once, in the order of the script.
    pub persistent: Vec<PersistentDw>,
    /// Allocations to create before the job.
    pub create: Vec<CreatePersistent>,
    /// Allocations to destroy before the job.
    pub destroy: Vec<DestroyPersistent>,
    /// Stages before the job starts, in the order of the script.
    pub stage_in: Vec<Stage>,
    /// Stages after the job ends, in the order of the script.
    pub stage_out: Vec<Stage>,
    /// Warnings for the user. The job can start.
    pub warnings: Vec<Problem>,
}

/// `#DW jobdw`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobDw {
    /// The namespaces, at least one, without duplicates.
    pub access: Vec<AccessMode>,
    /// The requested minimum size. All directives have one.
    pub capacity_bytes: Option<u64>,
    /// `pool=`.
    pub pool: Option<String>,
    /// `profile=`: a named engine.
    pub profile: Option<String>,
    /// `redundancy=`: copies of the data on different nodes.
    pub redundancy: Option<u32>,
    /// `placement=local`: each file is stored on the node that creates it.
    pub is_local: bool,
    /// `stripe_bytes=`: bytes of a file that are next to each other on one node.
    pub stripe_bytes: Option<u64>,
    /// How the script names its namespaces.
    pub naming: VariableStyle,
    /// The position of the directive.
    pub position: Position,
}

impl JobDw {
    /// The variable with the path of a namespace.
    pub fn variable(&self, mode: AccessMode) -> String {
        match mode {
            AccessMode::Striped => self.naming.of_job(),
            AccessMode::Private => mode.variable().to_owned(),
        }
    }
}

/// The direction of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// `stage_in`, `copy_in`: before the job.
    In,
    /// `stage_out`, `copy_out`: after the job.
    Out,
}

impl Direction {
    /// The locations of source and destination.
    pub(crate) fn sides(self) -> (Side, Side) {
        match self {
            Self::In => (Side::Outer, Side::Inner),
            Self::Out => (Side::Inner, Side::Outer),
        }
    }
}

/// The type of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum StageKind {
    /// One file.
    File,
    /// The content of a directory, recursively.
    Directory,
    /// The files that a list names: see [`crate::stages_of_list`].
    List,
    /// One file, or a directory that keeps its name in the destination. The type of the source
    /// during the stage decides.
    Path,
}

/// `#DW stage_in`, `stage_out`, `copy_in` or `copy_out`, or a line of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stage {
    /// What it stages.
    pub kind: StageKind,
    /// The persistent allocation, as the path names it ([`crate::matches_variable`]). None for the
    /// job's own allocation, and for a list.
    #[serde(default)]
    pub persistent: Option<String>,
    /// Path relative to the namespace, without leading slash. Empty for the namespace itself and
    /// for a list. A trailing slash is kept: it means "into this directory".
    pub inner_path: String,
    /// Absolute path on the parallel file system: for a list, the path of the list.
    pub pfs_path: String,
    /// How the script and its lists name namespaces.
    #[serde(default)]
    pub naming: VariableStyle,
    /// The position of the directive, or of the line of the list. Records name it `place`.
    #[serde(rename = "place")]
    pub position: Position,
}

impl Stage {
    /// The command of its directive.
    pub fn command(&self, direction: Direction) -> &'static str {
        match (&self.naming, direction) {
            (VariableStyle::Nnf { .. }, Direction::In) => "copy_in",
            (VariableStyle::Nnf { .. }, Direction::Out) => "copy_out",
            (_, Direction::In) => "stage_in",
            (_, Direction::Out) => "stage_out",
        }
    }
}

/// Parses the directives of a script.
///
/// # Errors
/// All problems of the script, in the order of the lines.
pub fn parse(script: &str, symbols: &Symbols) -> Result<Request, Vec<Problem>> {
    parse_with_option(script, "", symbols)
}

/// Parses the text of `--bb` (or of the file of `--bbf`), then the directives of the script.
/// Replaces symbols in both. Positions in the option have [`Origin::Option`], with line numbers in
/// its text.
///
/// # Errors
/// All problems: those of the option, then those of the script in the order of the lines.
pub fn parse_with_option(
    script: &str,
    option: &str,
    symbols: &Symbols,
) -> Result<Request, Vec<Problem>> {
    let found = bb_option::read(option, symbols);
    combine(found, lines::read(script, Origin::Script, Some(symbols)), &VariableStyle::DataWarp)
}

/// Parses the directives of a script for a pool of a site, which stages private namespaces, too: each node its own.
/// Without `symbols`, Slurm has replaced them.
///
/// # Errors
/// As [`parse`].
pub fn parse_for_site(script: &str, symbols: Option<&Symbols>) -> Result<Request, Vec<Problem>> {
    let of_script = lines::read(script, Origin::Script, symbols);
    let naming = match of_script.lines.iter().any(is_private_only) {
        true => VariableStyle::Private,
        false => VariableStyle::DataWarp,
    };
    combine(ParsedLines::default(), of_script, &naming)
}

/// Whether a line is a jobdw with `access_mode=private` and no other mode.
fn is_private_only(line: &Line) -> bool {
    let is_mode = |text: &str| {
        let value = text.strip_prefix("access_mode=").or_else(|| text.strip_prefix("access="));
        value.is_some_and(|value| value == AccessMode::Private.directory())
    };
    line.words.first().is_some_and(|word| word.text == "jobdw")
        && line.words.iter().any(|word| is_mode(&word.text))
}

/// Combines the lines of the option with those of the script. `of_datawarp` is how lines of DataWarp name namespaces.
fn combine(
    mut found: ParsedLines,
    of_script: ParsedLines,
    of_datawarp: &VariableStyle,
) -> Result<Request, Vec<Problem>> {
    found.lines.extend(of_script.lines);
    found.problems.extend(of_script.problems);
    found.warnings.extend(of_script.warnings);
    // Without this staging the job would lose data. Slurm ignores the other directives, too.
    let commands: HashSet<&str> =
        found.lines.iter().filter_map(|line| Some(line.words.first()?.text.as_str())).collect();
    let has_allocation = commands.contains("jobdw");
    for IgnoredDirective { problem, is_staging } in of_script.after_header {
        let all =
            if has_allocation && is_staging { &mut found.problems } else { &mut found.warnings };
        all.push(problem);
    }

    let (dialects, mixed) = dialect::of_lines(&found.lines);
    let of_nnf = dialect::naming_of_nnf(&found.lines, &dialects);
    let broken = !found.problems.is_empty();
    let mut problems = found.problems;
    problems.extend(mixed);
    let mut request = Request { warnings: found.warnings, ..Request::default() };
    for (line, dialect) in found.lines.iter().zip(dialects) {
        let taken = check(line, dialect).map_err(|problem| vec![problem]);
        let taken = taken.and_then(|mut directive| {
            // An unreadable line may be the missing one.
            let alone = (!broken).then(|| unmatched(&directive, &commands));
            directive.findings.extend(alone.flatten());
            let naming = match dialect {
                Dialect::DataWarp => of_datawarp,
                Dialect::Nnf => &of_nnf,
            };
            add(&mut request, directive, naming)
        });
        match taken {
            Ok(warnings) => request.warnings.extend(warnings),
            Err(found) => problems.extend(found),
        }
    }
    if problems.is_empty() {
        problems.extend(validate(&request));
        problems.extend(persistent::validate(&request));
    }
    problems.sort_by_key(|p| p.position);
    request.warnings.sort_by_key(|p| p.position);
    if problems.is_empty() { Ok(request) } else { Err(problems) }
}

/// The problem of a command that requires another one, which is missing.
fn unmatched(directive: &Directive, commands: &HashSet<&str>) -> Option<Finding> {
    let required = directive.command.required_with?;
    if commands.contains(required) {
        return None;
    }
    let message = format!("{} without {required}", directive.command.name);
    let hint = format!("it takes its space from the job's allocation: add a #DW {required} line");
    Some(Finding::error(directive.start, message, hint))
}

/// Checks rules across all directives.
fn validate(request: &Request) -> Option<Problem> {
    let stages = request.stage_in.iter().chain(&request.stage_out);
    let in_list = |stage: &&Stage| stage.kind == StageKind::List && !request.persistent.is_empty();
    // All lines of a list may use persistent allocations.
    let mut own = stages.filter(|stage| stage.persistent.is_none() && !in_list(stage));
    let first = own.next()?;
    let Some(job) = &request.job else {
        return Some(Problem::new(
            first.position,
            "staging without an allocation",
            format!("add a line such as: {}", example_of_jobdw(&first.naming)),
        ));
    };
    if job.access.contains(&AccessMode::Striped) || job.naming == VariableStyle::Private {
        return None;
    }
    Some(Problem::new(
        first.position,
        "staging needs access_mode=striped, and the allocation is private only",
        "write access_mode=striped or access_mode=striped,private in the #DW jobdw line",
    ))
}

fn example_of_jobdw(naming: &VariableStyle) -> &'static str {
    let dialect = match naming {
        VariableStyle::DataWarp | VariableStyle::Private => Dialect::DataWarp,
        VariableStyle::Nnf { .. } => Dialect::Nnf,
    };
    let command = dialect.command("jobdw");
    command.map_or("#DW jobdw", |command| command.example)
}

/// Adds a directive to the request, and returns its warnings.
fn add(
    request: &mut Request,
    mut directive: Directive,
    naming: &VariableStyle,
) -> Result<Vec<Problem>, Vec<Problem>> {
    let mut findings = std::mem::take(&mut directive.findings);
    let direction = match directive.command.name {
        "stage_in" | "copy_in" => Some(Direction::In),
        "stage_out" | "copy_out" => Some(Direction::Out),
        _ => None,
    };
    let stage = direction.and_then(|direction| stage(&directive, direction, naming, &mut findings));
    let warnings = Directive::warnings_or_problems(findings)?;
    match direction {
        Some(Direction::In) => request.stage_in.extend(stage),
        Some(Direction::Out) => request.stage_out.extend(stage),
        None if directive.command.name == "jobdw" => add_job(request, &directive, naming)?,
        None => persistent::add(request, &directive)?,
    }
    Ok(warnings)
}

/// Adds the allocation of a valid directive.
fn add_job(
    request: &mut Request,
    directive: &Directive,
    naming: &VariableStyle,
) -> Result<(), Vec<Problem>> {
    let Some(capacity) = directive.value("capacity") else {
        return Ok(());
    };
    // NNF has no modes: its jobs share one namespace.
    let access = directive.value("access_mode");
    let access = access.map(access::read).unwrap_or_default();
    if access.group.is_some() {
        return Err(vec![Problem::new(
            directive.start,
            "(group=) in a jobdw: the allocation of a job is its owner's alone",
            "write (group=NAME) in the line #BB create_persistent",
        )]);
    }
    let modes = match directive.value("access_mode") {
        Some(_) => access.modes,
        None => vec![AccessMode::Striped],
    };
    if let Some(first) = &request.job {
        return Err(vec![Problem::new(
            directive.start,
            format!("a second jobdw; the first is at {}", first.position),
            "a job has one allocation: add the capacities up in one line",
        )]);
    }
    request.job = Some(JobDw {
        access: modes,
        capacity_bytes: parse_size(&capacity.text).ok(),
        pool: directive.value("pool").map(|token| token.text.clone()),
        profile: directive.value("profile").map(|token| token.text.clone()),
        redundancy: directive.value("redundancy").and_then(|token| token.text.parse().ok()),
        is_local: directive.value("placement").is_some_and(|token| token.text == "local"),
        stripe_bytes: directive
            .value("stripe_bytes")
            .and_then(|token| parse_size(&token.text).ok()),
        naming: naming.clone(),
        position: directive.start,
    });
    Ok(())
}

/// The stage of a directive. Problems with its paths are added to `findings`.
fn stage(
    directive: &Directive,
    direction: Direction,
    naming: &VariableStyle,
    findings: &mut Vec<Finding>,
) -> Option<Stage> {
    let kind = match directive.value("type").map(|kind| kind.text.as_str()) {
        Some("file") => StageKind::File,
        Some("list") => StageKind::List,
        None => StageKind::Path,
        Some(_) => StageKind::Directory,
    };
    let (source, destination) = match (kind, direction) {
        (StageKind::List, Direction::Out) => (Side::Outer, Side::Outer),
        _ => direction.sides(),
    };
    let source = stage_path(directive, "source", source, naming, findings);
    let destination = stage_path(directive, "destination", destination, naming, findings);
    let (inside, outside) = match (kind, direction) {
        (StageKind::List, _) => {
            let unused = directive.value("destination");
            findings.extend(unused.map(|token| Finding {
                weight: Weight::Warning,
                problem: Problem::new(
                    token.start,
                    "destination= has no effect with type=list",
                    "each line of the list names its own destination",
                ),
            }));
            (Some((None, String::new())), source)
        }
        (_, Direction::In) => (destination, source),
        (_, Direction::Out) => (source, destination),
    };
    let ((persistent, inner_path), (_, pfs_path)) = (inside?, outside?);
    let source = match direction {
        Direction::In => &pfs_path,
        Direction::Out => &inner_path,
    };
    Some(Stage {
        kind: match kind {
            StageKind::Path if !ends_in_a_name(source) => StageKind::Directory,
            kind => kind,
        },
        persistent,
        inner_path,
        pfs_path,
        naming: naming.clone(),
        position: directive.start,
    })
}

/// Whether the path ends in a name for the directory. Otherwise it means the directory's content.
fn ends_in_a_name(path: &str) -> bool {
    let last = path.rsplit('/').next();
    !matches!(last, None | Some("" | "." | ".."))
}

/// One path of a stage, if it is given and valid, as from [`paths::check`].
fn stage_path(
    directive: &Directive,
    key: &str,
    side: Side,
    naming: &VariableStyle,
    findings: &mut Vec<Finding>,
) -> Option<(Option<String>, String)> {
    let token = directive.value(key).filter(|t| !t.text.is_empty())?;
    let label = format!("{key}=");
    if let Some(pattern) = paths::pattern_in(&token.text) {
        let message =
            format!("{label}{} has the pattern {pattern}, and no shell expands it", token.text);
        let hint = "name the directory with type=directory, or list the files with type=list";
        findings.push(Finding::error(token.start, message, hint));
        return None;
    }
    let path = paths::check(side, token, &label, paths::IN_DIRECTIVES, naming);
    path.map_err(|finding| findings.push(finding)).ok()
}
