//! Why a function of the protocol failed, in one line: Slurm shows it as the reason of a job.

use forebay_host::files::printable_text;

/// Characters of an error at most. Slurm keeps a reason whole, and people read it in one line of `squeue`.
const CHARACTERS_MAX: usize = 500;

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

/// Names and paths of users may hold ends of lines.
fn one_line(message: &str, hint: Option<&str>) -> String {
    let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
    let whole = printable_text(&format!("{message}{hint}")).replace(['\n', '\t'], " ");
    if whole.chars().count() <= CHARACTERS_MAX {
        return whole;
    }
    let begin: String = whole.chars().take(CHARACTERS_MAX - 3).collect();
    format!("{begin}...")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_is_one_line_of_limited_length() {
        let error = Error::new("a\nb\u{1b}[2J").with_hint("do\tc");
        assert_eq!(error.to_string(), "a b\\u{1b}[2J; do c");
        let long = Error::new("é".repeat(600)).to_string();
        assert_eq!(long.chars().count(), CHARACTERS_MAX);
        assert!(long.ends_with("..."));
    }
}
