//! Finds directives after the header, which have no effect.

use crate::lines::header_lines;
use crate::problem::{Origin, Position, Problem};
use crate::statements::statements;
use crate::token::prefix_of;

/// A directive without effect.
#[derive(Debug)]
pub(crate) struct IgnoredDirective {
    pub(crate) problem: Problem,
    /// Whether it requests staging: the job would miss the data.
    pub(crate) is_staging: bool,
}

/// The line that ends the header although it holds only blanks, if directives follow it.
pub fn blank_line_before_directives(script: &str) -> Option<usize> {
    let header_lines = header_lines(script);
    let ending = HeaderEnd::of(script, header_lines);
    let is_followed = || !directives_after_header(script, header_lines).is_empty();
    (ending.is_blank && is_followed()).then_some(ending.line)
}

/// Directives after the header, which are comments for Slurm. Skips here-documents and texts that are written to files:
/// they may be other scripts.
pub(crate) fn directives_after_header(script: &str, header_lines: usize) -> Vec<IgnoredDirective> {
    let mut found = Vec::new();
    let ending = HeaderEnd::of(script, header_lines);
    for statement in statements(script) {
        if statement.document.is_some() {
            continue;
        }
        let mut next = 0;
        for (line, number) in statement.lines.split('\n').zip(statement.line..) {
            let at = next;
            next += line.len() + 1;
            let Some(prefix) = prefix_of(line).filter(|_| number > header_lines) else {
                continue;
            };
            let position = Position { origin: Origin::Script, line: number, column: 1 };
            let is_quoted = at < statement.text.len() && statement.quoted_from(at).is_some();
            if !is_quoted {
                let problem = ending.no_effect(position, prefix);
                found.push(IgnoredDirective { problem, is_staging: is_staging(line, prefix) });
            } else if !statement.writes(at) {
                let message = format!("{prefix} in quotes behind the header has no effect");
                let hint = "if this script needs it, move it above the first command";
                let problem = Problem::new(position, message, hint);
                found.push(IgnoredDirective { problem, is_staging: false });
            }
        }
    }
    found
}

fn is_staging(line: &str, prefix: &str) -> bool {
    let words = line.strip_prefix(prefix).unwrap_or_default();
    let command = words.split_whitespace().next();
    command.is_some_and(|word| ["stage_in", "stage_out", "copy_in", "copy_out"].contains(&word))
}

/// The line that ends the header.
struct HeaderEnd {
    line: usize,
    is_blank: bool,
}

impl HeaderEnd {
    fn of(script: &str, header_lines: usize) -> Self {
        let line = script.lines().nth(header_lines).unwrap_or_default();
        Self { line: header_lines + 1, is_blank: line.trim().is_empty() }
    }

    fn no_effect(&self, position: Position, prefix: &str) -> Problem {
        let line = self.line;
        let message =
            format!("{prefix} behind the header, which ended at line {line}, would have no effect");
        let remedy = match self.is_blank {
            true => format!("line {line} holds only blanks and ends the header: empty it"),
            false => "move it above the first command".to_owned(),
        };
        let hint = format!("{remedy}, or write #{prefix} to keep it as a comment");
        Problem::new(position, message, hint)
    }
}
