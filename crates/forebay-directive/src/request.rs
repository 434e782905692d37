//! What a script asks for as a whole.

use serde::{Deserialize, Serialize};

use crate::dialect::Dialect;
use crate::directive_check::{Directive, check};
use crate::ignored_directives::IgnoredDirective;
use crate::lines::Line;
use crate::paths::{self, Side};
use crate::persistent::{self, CreatePersistent, DestroyPersistent, PersistentDw};
use crate::problem::{Finding, Origin, Position, Problem, Weight};
use crate::{AccessMode, Symbols, VariableStyle, access, bb_option, dialect, lines, parse_size};

/// Everything that the directives of one script ask for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    /// The job's own allocation.
    pub job: Option<JobDw>,
    /// Persistent allocations that the job uses, each once, in the order of the script.
    pub persistent: Vec<PersistentDw>,
    /// Those that are made before the job.
    pub create: Vec<CreatePersistent>,
    /// Those that are destroyed before the job.
    pub destroy: Vec<DestroyPersistent>,
    /// What is brought in before the job starts, in the order of the script.
    pub stage_in: Vec<Stage>,
    /// What is carried out after the job has ended, in the order of the script.
    pub stage_out: Vec<Stage>,
    /// What the user should know although the job can be started.
    pub warnings: Vec<Problem>,
}

/// `#DW jobdw`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobDw {
    /// The namespaces, at least one, each once.
    pub access: Vec<AccessMode>,
    /// Least size of the allocation, as asked; each directive asks for one.
    pub capacity_bytes: Option<u64>,
    /// `pool=`.
    pub pool: Option<String>,
    /// How the script names its namespaces.
    pub naming: VariableStyle,
    /// The position of the directive.
    pub place: Position,
}

impl JobDw {
    /// The variable that names a namespace to the job.
    pub fn variable(&self, mode: AccessMode) -> String {
        match mode {
            AccessMode::Striped => self.naming.of_job(),
            AccessMode::Private => mode.variable().to_owned(),
        }
    }
}

/// Into the burst buffer or out of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// `stage_in`, `copy_in`: before the job.
    In,
    /// `stage_out`, `copy_out`: after the job.
    Out,
}

impl Direction {
    /// Where source and destination are.
    pub(crate) fn sides(self) -> (Side, Side) {
        match self {
            Self::In => (Side::Outer, Side::Inner),
            Self::Out => (Side::Inner, Side::Outer),
        }
    }
}

/// What kind of thing a stage moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum StageKind {
    /// One file.
    File,
    /// What is in a directory, recursively.
    Directory,
    /// The files that a list names: see [`crate::stages_of_list`].
    List,
    /// One file, or a directory that goes into the destination under its own name: whichever the source is
    /// when it is staged.
    Path,
}

/// `#DW stage_in`, `stage_out`, `copy_in` or `copy_out`, or a line of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stage {
    /// What it moves.
    pub kind: StageKind,
    /// The persistent allocation that holds it, as the path names it
    /// ([`crate::matches_variable`]); none for the job's own, and for a list.
    #[serde(default)]
    pub persistent: Option<String>,
    /// Path below the namespace's root, without leading slash; empty for the root itself, and for
    /// a list. A trailing slash is kept: it says "into this directory".
    pub inner_path: String,
    /// Absolute path on the parallel file system; that of the list itself for a list.
    pub pfs_path: String,
    /// How the script, and a list of it, names its namespaces.
    #[serde(default)]
    pub naming: VariableStyle,
    /// The position of the directive, or of the line of the list.
    pub place: Position,
}

impl Stage {
    /// The word of its directive.
    pub fn command(&self, direction: Direction) -> &'static str {
        match (&self.naming, direction) {
            (VariableStyle::DataWarp, Direction::In) => "stage_in",
            (VariableStyle::DataWarp, Direction::Out) => "stage_out",
            (VariableStyle::Nnf { .. }, Direction::In) => "copy_in",
            (VariableStyle::Nnf { .. }, Direction::Out) => "copy_out",
        }
    }
}

/// Reads a script's directives.
///
/// # Errors
/// Every problem of the script at once, in the order of the lines.
pub fn parse(script: &str, symbols: &Symbols) -> Result<Request, Vec<Problem>> {
    parse_with_option(script, "", symbols)
}

