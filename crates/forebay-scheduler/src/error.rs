//! The errors of a script that cannot run as a job, with remedies.

use std::path::PathBuf;

use forebay_directive::Problem;

/// The reason why a script cannot run as a job.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A call of the operating system failed.
    #[error(transparent)]
    Host(#[from] forebay_host::Error),
    /// The script's directives are wrong.
    #[error("{}", problems.iter().map(|p| format!("{}: {p}\n  hint: {}", script.display(), p.hint)).collect::<Vec<_>>().join("\n"))]
    Directives {
        /// The script.
        script: PathBuf,
        /// All problems in them.
        problems: Vec<Problem>,
    },
    /// An option in the script's header has a bad value.
    #[error("{}: line {line}: {message}", script.display())]
    Header {
        /// The script.
        script: PathBuf,
        /// Line number, from 1.
        line: usize,
        /// What is wrong.
        message: String,
    },
    /// The script does not begin with `#!`.
    #[error("{} does not begin with #! and an interpreter", .0.display())]
    NoInterpreter(PathBuf),
    /// The script has DOS line ends.
    #[error("the lines of {} end in carriage returns, as on DOS", .0.display())]
    DosLines(PathBuf),
    /// The working directory cannot be named in directives.
    #[error("the working directory {} is not valid UTF-8", .0.display())]
    NotUtf8(PathBuf),
}

impl Error {
    /// The remedy.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Host(error) => error.hint(),
            Self::DosLines(_) => Some("convert them: sed -i 's/\\r$//' SCRIPT"),
            Self::NotUtf8(_) => Some("run the job from a directory with an ordinary name"),
            Self::NoInterpreter(_) => Some("make the first line #!/bin/bash"),
            Self::Directives { .. } | Self::Header { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_script_has_the_hint_of_the_system() {
        let missing = crate::JobScript::read("/no/such".as_ref()).expect_err("missing");
        assert!(matches!(&missing, Error::Host(error) if error.is_not_found()));
        assert_eq!(missing.hint(), Some("check the path"));
    }
}
