//! Paths as a message shows them.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

/// The path with its control characters as escapes: in a name, which anybody may choose, they could rewrite what a terminal
/// shows, or look like another message.
pub fn printable(path: &Path) -> String {
    let text = path.to_string_lossy();
    if !text.contains(char::is_control) {
        return text.into_owned();
    }
    text.chars().map(escaped).collect()
}

/// The text for JSON and command lines. Replaces bytes that are not UTF-8.
pub fn lossy(words: impl AsRef<OsStr>) -> String {
    words.as_ref().to_string_lossy().into_owned()
}

/// Serializes a path as [`lossy`] text.
pub fn lossy_path<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

/// As [`lossy_path`].
#[allow(clippy::ref_option)] // serde passes the field by reference
pub fn lossy_option<S: Serializer>(
    path: &Option<PathBuf>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    path.as_ref().map(lossy).serialize(serializer)
}

/// As [`lossy_path`].
pub fn lossy_paths<S: Serializer>(paths: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(paths.iter().map(lossy))
}

fn escaped(letter: char) -> String {
    if letter.is_control() { letter.escape_default().to_string() } else { letter.to_string() }
}

/// The same for a message, whose own ends of lines stay.
pub fn printable_text(text: &str) -> String {
    let is_kept = |letter: char| letter == '\n' || letter == '\t' || !letter.is_control();
    text.chars()
        .map(|letter| if is_kept(letter) { letter.to_string() } else { escaped(letter) })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(printable(Path::new("a\n\u{1b}[2Jb\u{9b}é")), "a\\n\\u{1b}[2Jb\\u{9b}é");
        assert_eq!(printable_text("one\n\ttwo\u{1b}"), "one\n\ttwo\\u{1b}");
    }
}