/// Reads what was given as `--bb` (sbatch's option, or the text of the file of `--bbf`), then the
/// script's directives. Symbols are replaced in both. What is in the option is marked
/// [`Origin::Option`], so that line numbers are those of the text the user wrote.
///
/// # Errors
/// Every problem at once: those of the option, then those of the script in the order of the lines.
pub fn parse_with_option(
    script: &str,
    option: &str,
    symbols: &Symbols,
) -> Result<Request, Vec<Problem>> {
    let mut found = bb_option::read(option, symbols);
    let of_script = lines::read(script, Origin::Script, symbols);
    found.lines.extend(of_script.lines);
    found.problems.extend(of_script.problems);
    found.warnings.extend(of_script.warnings);
    // Staging without the allocation that the header asks for would lose data; the rest is what Slurm ignores, too.
    let has_allocation =
        found.lines.iter().any(|line| line.words.first().is_some_and(|word| word.text == "jobdw"));
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
            // A line that could not be read may have been the one that is missed.
            let alone = (!broken).then(|| unmatched(&directive, &found.lines));
            directive.findings.extend(alone.flatten());
            let naming = match dialect {
                Dialect::DataWarp => &VariableStyle::DataWarp,
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
        problems.extend(whole(&request));
        problems.extend(persistent::whole(&request));
    }
    problems.sort_by_key(|p| p.place);
    request.warnings.sort_by_key(|p| p.place);
    if problems.is_empty() { Ok(request) } else { Err(problems) }
}

/// A command that makes sense only with another one.
fn unmatched(directive: &Directive, lines: &[Line]) -> Option<Finding> {
    let fellow = directive.command.beside?;
    let is_fellow = |line: &Line| line.words.first().is_some_and(|word| word.text == fellow);
    if lines.iter().any(is_fellow) {
        return None;
    }
    let message = format!("{} without {fellow}", directive.command.name);
    let hint = format!("it takes its space from the job's allocation: add a #DW {fellow} line");
    Some(Finding::error(directive.start, message, hint))
}

/// Rules over all directives together.
fn whole(request: &Request) -> Option<Problem> {
    let stages = request.stage_in.iter().chain(&request.stage_out);
    let in_list = |stage: &&Stage| stage.kind == StageKind::List && !request.persistent.is_empty();
    // The lines of a list may all be of persistent allocations.
    let mut own = stages.filter(|stage| stage.persistent.is_none() && !in_list(stage));
    let first = own.next()?;
    let Some(job) = &request.job else {
        return Some(Problem::new(
            first.place,
            "staging without an allocation",
            format!("add a line such as: {}", example_of_jobdw(&first.naming)),
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

fn example_of_jobdw(naming: &VariableStyle) -> &'static str {
    let dialect = match naming {
        VariableStyle::DataWarp => Dialect::DataWarp,
        VariableStyle::Nnf { .. } => Dialect::Nnf,
    };
    let command = dialect.command("jobdw");
    command.map_or("#DW jobdw", |command| command.example)
}

/// Takes what a directive asks for, and gives its warnings.
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

/// Takes the allocation of a directive in which nothing is wrong.
fn add_job(
    request: &mut Request,
    directive: &Directive,
    naming: &VariableStyle,
) -> Result<(), Vec<Problem>> {
    let Some(capacity) = directive.value("capacity") else {
        return Ok(());
    };
    // NNF has no modes: what its jobs share is one namespace.
    let access = directive.value("access_mode");
    let access = access.map_or_else(|| vec![AccessMode::Striped], |modes| access::read(modes).0);
    if let Some(first) = &request.job {
        return Err(vec![Problem::new(
            directive.start,
            format!("a second jobdw; the first is at {}", first.place),
            "a job has one allocation: add the capacities up in one line",
        )]);
    }
    request.job = Some(JobDw {
        access,
        capacity_bytes: parse_size(&capacity.text).ok(),
        pool: directive.value("pool").map(|token| token.text.clone()),
        naming: naming.clone(),
        place: directive.start,
    });
    Ok(())
}

/// The stage of a directive; what is wrong with its two ends goes to the findings.
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
    let source = end(directive, "source", source, naming, findings);
    let destination = end(directive, "destination", destination, naming, findings);
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
        place: directive.start,
    })
}

/// Has a directory that is written so a name to go under? If not, its contents are meant.
fn ends_in_a_name(path: &str) -> bool {
    let last = path.rsplit('/').next();
    !matches!(last, None | Some("" | "." | ".."))
}

/// One end of a stage, if it is given and is on its side: as [`paths::check`].
fn end(
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
