//! Why a function of the protocol failed, in one line: Slurm shows it as the reason of a job.

use forebay_host::files::printable_text;

/// Characters of an error at most. Slurm keeps a reason whole, and people read it in one line of `squeue`.
const CHARACTERS_MAX: usize = 500;
/// Of them for what failed, however long the remedy is.
const MESSAGE_CHARACTERS_MIN: usize = 100;

/// Slurm takes an error with one of these texts for a success: `teardown` is then not repeated, and the allocation is
/// forgotten. Names and results of a user may hold them.
const SUCCESS_FOR_SLURM: [&str; 2] = ["No matching session", "token not found"];

/// Why a function failed, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", one_line(message, hint.as_deref()))]
pub struct Error {
    /// What failed, on what.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Error {
    /// An error without a remedy.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    /// The same error with its remedy.
    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

impl From<forebay_host::Error> for Error {
    fn from(error: forebay_host::Error) -> Self {
        Self { hint: error.hint().map(str::to_owned), ..Self::new(error.to_string()) }
    }
}

/// Names and paths of users may hold ends of lines. Where the text is too long, the remedy stays whole.
fn one_line(message: &str, hint: Option<&str>) -> String {
    let plain = |text: &str| printable_text(text).replace(['\n', '\t'], " ");
    let hint = hint.map(|hint| format!("; {}", plain(hint))).unwrap_or_default();
    let left = CHARACTERS_MAX.saturating_sub(hint.chars().count()).max(MESSAGE_CHARACTERS_MIN);
    let line = format!("{}{hint}", shortened(&plain(message), left));
    SUCCESS_FOR_SLURM.iter().fold(line, |line, text| line.replace(text, &text.replace(' ', "_")))
}

/// The begin and the end of a long text.
fn shortened(text: &str, characters_max: usize) -> String {
    let count = text.chars().count();
    if count <= characters_max {
        return text.to_owned();
    }
    let half = (characters_max - 3) / 2;
    let begin: String = text.chars().take(half).collect();
    let end: String = text.chars().skip(count - half).collect();
    format!("{begin}...{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_never_holds_a_text_that_slurm_takes_for_success() {
        for (text, wanted) in [
            (
                "cannot read a/No matching session: denied",
                "cannot read a/No_matching_session: denied",
            ),
            ("No\nmatching\tsession", "No_matching_session"),
            ("token\nnot found", "token_not_found"),
        ] {
            assert_eq!(Error::new(text).to_string(), wanted);
            assert_eq!(Error::new("a").with_hint(text).to_string(), format!("a; {wanted}"));
        }
    }

    #[test]
    fn error_is_one_line_of_limited_length() {
        let error = Error::new("a\nb\u{1b}[2J").with_hint("do\tc");
        assert_eq!(error.to_string(), "a b\\u{1b}[2J; do c");
        let long = Error::new(format!("a{}z", "é".repeat(600))).with_hint("do c").to_string();
        assert!((CHARACTERS_MAX - 1..=CHARACTERS_MAX).contains(&long.chars().count()));
        assert!(long.starts_with("aé") && long.ends_with("éz; do c") && long.contains("é...é"));
    }
}
