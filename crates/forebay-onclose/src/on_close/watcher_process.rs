//! The process `forebay watch`: runs commands on close during a job, in the job's environment.
//!
//! It is separate because `forebay run` reaps all its descendants. It prints `READY` when it
//! watches and a summary at the end. A line on standard input lets it finish the commands, the end
//! of the input ends it at once.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use forebay_host::process::{EndReason, Events, ExitStatus, Job, start_job};
use forebay_host::threads;

use parking_lot::Mutex;

use super::CommandSummary;
use crate::Error;

/// The line that the process prints when it watches.
pub const READY: &str = "ready";
/// Sent to the process when no more files will be closed.
pub const FINISH: &str = "finish";
/// Sent to the process before the path, as JSON, of a file that another node closed or of a directory that it made.
pub const CLOSED: &str = "closed ";
/// Sent to the process when it must start no more commands.
pub const STOP: &str = "stop";

/// The process that runs the commands of one job.
pub struct WatcherProcess {
    job: Job,
    input: Arc<Mutex<Option<PipeWriter>>>,
    output: BufReader<PipeReader>,
}

fn failed(why: impl std::fmt::Display) -> Error {
    Error::Request {
        message: format!("on close: {why}"),
        hint: "see fs.inotify in sysctl: max_user_watches, max_user_instances",
    }
}

impl WatcherProcess {
    /// Starts the process and waits until it watches.
    ///
    /// # Errors
    /// If it cannot watch. It has printed the reason on standard error.
    pub fn start(
        mut process: Command,
        arguments: &[OsString],
        roots: &[PathBuf],
        events: &Events,
    ) -> Result<Self, Error> {
        let (theirs, input) = std::io::pipe().map_err(failed)?;
        let (output, their_output) = std::io::pipe().map_err(failed)?;
        process.args(arguments).arg("--").args(roots);
        process.stdin(theirs).stdout(their_output);
        let job = start_job(process)?;
        events.exclude_child(job);
        let mut output = BufReader::new(output);
        let mut line = String::new();
        output.read_line(&mut line).map_err(failed)?;
        if line.trim_end() != READY {
            return Err(failed("nothing can be watched"));
        }
        Ok(Self { job, input: Arc::new(Mutex::new(Some(input))), output })
    }

    /// Tells the process of files that other nodes closed.
    pub fn sink(&self) -> Box<dyn Fn(&Path) + Send + Sync> {
        let input = Arc::clone(&self.input);
        Box::new(move |path: &Path| {
            let Ok(path) = serde_json::to_string(path.as_os_str()) else { return };
            // If the process has ended, its summary is missing.
            input.lock().as_mut().map(|input| writeln!(input, "{CLOSED}{path}").ok());
        })
    }

    /// Lets the commands complete or ends them. `wait` waits for the end of the process.
    ///
    /// # Errors
    /// If the process was killed.
    pub fn end(
        self,
        finish_commands: bool,
        events: &Events,
        wait: impl FnOnce(Job) -> forebay_host::Result<(ExitStatus, Option<EndReason>)>,
    ) -> Result<CommandSummary, Error> {
        let job = events.adopt_child(self.job);
        if finish_commands {
            // If the process has ended, the parse of its summary below fails.
            self.input.lock().as_mut().map(|input| writeln!(input, "{FINISH}").ok());
        } else {
            self.input.lock().take();
        }
        let output = Arc::new(Mutex::new(self.output));
        let read = |output: &Mutex<BufReader<PipeReader>>| {
            let mut text = String::new();
            output.lock().read_to_string(&mut text).map(|_| text)
        };
        let theirs = Arc::clone(&output);
        let text = match threads::spawn(move || read(&theirs)) {
            Ok(reader) => {
                wait(job)?;
                reader.join().map_err(|_| failed("no account came"))?
            }
            // Without a thread, its account is read to its end, which is the end of the process.
            Err(_) => {
                let text = read(&output);
                wait(job)?;
                text
            }
        };
        let text = text.map_err(failed)?;
        serde_json::from_str(&text).map_err(|_| failed("the watching process was killed"))
    }
}
