//! Words of directives that keep the position of each byte.
//! Assumes that the bytes are UTF-8: the text and the bytes of a token then have the same length.

use std::ops::Range;

use crate::problem::Position;

/// One byte of a directive.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SourceByte {
    pub(crate) value: u8,
    /// From a `%` symbol or quoted: it neither separates words nor starts a variable.
    pub(crate) literal: bool,
    pub(crate) position: Position,
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
            start: bytes.first().map_or(start, |byte| byte.position),
            bytes: bytes.to_vec(),
        }
    }

    /// A token for a word that is not in the text, with a position.
    pub(crate) fn made(text: &str, position: Position) -> Self {
        let byte = |value| SourceByte { value, literal: false, position };
        Self::new(&text.bytes().map(byte).collect::<Vec<_>>(), position)
    }

    /// Part of the token. The range must end at ASCII characters.
    pub(crate) fn part(&self, range: Range<usize>) -> Self {
        Self::new(&self.bytes[range], self.start)
    }

    /// The key and the value of `key=value`.
    pub(crate) fn pair(&self) -> Option<(&str, Self)> {
        let (key, _) = self.text.split_once('=')?;
        Some((key, self.part(key.len() + 1..self.bytes.len())))
    }

    /// Whether it contains a `$` as written, not from a symbol.
    pub(crate) fn has_variable(&self) -> bool {
        self.bytes.iter().any(|byte| byte.value == b'$' && !byte.literal)
    }

    /// The parts between commas outside parentheses, including empty parts.
    pub(crate) fn split_at_commas(&self) -> Vec<Self> {
        split(&self.bytes, |byte| byte.value == b',')
            .into_iter()
            .map(|part| Self::new(part, self.start))
            .collect()
    }
}

/// Splits a line into words at blanks.
pub(crate) fn words(bytes: &[SourceByte]) -> Vec<Token> {
    bytes
        .split(SourceByte::is_blank)
        .filter_map(|word| Some(Token::new(word, word.first()?.position)))
        .collect()
}

/// Splits a line at blanks, and at commas outside parentheses, as `--bb` does.
pub(crate) fn option_words(bytes: &[SourceByte]) -> Vec<Token> {
    split(bytes, |byte| byte.value == b',' || byte.is_blank())
        .into_iter()
        .filter_map(|word| Some(Token::new(word, word.first()?.position)))
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

/// The directive prefix of a line. Text may follow without a blank, as in `#DWjobdw`.
pub(crate) fn prefix_of(line: &str) -> Option<&'static str> {
    ["#DW", "#BB"].into_iter().find(|prefix| line.starts_with(prefix))
}
