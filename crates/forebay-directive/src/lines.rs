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
/// with `#`. Empty lines do not end it; a line of blanks does (Slurm's own rule). A directive
/// behind the block would be a mere comment to Slurm and its data would be lost, so it is a problem.
pub(crate) fn logical_lines(script: &str, symbols: &Symbols) -> (Vec<Logical>, Vec<Problem>) {
    let mut found: Vec<Logical> = Vec::new();
    let mut problems = Vec::new();
    let mut header_end = None;
    let mut open = false; // the last logical line ended in a backslash
    for (index, line) in script.lines().enumerate() {
        let place = Place {
            line: index + 1,
            column: 1,
        };
        let prefix = Prefix::of(line);
        if let Some(end) = header_end {
            if prefix.is_some() {
                problems.push(behind_the_header(place, line, end));
            }
            continue;
        }
        if line.is_empty() {
            continue;
        }
        if !line.starts_with('#') {
            header_end = Some(index + 1);
            if open {
                problems.push(broken_continuation(place, found.last()));
            }
            continue;
        }
        let Some(prefix) = prefix else {
            if open {
                problems.push(broken_continuation(place, found.last()));
            }
            open = false;
            continue;
        };
        let (body, continues) = match line[3..].strip_suffix('\\') {
            Some(body) if !body.ends_with('\\') => (body, true),
            _ => (&line[3..], false),
        };
        match found.last_mut() {
            Some(last) if open && last.prefix == prefix => append(last, body, place.line, symbols),
            Some(last) if open => {
                problems.push(broken_continuation(place, Some(last)));
                open = false;
                continue;
            }
            _ => {
                let mut fresh = Logical {
                    prefix,
                    bytes: Vec::new(),
                    start: place,
                };
                append(&mut fresh, body, place.line, symbols);
                found.push(fresh);
            }
        }
        open = continues;
    }
    if open && header_end.is_none() {
        let place = found
            .last()
            .map_or(Place { line: 1, column: 1 }, |l| l.start);
        problems.push(broken_continuation(place, found.last()));
    }
    (found, problems)
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

fn behind_the_header(place: Place, line: &str, header_end: usize) -> Problem {
    let prefix = &line[..3];
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
