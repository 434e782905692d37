//! `forebay __series`: many runs in one allocation, requested on standard input (docs/explanation/tuner.md).
//! Never prints anything but answers on standard output. A wrong request does not end the series.
//! The end of standard input stops the series, as a signal does.

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use forebay_host::process::EventSender;
use forebay_host::threads;
use forebay_job::{Error, Output, Ran, Ready, Run, RunTarget};
use forebay_profile::Recording;
use forebay_terminal::{CliError, Progress, observers, print_json};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::job_setup::JobSetup;
use crate::options::job::JobArguments;

const HINT: &str = "docs/explanation/tuner.md describes the requests of a series";

/// One line of standard input.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    run: u64,
    script: Option<PathBuf>,
    command: Option<Vec<String>>,
    #[serde(default)]
    fresh: bool,
    directory: Option<PathBuf>,
    #[serde(default)]
    environment: BTreeMap<String, String>,
    record: Option<PathBuf>,
    #[serde(default)]
    trace: bool,
    output: Option<PathBuf>,
    time_limit_s: Option<f64>,
}

/// The first line of standard output.
#[derive(Serialize, JsonSchema)]
pub struct Begun<'a> {
    /// Always true.
    ready: bool,
    #[serde(flatten)]
    what: &'a Ready,
    /// Name of the emulated file system.
    emulated: Option<&'a str>,
}

/// The result of a request.
#[derive(Serialize, JsonSchema)]
pub struct Answer<'a> {
    /// Number of the request.
    run: u64,
    #[serde(flatten)]
    ran: &'a Ran,
}

/// A request that was not carried out.
#[derive(Serialize, JsonSchema)]
pub struct NotRun {
    /// Number of the request, if it has one.
    run: Option<u64>,
    /// Why it was not carried out.
    error: String,
    /// What to do about it.
    hint: Option<String>,
}

/// The only line of a series that could not begin.
#[derive(Serialize, JsonSchema)]
pub struct NotBegun<'a> {
    /// Why it could not begin.
    error: &'a str,
    /// Exit code of the command.
    exit_code: i32,
    /// What to do about it.
    hint: Option<&'a str>,
}

/// Each line of standard output.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Line<'a> {
    Begun(Begun<'a>),
    Answer(Answer<'a>),
    NotRun(NotRun),
    NotBegun(NotBegun<'a>),
}

pub fn series(arguments: &JobArguments) -> i32 {
    match carry_out(arguments) {
        Ok(exit_code) => exit_code,
        Err(error) => refuse(&error),
    }
}

/// Prints an error, on standard output as JSON. Returns the exit code.
pub fn refuse(error: &CliError) -> i32 {
    let exit_code = error.print();
    let refusal =
        Line::NotBegun(NotBegun { error: &error.message, exit_code, hint: error.hint.as_deref() });
    print_json(&refusal, exit_code)
}

fn carry_out(arguments: &JobArguments) -> Result<i32, CliError> {
    let (mut setup, caught) = JobSetup::of(arguments)?;
    setup.allow_local_files();
    let model = setup.emulation.as_ref();
    let model = model.map(|emulation| emulation.model().name.as_str());
    // Only the model's name: the counters cover all runs together.
    let emulated = model.map(|model| move || serde_json::Value::from(model));
    let recording = Recording {
        libraries: observers(),
        trace: false,
        emulated: emulated.as_ref().map(|emulated| emulated as _),
    };
    let spec = setup.spec(Output::Error, Some(recording));
    let progress = Progress::explaining(arguments.explain);
    let mut lines = Lines { emulated: model, requests: None };
    forebay_job::series(&spec, caught, &progress, &mut lines).map_err(CliError::of_job)
}

/// Reads requests from standard input and writes answers to standard output.
struct Lines<'a> {
    emulated: Option<&'a str>,
    requests: Option<(mpsc::Receiver<String>, EventSender)>,
}

impl Lines<'_> {
    fn write_line(&self, line: &Line) {
        let mut output = std::io::stdout().lock();
        let text = serde_json::to_string(line).map_err(std::io::Error::other);
        let written = text.and_then(|text| writeln!(output, "{text}"));
        if let (Err(_), Some((_, events))) = (written.and_then(|()| output.flush()), &self.requests)
        {
            events.disconnect();
        }
    }
}

