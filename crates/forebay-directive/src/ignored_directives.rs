//! Finds directives after the header, which have no effect.

use crate::problem::{Origin, Position, Problem};
use crate::token::prefix_of;

/// A directive without effect.
#[derive(Debug)]
pub(crate) struct IgnoredDirective {
    pub(crate) problem: Problem,
    /// Whether it requests staging: the job would miss the data.
    pub(crate) is_staging: bool,
}

/// Directives after the header, which are comments for Slurm. Skips here-documents, which may hold
/// other scripts.
pub(crate) fn directives_after_header(script: &str, header_lines: usize) -> Vec<IgnoredDirective> {
    let mut problems = Vec::new();
    let mut here_document: Option<String> = None; // the end line of the current here-document
    for (index, line) in script.lines().enumerate().skip(header_lines) {
        if let Some(terminator) = &here_document {
            if line.trim_start_matches('\t') == *terminator {
                here_document = None;
            }
            continue;
        }
        if let Some(prefix) = prefix_of(line) {
            let position = Position { origin: Origin::Script, line: index + 1, column: 1 };
            let problem = no_effect(position, prefix, header_lines + 1);
            problems.push(IgnoredDirective { problem, is_staging: is_staging(line, prefix) });
        }
        here_document = here_document_in(line);
    }
    problems
}

fn is_staging(line: &str, prefix: &str) -> bool {
    let words = line.strip_prefix(prefix).unwrap_or_default();
    let command = words.split_whitespace().next();
    command.is_some_and(|word| ["stage_in", "stage_out", "copy_in", "copy_out"].contains(&word))
}

/// The end line of the here-document that starts in this line.
fn here_document_in(line: &str) -> Option<String> {
    let (before, behind) = line.split_once("<<")?;
    // An arithmetic shift or a comment.
    if before.contains("((") || before.trim_start().starts_with('#') {
        return None;
    }
    let word = behind.strip_prefix('-').unwrap_or(behind).trim_start();
    let word = word.trim_start_matches(['"', '\'', '\\']);
    let end = |c: char| !(c.is_alphanumeric() || c == '_');
    let word = word.split(end).next().unwrap_or("");
    word.starts_with(|c: char| c.is_alphabetic() || c == '_').then(|| word.to_owned())
}

fn no_effect(position: Position, prefix: &str, header_end: usize) -> Problem {
    Problem::new(
        position,
        format!(
            "{prefix} behind the header, which ended at line {header_end}, would have no effect"
        ),
        format!("move it above the first command, or write #{prefix} to keep it as a comment"),
    )
}
