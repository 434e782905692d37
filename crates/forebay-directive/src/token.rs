//! Pieces of text that remember where each of their bytes stood.

use std::ops::Range;

use crate::problem::Position;

/// One byte of a directive.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SourceByte {
    pub(crate) value: u8,
    /// It came out of a `%` symbol or was quoted: it separates nothing and begins no variable.
    pub(crate) literal: bool,
    pub(crate) place: Position,
}

impl SourceByte {
    fn is_blank(&self) -> bool {
        !self.literal && self.value.is_ascii_whitespace()
    }
}

/// A word, or a part of one.
#[derive(Debug, Clone)]
pub(crate) struct Token {
    pub(crate) text: String,
    pub(crate) start: Position,
    bytes: Vec<SourceByte>,
}

impl Token {
    pub(crate) fn new(bytes: &[SourceByte], start: Position) -> Self {
        let values: Vec<u8> = bytes.iter().map(|byte| byte.value).collect();
        Self {
            text: String::from_utf8_lossy(&values).into_owned(),
            start: bytes.first().map_or(start, |byte| byte.place),
            bytes: bytes.to_vec(),
        }
    }

    /// A word that is not in the text, with a position.
    pub(crate) fn made(text: &str, place: Position) -> Self {
        let byte = |value| SourceByte { value, literal: false, place };
        Self::new(&text.bytes().map(byte).collect::<Vec<_>>(), place)
    }

    /// Part of the token; the range is between ASCII characters.
    pub(crate) fn part(&self, range: Range<usize>) -> Self {
        Self::new(&self.bytes[range], self.start)
    }

    /// Key and value of `key=value`.
    pub(crate) fn pair(&self) -> Option<(&str, Self)> {
        let (key, _) = self.text.split_once('=')?;
        Some((key, self.part(key.len() + 1..self.bytes.len())))
    }

    /// A `$` was written in it; one that a symbol brought in does not count.
    pub(crate) fn has_variable(&self) -> bool {
        self.bytes.iter().any(|byte| byte.value == b'$' && !byte.literal)
    }

    /// The parts between commas outside of parentheses; empty ones too.
    pub(crate) fn split_at_commas(&self) -> Vec<Self> {
        split(&self.bytes, |byte| byte.value == b',')
            .into_iter()
            .map(|part| Self::new(part, self.start))
            .collect()
    }
}

/// Cuts a line at blanks into words.
pub(crate) fn words(bytes: &[SourceByte]) -> Vec<Token> {
    bytes
        .split(SourceByte::is_blank)
        .filter_map(|word| Some(Token::new(word, word.first()?.place)))
        .collect()
}

/// Cuts a line at blanks and at commas outside parentheses, as `--bb` does.
pub(crate) fn option_words(bytes: &[SourceByte]) -> Vec<Token> {
    split(bytes, |byte| byte.value == b',' || byte.is_blank())
        .into_iter()
        .filter_map(|word| Some(Token::new(word, word.first()?.place)))
        .collect()
}

fn split(bytes: &[SourceByte], separates: impl Fn(&SourceByte) -> bool) -> Vec<&[SourceByte]> {
    let mut depth = 0usize;
    let cut = |byte: &SourceByte| {
        match byte.value {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && separates(byte)
    };
    bytes.split(cut).collect()
}

/// The directive prefix in the first three columns. What follows may touch it, as in `#DWjobdw`.
pub(crate) fn prefix_of(line: &str) -> Option<&'static str> {
    ["#DW", "#BB"].into_iter().find(|prefix| line.starts_with(prefix))
}
