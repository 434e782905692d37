//! Parses lists of files to stage, with a pair of paths in each line.
//! Assumes that the caller has read the list. A line stages one file, never a directory. Patterns are not expanded.

use crate::problem::{Finding, Origin, Position, Problem};
use crate::token::{SourceByte, Token};
use crate::{Direction, Stage, StageKind, VariableStyle, paths};

/// The stages of a list that `type=list` names.
///
/// Each line holds a source and a destination, separated by blanks. As in a directive, one begins
/// with a variable of a namespace, and the other is absolute. Empty lines and comments, which begin
/// with a word `#...`, are skipped. Names with blanks are quoted as in a shell (`'...'`, `"..."`,
/// `\`), unlike in DataWarp.
///
/// # Errors
/// All problems, in the order of the lines, with positions in the list.
pub fn stages_of_list(
    text: &str,
    direction: Direction,
    naming: &VariableStyle,
) -> Result<Vec<Stage>, Vec<Problem>> {
    let mut stages = Vec::new();
    let mut problems = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let words = words(line, index + 1);
        match words.and_then(|words| stage(&words, direction, naming)) {
            Ok(stage) => stages.extend(stage),
            Err(finding) => problems.push(finding.problem),
        }
    }
    if problems.is_empty() { Ok(stages) } else { Err(problems) }
}

fn stage(
    words: &[Token],
    direction: Direction,
    naming: &VariableStyle,
) -> Result<Option<Stage>, Finding> {
    let hint = "write source and destination, and quote names with blanks";
    let (source, destination) = match words {
        [] => return Ok(None),
        [source, destination] => (source, destination),
        [alone] => {
            let message = format!("{} has no destination", alone.text);
            return Err(Finding::error(alone.start, message, hint));
        }
        [_, _, third, ..] => {
            let message = format!("\"{}\" is one word too many", third.text);
            return Err(Finding::error(third.start, message, hint));
        }
    };
    let (from, to) = direction.sides();
    let source_path = paths::check(from, source, "", paths::IN_LISTS, naming)?;
    let destination_path = paths::check(to, destination, "", paths::IN_LISTS, naming)?;
    let ((persistent, inner_path), (_, pfs_path)) = match direction {
        Direction::In => (destination_path, source_path),
        Direction::Out => (source_path, destination_path),
    };
    Ok(Some(Stage {
        kind: StageKind::File,
        persistent,
        inner_path,
        pfs_path,
        naming: naming.clone(),
        position: source.start,
    }))
}

/// The quoting state.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quote {
    None,
    /// The next byte is literal. After it, the previous state continues.
    Escaped {
        in_double: bool,
    },
    Single,
    Double,
}

/// The words of one line, without quotes.
fn words(line: &str, number: usize) -> Result<Vec<Token>, Finding> {
    let mut words = Vec::new();
    let mut word: Option<(Position, Vec<SourceByte>)> = None;
    let mut quote = Quote::None;
    for (index, value) in line.bytes().enumerate() {
        let position = Position { origin: Origin::List, line: number, column: index + 1 };
        if quote == Quote::None && value.is_ascii_whitespace() {
            words.extend(word.take().map(|(start, bytes)| Token::new(&bytes, start)));
            continue;
        }
        if quote == Quote::None && value == b'#' && word.is_none() {
            break;
        }
        let (_, bytes) = word.get_or_insert_with(|| (position, Vec::new()));
        let (next, literal) = step(quote, value);
        bytes.extend(literal.map(|literal| SourceByte { value, literal, position }));
        quote = next;
    }
    if let (true, Some((start, _))) = (quote != Quote::None, &word) {
        return Err(Finding::error(
            *start,
            "a quotation or a backslash is not finished",
            "close it on the same line, or write \\' \\\" \\\\ for the characters themselves",
        ));
    }
    words.extend(word.map(|(start, bytes)| Token::new(&bytes, start)));
    Ok(words)
}

/// The state after a byte. For a byte of the word, also whether it is literal.
fn step(quote: Quote, value: u8) -> (Quote, Option<bool>) {
    match (quote, value) {
        (Quote::Escaped { in_double: true }, _) => (Quote::Double, Some(true)),
        (Quote::Escaped { in_double: false }, _) => (Quote::None, Some(true)),
        (Quote::Single, b'\'') | (Quote::Double, b'"') => (Quote::None, None),
        (Quote::Single, _) => (quote, Some(true)),
        (Quote::None, b'\'') => (Quote::Single, None),
        (Quote::None, b'"') => (Quote::Double, None),
        (_, b'\\') => {
            let in_double = quote == Quote::Double;
            (Quote::Escaped { in_double }, None)
        }
        (Quote::None | Quote::Double, _) => (quote, Some(false)),
    }
}
