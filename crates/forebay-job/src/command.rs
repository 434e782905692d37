//! `forebay profile`: runs a command and records its I/O, without an allocation or a script.
//! A profile that cannot be created is a warning: the command runs without it. Only a time limit ends processes that
//! the command left.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use forebay_directive::Request;
use forebay_host::process::{EndReason, SignalGuard, command, start_in_our_group};
use forebay_host::{clock, files};
use forebay_profile::{Profile, Recording, is_launcher, prune};
use schemars::JsonSchema;
use serde::Serialize;

use crate::execution::{JOB_GRACE, LEFTOVER_GRACE, status};
use crate::recording;
use crate::variables::check_expanded;
use crate::{Error, Reporter};

/// A command and its options.
pub struct Command<'a> {
    /// The program and its arguments.
    pub words: &'a [OsString],
    /// Forebay ends the command after this time.
    pub time_limit: Option<Duration>,
    /// Send its standard output to Forebay's standard error.
    pub output_to_error: bool,
    /// How its I/O is recorded.
    pub recording: Recording<'a>,
}

/// The result of a command.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Profiled {
    /// Exit status as a shell shows it.
    pub job_status: i32,
    /// Run time in seconds.
    pub job_s: f64,
    /// Exit code of `forebay profile`.
    pub exit_code: i32,
    /// The directory of its I/O profile; none if it could not be created.
    #[serde(serialize_with = "forebay_host::files::lossy_option")]
    #[schemars(with = "Option<PathBuf>")]
    pub profile: Option<PathBuf>,
}

impl Command<'_> {
    /// Runs the command and forwards signals to it.
    ///
    /// # Errors
    /// If the command cannot be started, signals cannot be forwarded, or its processes cannot be listed.
    pub fn run(&self, caught: SignalGuard, reporter: &dyn Reporter) -> Result<Profiled, Error> {
        if let Some((script, text)) = script_of(self.words) {
            // A script cannot expand a variable whose name is not UTF-8.
            let given = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
            check_expanded(&script, &text, given.collect(), &Request::default())?;
        }
        let profile = recording::begin_of_command(self.words, reporter);
        let done = self.execute(profile.as_ref(), caught, reporter);
        if let Some(profile) = profile {
            let record = profile.directory().to_owned();
            recording::end(profile, &self.recording, done.as_ref(), reporter);
            prune(&record, reporter);
        }
        done
    }

    fn execute(
        &self,
        profile: Option<&Profile>,
        caught: SignalGuard,
        reporter: &dyn Reporter,
    ) -> Result<Profiled, Error> {
        let (program, arguments) = self.words.split_first().ok_or(Error::NoCommand)?;
        let mut process = command(program);
        process.args(arguments);
        if self.output_to_error {
            process.stdout(std::io::stderr());
        }
        if let Some(profile) = profile {
            let launcher = is_launcher(program).then_some(program.as_os_str());
            process.envs(profile.environment(&self.recording, launcher, reporter));
        }
        let events = caught.watch(None)?;
        let started = clock::now();
        let job = start_in_our_group(process).map_err(Error::CommandNotStarted)?;
        let (ended, asked) = events.wait_forwarding_signals(job, self.time_limit, JOB_GRACE)?;
        let job_s = started.elapsed().as_secs_f64();
        if asked == Some(EndReason::TimeLimit) {
            reporter.warning("the command was ended: its time limit was reached");
            events.kill_orphans(LEFTOVER_GRACE)?;
        }
        if let Some(profile) = profile {
            profile.note_transferred(events.transferred());
        }
        // A command that handles a signal chooses its own status.
        let job_status = status(ended, asked.filter(|asked| *asked == EndReason::TimeLimit));
        Ok(Profiled {
            job_status,
            job_s,
            exit_code: job_status,
            profile: profile.map(|profile| profile.directory().to_owned()),
        })
    }
}

/// The script that a command runs, by its own name or as the first argument of a shell.
fn script_of(words: &[OsString]) -> Option<(PathBuf, String)> {
    const SHELLS: [&str; 7] = ["sh", "bash", "dash", "ksh", "zsh", "csh", "tcsh"];
    let (program, arguments) = words.split_first()?;
    let name = Path::new(program).file_name()?;
    let is_shell = SHELLS.iter().any(|shell| name == *shell);
    let is_option = |word: &&OsString| word.as_encoded_bytes().starts_with(b"-");
    let script = if is_shell { arguments.iter().find(|word| !is_option(word))? } else { program };
    let script = PathBuf::from(script);
    let bytes = files::read_bytes(&script).ok()?;
    let is_script = bytes.starts_with(b"#!") || (is_shell && !bytes.contains(&0));
    is_script.then(|| (script, String::from_utf8_lossy(&bytes).into_owned()))
}
