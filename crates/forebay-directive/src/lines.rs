//! The header block of a script, and the logical directive lines in it.

use crate::{Place, Problem};

/// Values of the `%` symbols that Slurm replaces in directives before a back end sees them.
#[derive(Debug, Clone, Default)]
pub struct Symbols {
    /// `%j`: job id. Also `%A` (array master) of a job that is no array.
    pub job_id: String,
    /// `%x`: job name.
    pub job_name: String,
    /// `%u`: user name.
    pub user: String,
    /// `%d`: directory in which the job was submitted.
    pub directory: String,
    /// `%a`: array task id; empty for a job that is no array.
    pub array_task: String,
}

impl Symbols {
    fn value(&self, symbol: u8) -> Option<&str> {
        match symbol {
            b'%' => Some("%"),
            b'j' | b'A' => Some(&self.job_id),
            b'a' => Some(&self.array_task),
            b'd' => Some(&self.directory),
            b'u' => Some(&self.user),
            b'x' => Some(&self.job_name),
            _ => None,
        }
    }
}

/// One directive after continuation lines were joined and symbols replaced.
pub(crate) struct Logical {
    pub(crate) prefix: Prefix,
    pub(crate) bytes: Vec<Byte>,
    pub(crate) start: Place,
}

/// One byte of a logical line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Byte {
    pub(crate) value: u8,
    /// It came out of a `%` symbol: a blank in it does not end the value.
    pub(crate) from_symbol: bool,
    pub(crate) place: Place,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prefix {
    Dw,
    Bb,
}

impl Prefix {
    fn of(line: &str) -> Option<Self> {
        match line.get(..3) {
            Some("#DW") => Some(Self::Dw),
            Some("#BB") => Some(Self::Bb),
            _ => None,
        }
    }

    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Dw => "#DW",
            Self::Bb => "#BB",
        }
    }
}

/// The directive lines of the header block, which ends at the first line that does not begin
/// with `#`. Empty lines do not end it; a line of blanks does (Slurm's own rule).
pub(crate) fn logical_lines(script: &str, symbols: &Symbols) -> (Vec<Logical>, Vec<Problem>) {
    let mut found: Vec<Logical> = Vec::new();
    let mut problems = Vec::new();
    let in_header = |line: &&str| line.is_empty() || line.starts_with('#');
    let header_lines = script.lines().take_while(in_header).count();
    let mut open = false; // the last logical line ended in a backslash
    for (index, line) in script.lines().take(header_lines).enumerate() {
        let place = Place {
            line: index + 1,
            column: 1,
        };
        if line.is_empty() {
            continue;
        }
        let prefix = Prefix::of(line);
        let continued = found
            .last_mut()
            .filter(|last| open && prefix == Some(last.prefix));
        if open && continued.is_none() {
            problems.push(broken_continuation(place, found.last()));
            open = false;
            continue;
        }
        let Some(prefix) = prefix else {
            continue;
        };
        let (body, continues) = match line[3..].strip_suffix('\\') {
            Some(body) if !body.ends_with('\\') => (body, true),
            _ => (&line[3..], false),
        };
        if let Some(last) = continued {
            append(last, body, place.line, symbols);
        } else {
            let mut fresh = Logical {
                prefix,
                bytes: Vec::new(),
                start: place,
            };
            append(&mut fresh, body, place.line, symbols);
            found.push(fresh);
        }
        open = continues;
    }
    if open {
        let end = Place {
            line: header_lines + 1,
            column: 1,
        };
        problems.push(broken_continuation(end, found.last()));
    }
    problems.extend(behind_the_header(script, header_lines));
    (found, problems)
}

/// A directive behind the header would be a mere comment to Slurm and its data would be lost, so it
/// is a problem; but not in a here-document, which is another script's text.
fn behind_the_header(script: &str, header_lines: usize) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut here_document: Option<String> = None; // its last line, while we are in one
    for (index, line) in script.lines().enumerate().skip(header_lines) {
        if let Some(terminator) = &here_document {
            if line.trim_start_matches('\t') == *terminator {
                here_document = None;
            }
            continue;
        }
        if Prefix::of(line).is_some() {
            let place = Place {
                line: index + 1,
                column: 1,
            };
            problems.push(no_effect(place, &line[..3], header_lines + 1));
        }
        here_document = here_document_in(line);
    }
    problems
}

/// Adds the text behind a prefix to a logical line, symbols replaced.
fn append(logical: &mut Logical, body: &str, line: usize, symbols: &Symbols) {
    let joined_at_blank = logical
        .bytes
        .last()
        .is_some_and(|b| b.value.is_ascii_whitespace());
    let skipped = if joined_at_blank {
        body.len() - body.trim_start().len()
    } else {
        0
    };
    let bytes = body.as_bytes();
    let mut at = skipped;
    let mut replace = true;
    while at < bytes.len() {
        let place = Place {
            line,
            column: at + 4,
        };
        let value = match (bytes[at], bytes.get(at + 1)) {
            (b'\\', Some(b'\\')) if replace => {
                replace = false;
                Some("")
            }
            (b'%', Some(symbol)) if replace => symbols.value(*symbol),
            _ => None,
        };
        let value_is_replaced = value.is_some();
        let (new, step) = match value {
            Some(value) => (value.as_bytes(), 2),
            None => (&bytes[at..=at], 1),
        };
        logical.bytes.extend(new.iter().map(|&value| Byte {
            value,
            from_symbol: value_is_replaced,
            place,
        }));
        at += step;
    }
}

/// The line that ends the here-document which begins in a line.
fn here_document_in(line: &str) -> Option<String> {
    let (_, behind) = line.split_once("<<")?;
    let word = behind.strip_prefix('-').unwrap_or(behind).trim_start();
    let word = word.trim_start_matches(['"', '\'', '\\']);
    let end = |c: char| !(c.is_alphanumeric() || c == '_');
    let word = word.split(end).next().unwrap_or("");
    word.starts_with(|c: char| c.is_alphabetic() || c == '_')
        .then(|| word.to_owned())
}

fn no_effect(place: Place, prefix: &str, header_end: usize) -> Problem {
    Problem::new(
        place,
        format!(
            "{prefix} behind the header, which ended at line {header_end}, would have no effect"
        ),
        format!("move it above the first command, or write #{prefix} to keep it as a comment"),
    )
}

fn broken_continuation(place: Place, last: Option<&Logical>) -> Problem {
    let prefix = last.map_or("#DW", |l| l.prefix.text());
    Problem::new(
        place,
        format!("the {prefix} line before ends in \"\\\", but no {prefix} line follows it"),
        format!("begin the continued line with {prefix}, or drop the backslash"),
    )
}
