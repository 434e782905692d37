//! Reads the header block of a script, and the directive lines in it.
//! Never checks a command or a key. After the header it only looks for directives that have no effect.

use crate::ignored_directives::{IgnoredDirective, directives_after_header};
use crate::problem::{Origin, Position, Problem};
use crate::rules::{COMMANDS, NNF_COMMANDS};
use crate::token::{SourceByte, Token, prefix_of, words};

/// Values of the `%` symbols that Slurm replaces in directives.
#[derive(Debug, Clone, Default)]
pub struct Symbols {
    /// `%j`: job ID.
    pub job_id: String,
    /// `%A`: ID of the array's master job; empty without an array, where `%A` is `%j`.
    pub array_job_id: String,
    /// `%a`: array task ID, whose last digit is `%b`; empty without an array, where neither has a value.
    pub array_task: String,
    /// `%x`: job name.
    pub job_name: String,
    /// `%u`: user name.
    pub user: String,
    /// `%d`: working directory of the job.
    pub directory: String,
}

impl Symbols {
    fn value(&self, symbol: u8) -> Option<&str> {
        match symbol {
            b'%' => Some("%"),
            b'A' if !self.array_job_id.is_empty() => Some(&self.array_job_id),
            b'j' | b'A' => Some(&self.job_id),
            b'a' => Some(&self.array_task),
            b'b' => Some(last_digit(&self.array_task)),
            b'd' => Some(&self.directory),
            b'u' => Some(&self.user),
            b'x' => Some(&self.job_name),
            _ => None,
        }
    }
}

/// The task ID modulo 10; empty if it is not a number.
fn last_digit(number: &str) -> &str {
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
    let start = number.len().saturating_sub(1);
    if is_number { &number[start..] } else { "" }
}

/// One directive, with continuation lines joined and symbols replaced.
#[derive(Debug)]
pub(crate) struct Line {
    /// `#DW` or `#BB`.
    pub(crate) prefix: &'static str,
    pub(crate) start: Position,
    pub(crate) words: Vec<Token>,
}

/// The result for one text.
#[derive(Debug, Default)]
pub(crate) struct ParsedLines {
    pub(crate) lines: Vec<Line>,
    pub(crate) problems: Vec<Problem>,
    pub(crate) warnings: Vec<Problem>,
    /// Directives after the header, which have no effect.
    pub(crate) after_header: Vec<IgnoredDirective>,
}

/// Reads directive lines of the header block, which ends at the first line that does not begin with
/// `#`. Empty lines do not end it, but lines of blanks do (Slurm's rule).
///
/// Without `symbols`, `%` has no meaning: Slurm has replaced them, and left `\\` where it was.
pub(crate) fn read(text: &str, origin: Origin, symbols: Option<&Symbols>) -> ParsedLines {
    let mut header = Header { origin, symbols, found: ParsedLines::default(), open: None };
    let header_lines = header.take_all(text);
    header.close(header_lines + 1);
    let mut found = header.found;
    found.warnings.extend(misspelt_prefixes(text, origin));
    match origin {
        Origin::Script => found.after_header = directives_after_header(text, header_lines),
        _ => found.problems.extend(no_directive(text, origin, header_lines)),
    }
    found
}

/// The number of lines in the header.
pub(crate) fn header_lines(script: &str) -> usize {
    let origin = Origin::Script;
    let mut header = Header { origin, symbols: None, found: ParsedLines::default(), open: None };
    header.take_all(script)
}

/// Comments before the first command that look like directives.
fn misspelt_prefixes(text: &str, origin: Origin) -> impl Iterator<Item = Problem> {
    let is_comment =
        |(line, _): &(&str, usize)| matches!(line.trim_start().chars().next(), None | Some('#'));
    let comments = text.lines().zip(1..).take_while(is_comment);
    comments.filter_map(move |(line, number)| {
        let words = line.trim_start().strip_prefix('#')?.trim_start();
        let name = words.get(..2)?;
        let prefix = ["#DW", "#BB"].into_iter().find(|one| one[1..].eq_ignore_ascii_case(name))?;
        let command = words[2..].split_ascii_whitespace().next()?;
        let mut known = COMMANDS.iter().chain(NNF_COMMANDS).map(|command| command.name);
        if line.starts_with(prefix) || !known.any(|known| known.eq_ignore_ascii_case(command)) {
            return None;
        }
        let end = command.as_ptr() as usize + command.len() - line.as_ptr() as usize;
        Some(Problem::new(
            Position { origin, line: number, column: 1 },
            format!("\"{}\" is a comment: it does not begin with {prefix}", &line[..end]),
            format!(
                "write {prefix} at the start of the line, or #{prefix} to keep it as a comment"
            ),
        ))
    })
}

fn no_directive(text: &str, origin: Origin, header_lines: usize) -> Option<Problem> {
    let line = text.lines().nth(header_lines)?;
    let position = Position { origin, line: header_lines + 1, column: 1 };
    let hint = "begin it with #DW, as the lines before it";
    Some(Problem::new(position, format!("\"{line}\" is no directive"), hint))
}

/// The state while the header is read.
struct Header<'a> {
    origin: Origin,
    symbols: Option<&'a Symbols>,
    found: ParsedLines,
    /// A line with a final backslash, which the next line continues.
    open: Option<Open>,
}

struct Open {
    prefix: &'static str,
    start: Position,
    bytes: Vec<SourceByte>,
}

