//! Parses the text of sbatch's option `--bb`: directives, or words such as `capacity=1G`.
//! Symbols such as `%j` are replaced in directives, never in words.

use crate::Symbols;
use crate::lines::{Line, ParsedLines, read as read_lines};
use crate::problem::{Origin, Position, Problem};
use crate::suggestion::with_suggestion;
use crate::token::{SourceByte, Token, option_words};

const HINT: &str = "--bb takes capacity= access= type= pool= swap=; a blank or a comma ends a \
                    value; for more, give the directive itself: --bb=\"#DW jobdw ...\"";

/// Parses the option. Positions refer to its text. Replaces symbols in directives.
pub(crate) fn read(text: &str, symbols: &Symbols) -> ParsedLines {
    if holds_directives(text) {
        read_lines(text, Origin::Option, Some(symbols))
    } else {
        of_words(text)
    }
}

fn holds_directives(text: &str) -> bool {
    let first = text.lines().find(|line| !line.is_empty());
    first.is_some_and(|line| line.starts_with('#'))
}

/// Reads `capacity=1G access=striped type=scratch pool=P swap=N`, separated by blanks or commas: a
/// jobdw and, with `swap=`, a swap.
fn of_words(text: &str) -> ParsedLines {
    let mut found = ParsedLines::default();
    let start = Position { origin: Origin::Option, line: 1, column: 1 };
    let mut job = Vec::new();
    let mut swap = Vec::new();
    let mut pool = Vec::new();
    for word in option_words(&bytes(text)) {
        match word.pair() {
            Some(("capacity" | "access" | "access_mode" | "type", _)) => job.push(word),
            Some(("pool", _)) => pool.push(word),
            Some(("swap", size)) if !size.text.is_empty() => swap.push(size),
            _ => found.problems.push(leftover(&word)),
        }
    }
    let directive = |command: &str, words: Vec<Token>| Line {
        prefix: "#DW",
        start,
        words: [vec![Token::made(command, start)], words, pool.clone()].concat(),
    };
    if !job.is_empty() || (swap.is_empty() && !pool.is_empty()) {
        found.lines.push(directive("jobdw", job));
    }
    if !swap.is_empty() {
        found.lines.push(directive("swap", swap));
    }
    found
}

fn leftover(word: &Token) -> Problem {
    let text = &word.text;
    if matches!(text.as_str(), "create_persistent" | "destroy_persistent") {
        let message = format!("{text} cannot be asked for with --bb");
        let hint = format!("it is a line of a script: #BB {text} name=NAME ...");
        return Problem::new(word.start, message, hint);
    }
    let name = text.split('=').next().unwrap_or_default();
    let hint = with_suggestion(name, ["capacity", "access", "type", "pool", "swap"], HINT);
    Problem::new(word.start, format!("--bb does not know \"{text}\""), hint)
}

/// The bytes of all lines, with a blank between lines. Values of the option have no symbols.
fn bytes(text: &str) -> Vec<SourceByte> {
    let mut bytes = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let byte = |(column, value)| SourceByte {
            value,
            literal: false,
            position: Position { origin: Origin::Option, line: index + 1, column: column + 1 },
        };
        bytes.extend(line.bytes().chain([b' ']).enumerate().map(byte));
    }
    bytes
}