impl forebay_job::RunSource for Lines<'_> {
    fn listen(&mut self, events: EventSender) -> forebay_host::Result<()> {
        let (sender, receiver) = mpsc::channel();
        self.requests = Some((receiver, events.clone()));
        threads::spawn(move || {
            for line in std::io::stdin().lock().lines() {
                let Ok(line) = line else { break };
                if sender.send(line).is_err() {
                    return;
                }
                events.wake();
            }
            events.disconnect();
        })?;
        Ok(())
    }

    fn ready(&mut self, what: &Ready) {
        self.write_line(&Line::Begun(Begun { ready: true, what, emulated: self.emulated }));
    }

    fn next(&mut self) -> Option<Run> {
        let (lines, _) = self.requests.as_ref()?;
        while let Ok(line) = lines.try_recv() {
            match parse_request(&line) {
                Ok(run) => return Some(run),
                Err(refusal) => self.write_line(&Line::NotRun(refusal)),
            }
        }
        None
    }

    fn answer(&mut self, run: &Run, done: Result<&Ran, &Error>) {
        let run = run.number;
        match done {
            Ok(ran) => self.write_line(&Line::Answer(Answer { run, ran })),
            Err(error) => {
                let (error, hint) = (error.to_string(), error.hint());
                self.write_line(&Line::NotRun(NotRun { run: Some(run), error, hint }))
            }
        }
    }
}

fn parse_request(line: &str) -> Result<Run, NotRun> {
    let request = serde_json::from_str::<Request>(line).map_err(|error| error.to_string());
    request.and_then(Request::checked).map_err(|error| NotRun {
        run: serde_json::from_str::<serde_json::Value>(line)
            .ok()
            .and_then(|value| value.get("run")?.as_u64()),
        error: format!("this is no request: {error}"),
        hint: Some(HINT.to_owned()),
    })
}

impl Request {
    fn checked(self) -> Result<Run, String> {
        let what = match (self.script, self.command) {
            (Some(script), None) => RunTarget::Script(script),
            (None, Some(words)) if !words.is_empty() => RunTarget::Command(words),
            _ => return Err("it must have either a script or a command with words".to_owned()),
        };
        let is_name = |name: &String| !name.is_empty() && !name.contains(['=', '\0']);
        let mut variables = self.environment.iter();
        if let Some((name, _)) =
            variables.find(|(name, value)| !is_name(name) || value.contains('\0'))
        {
            return Err(format!("{name:?} cannot be a variable with this value"));
        }
        if self.trace && self.record.is_none() {
            return Err("a trace needs a record: give --record as well".to_owned());
        }
        let limit = self.time_limit_s.map(Duration::try_from_secs_f64).transpose();
        let time_limit = limit.map_err(|error| format!("time_limit_s: {error}"))?;
        if time_limit == Some(Duration::ZERO) {
            return Err("time_limit_s must be more than 0".to_owned());
        }
        Ok(Run {
            number: self.run,
            what,
            fresh: self.fresh,
            directory: absolute(self.directory)?,
            environment: self.environment,
            record: absolute(self.record)?,
            trace: self.trace,
            output: self.output,
            time_limit,
        })
    }
}

fn absolute(path: Option<PathBuf>) -> Result<Option<PathBuf>, String> {
    let path = path.as_deref().map(Path::new);
    let absolute = path.map(std::path::absolute).transpose();
    absolute.map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(line: &str) -> (Option<u64>, String) {
        let refused = parse_request(line).expect_err(line);
        (refused.run, refused.error)
    }

    #[test]
    fn request_is_one_line_with_known_members() {
        let run = parse_request(r#"{"run": 3, "command": ["true"], "time_limit_s": 1.5}"#);
        let run = run.ok().expect("a request");
        assert_eq!(run.what, RunTarget::Command(vec!["true".to_owned()]));
        assert_eq!(run.time_limit, Some(Duration::from_millis(1500)));
        assert!(!run.fresh && !run.trace && run.record.is_none());
    }

    #[test]
    fn invalid_request_is_refused_with_its_number() {
        assert_eq!(error("run it").0, None);
        assert_eq!(error(r#"{"script": "x"}"#).0, None);
        assert!(error(r#"{"run": 1, "script": "x", "fresch": true}"#).1.contains("fresch"));
        for wrong in [
            r#""script": "x", "command": ["x"]"#,
            r#""command": []"#,
            r#""fresh": true"#,
            r#""script": "x", "environment": {"A=B": "c"}"#,
            r#""script": "x", "environment": {"A": "\u0000"}"#,
            r#""script": "x", "trace": true"#,
            r#""script": "x", "time_limit_s": 0"#,
            r#""script": "x", "time_limit_s": -1"#,
            r#""script": "x", "time_limit_s": 1e300"#,
        ] {
            assert_eq!(error(&format!(r#"{{"run": 7, {wrong}}}"#)).0, Some(7), "{wrong}");
        }
    }
}