impl Header<'_> {
    /// Reads the lines of the header. Returns their number.
    fn take_all(&mut self, text: &str) -> usize {
        text.lines().zip(1..).take_while(|(line, number)| self.take(line, *number)).count()
    }

    /// Reads one line. Returns false if the header ends before it.
    fn take(&mut self, line: &str, number: usize) -> bool {
        if line.is_empty() {
            return true;
        }
        let position = Position { origin: self.origin, line: number, column: 1 };
        let prefix = prefix_of(line);
        match (self.open.take(), prefix) {
            (Some(open), Some(prefix)) if open.prefix == prefix => {
                self.append(open, &line[prefix.len()..], position, prefix.len());
            }
            (Some(open), None) if looks_like_arguments(line) => {
                self.found.warnings.push(missing_prefix(position, open.prefix));
                self.append(open, line, position, 0);
            }
            (Some(open), _) if line.starts_with('#') => self.broken(&open, position),
            (None, Some(prefix)) => {
                let open = Open { prefix, start: position, bytes: Vec::new() };
                self.append(open, &line[prefix.len()..], position, prefix.len());
            }
            (open, _) => {
                self.open = open;
                return line.starts_with('#');
            }
        }
        true
    }

    /// Adds the text after a prefix. The line is complete unless it ends in a backslash.
    fn append(&mut self, mut open: Open, body: &str, position: Position, skipped: usize) {
        let (body, continues) = match body.strip_suffix('\\') {
            Some(body) if !body.ends_with('\\') => (body, true),
            _ => (body, false),
        };
        let joined_at_blank =
            open.bytes.last().is_some_and(|byte| byte.value.is_ascii_whitespace());
        let leading = body.len() - body.trim_ascii_start().len();
        let from = if joined_at_blank { leading } else { 0 };
        let first = Position { column: 1 + skipped + from, ..position };
        let (bytes, problems) = replace_symbols(&body[from..], first, self.symbols);
        open.bytes.extend(bytes);
        self.found.problems.extend(problems);
        if continues {
            self.open = Some(open);
        } else {
            self.finish(open);
        }
    }

    fn finish(&mut self, open: Open) {
        self.found.lines.push(Line {
            prefix: open.prefix,
            start: open.start,
            words: words(&open.bytes),
        });
    }

    fn broken(&mut self, open: &Open, position: Position) {
        let prefix = open.prefix;
        self.found.problems.push(Problem::new(
            position,
            format!("the {prefix} line before ends in \"\\\", but no {prefix} line follows it"),
            format!("begin the continued line with {prefix}, or drop the backslash"),
        ));
    }

    /// Ends the header.
    fn close(&mut self, line: usize) {
        if let Some(open) = self.open.take() {
            let position = Position { origin: self.origin, line, column: 1 };
            self.broken(&open, position);
        }
    }
}

/// Finds the lines of a header that continue a directive without its prefix.
#[derive(Default)]
pub struct ContinuationReader {
    /// Whether the previous line of a directive ended in a backslash.
    is_continued: bool,
}

impl ContinuationReader {
    /// Reads the next line. Returns true if it continues a directive without its prefix; the header
    /// does not end with such a line.
    pub fn read_line(&mut self, line: &str) -> bool {
        let lacks_prefix =
            self.is_continued && prefix_of(line).is_none() && looks_like_arguments(line);
        if !line.is_empty() {
            let is_directive = lacks_prefix || prefix_of(line).is_some();
            self.is_continued = is_directive && line.ends_with('\\') && !line.ends_with("\\\\");
        }
        lacks_prefix
    }
}

/// Whether a continuation line without prefix holds only arguments.
fn looks_like_arguments(line: &str) -> bool {
    let is_key = |key: &str| {
        key.starts_with(|c: char| c.is_ascii_lowercase())
            && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    let is_flag = |word: &str| COMMANDS.iter().any(|c| c.flags.contains(&word));
    let line = line.strip_suffix('\\').unwrap_or(line);
    let mut words = line.split_ascii_whitespace().peekable();
    words.peek().is_some()
        && words.all(|word| word.split_once('=').map_or(is_flag(word), |(key, _)| is_key(key)))
}

fn missing_prefix(position: Position, prefix: &str) -> Problem {
    Problem::new(
        position,
        format!("the continued line does not begin with {prefix}: taken here, ignored by Slurm"),
        format!("put {prefix} in front of it"),
    )
}

/// The bytes of a text with the values of its symbols, and the symbols that have no value in this job.
fn replace_symbols(
    text: &str,
    first: Position,
    symbols: Option<&Symbols>,
) -> (Vec<SourceByte>, Vec<Problem>) {
    let source = text.as_bytes();
    let (mut bytes, mut problems) = (Vec::new(), Vec::new());
    let mut at = 0;
    let mut replace = true;
    while at < source.len() {
        let position = Position { column: first.column + at, ..first };
        let value = match (source[at], source.get(at + 1)) {
            (b'\\', Some(b'\\')) if replace => {
                replace = false;
                Some("")
            }
            (b'%', Some(symbol)) if replace => {
                let no_task = symbols.is_some_and(|symbols| symbols.array_task.is_empty());
                if no_task && matches!(symbol, b'a' | b'b') {
                    problems.push(without_array_task(position, char::from(*symbol)));
                }
                symbols.and_then(|symbols| symbols.value(*symbol))
            }
            _ => None,
        };
        let literal = value.is_some();
        let (new, step) = match value {
            Some(value) => (value.as_bytes(), 2),
            None => (&source[at..=at], 1),
        };
        bytes.extend(new.iter().map(|&value| SourceByte { value, literal, position }));
        at += step;
    }
    (bytes, problems)
}

fn without_array_task(position: Position, symbol: char) -> Problem {
    let message = format!("%{symbol} has no value: this job is no task of an array");
    let hint = "run one task of the array with SLURM_ARRAY_TASK_ID=N forebay run ...";
    Problem::new(position, message, hint)
}
