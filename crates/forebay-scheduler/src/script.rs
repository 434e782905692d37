//! Reads a job script, its header and its directives.
//! Reads the environment: SBATCH_BURST_BUFFER replaces `--bb` and `--bbf` of the header, and SLURM_ARRAY_* are
//! symbols.

use std::path::{Path, PathBuf};

use forebay_directive::{ContinuationReader, Request, Symbols};
use forebay_host::{files, users};

use crate::error::Error;
use crate::header::Header;

/// A script with its interpreter and its header.
#[derive(Debug, Clone)]
pub struct JobScript {
    /// The path that the user gave.
    pub path: PathBuf,
    /// The bytes of the file.
    pub bytes: Vec<u8>,
    /// The whole text. Bytes that are not UTF-8 are replaced.
    pub text: String,
    /// The program and the arguments in the `#!` line.
    pub interpreter: Vec<String>,
    /// The scheduler options.
    pub header: Header,
    /// The text of `--bb` or of the file of `--bbf`. `$SBATCH_BURST_BUFFER` overrides the header.
    pub burst_buffer: Option<String>,
}

impl JobScript {
    /// Reads a script.
    ///
    /// # Errors
    /// If the script cannot be read, has no `#!` line, has DOS line ends, or has a bad option.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let bytes = files::read_bytes(path)?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if text.contains("\r\n") {
            return Err(Error::DosLines(path.to_owned()));
        }
        let first = text.lines().next().unwrap_or("");
        let interpreter: Vec<_> = first
            .strip_prefix("#!")
            .map(|rest| rest.split_ascii_whitespace().map(str::to_owned).collect())
            .unwrap_or_default();
        if interpreter.is_empty() {
            return Err(Error::NoInterpreter(path.to_owned()));
        }
        let in_header = |(line, message)| Error::Header { script: path.to_owned(), line, message };
        if let Some(line) = directive_that_is_no_utf8(&bytes) {
            return Err(in_header((line, "the directive is not valid UTF-8".to_owned())));
        }
        let header = Header::read(&text).map_err(in_header)?;
        let burst_buffer = burst_buffer(&header)?;
        Ok(Self { path: path.to_owned(), bytes, text, interpreter, header, burst_buffer })
    }

    /// The name from the header, else the file name, as with sbatch.
    pub fn job_name(&self) -> String {
        let file_name = || self.path.file_name().map(|name| name.to_string_lossy().into_owned());
        let given = self.header.job_name.clone();
        given.or_else(file_name).unwrap_or_default()
    }

    /// The working directory: from the header, else the submit directory.
    pub fn working_directory(&self, submit_directory: &Path) -> PathBuf {
        let named = self.header.directory.as_deref();
        named.map_or_else(|| submit_directory.to_owned(), |named| submit_directory.join(named))
    }

    /// The parsed directives, with symbols replaced (sbatch(1), FILENAME PATTERN). `%d` is the
    /// working directory.
    ///
    /// # Errors
    /// All problems of the directives, or a `%d` that is not UTF-8.
    pub fn request(&self, submit_directory: &Path, job_id: &str) -> Result<Request, Error> {
        let directory = self.working_directory(submit_directory);
        let symbols = Symbols {
            job_id: job_id.to_owned(),
            array_job_id: std::env::var("SLURM_ARRAY_JOB_ID").unwrap_or_default(),
            job_name: self.job_name(),
            user: users::user_name(),
            directory: directory.to_string_lossy().into_owned(),
            array_task: std::env::var("SLURM_ARRAY_TASK_ID").unwrap_or_default(),
        };
        let option = self.burst_buffer.as_deref().unwrap_or_default();
        let parsed = forebay_directive::parse_with_option(&self.text, option, &symbols);
        let request =
            parsed.map_err(|problems| Error::Directives { script: self.path.clone(), problems })?;
        if request.job.is_some() && directory.to_str().is_none() {
            return Err(Error::NotUtf8(directory));
        }
        Ok(request)
    }
}

/// The line of the first directive that is not valid UTF-8. Slurm takes any bytes, but paths in records are text.
fn directive_that_is_no_utf8(script: &[u8]) -> Option<usize> {
    let mut continuations = ContinuationReader::default();
    for (line, number) in script.split(|byte| *byte == b'\n').zip(1..) {
        let text = String::from_utf8_lossy(line);
        let continues = continuations.read_line(&text);
        let is_directive = continues || text.starts_with("#DW") || text.starts_with("#BB");
        if is_directive && std::str::from_utf8(line).is_err() {
            return Some(number);
        }
        if !continues && !line.is_empty() && !line.starts_with(b"#") {
            return None;
        }
    }
    None
}

/// The environment overrides the script (sbatch(1), INPUT ENVIRONMENT VARIABLES).
fn burst_buffer(header: &Header) -> Result<Option<String>, Error> {
    if let Ok(given) = std::env::var("SBATCH_BURST_BUFFER") {
        return Ok(Some(given));
    }
    match (&header.bb, &header.bbf) {
        (Some(bb), _) => Ok(Some(bb.clone())),
        (None, Some(file)) => Ok(Some(files::read_to_string(file)?)),
        (None, None) => Ok(None),
    }
}
