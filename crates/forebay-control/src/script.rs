//! A job script on disk.

use std::path::{Path, PathBuf};

use forebay_host::files;

use crate::{Error, Header};

/// A script that was read: its text, its interpreter and its header.
#[derive(Debug, Clone)]
pub struct JobScript {
    /// As the user named it.
    pub path: PathBuf,
    /// The whole text.
    pub text: String,
    /// From the `#!` line: program and its arguments.
    pub interpreter: Vec<String>,
    /// `#SBATCH` options.
    pub header: Header,
}

impl JobScript {
    /// Reads a script.
    ///
    /// # Errors
    /// If it cannot be read, has no `#!` line or a bad option in its header.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = files::read_to_string(path)?;
        let first = text.lines().next().unwrap_or("");
        let interpreter: Vec<_> = first
            .strip_prefix("#!")
            .map(|rest| rest.split_ascii_whitespace().map(str::to_owned).collect())
            .unwrap_or_default();
        if interpreter.is_empty() {
            return Err(Error::NoInterpreter(path.to_owned()));
        }
        let header = Header::read(&text).map_err(|(line, message)| Error::Header {
            script: path.to_owned(),
            line,
            message,
        })?;
        Ok(Self {
            path: path.to_owned(),
            text,
            interpreter,
            header,
        })
    }

    /// `--job-name`, else the file's name, as sbatch does.
    #[must_use]
    pub fn job_name(&self) -> String {
        let file_name = || {
            self.path
                .file_name()
                .map(|name| name.to_string_lossy().into_owned())
        };
        let given = self.header.job_name.clone();
        given.or_else(file_name).unwrap_or_default()
    }
}
