//! The process that runs commands on close while a job runs: `forebay watch`, in the job's view and environment.
//!
//! A process of its own, because `forebay run` reaps whatever ends below it. It tells on its standard output
//! that it watches, and at the end what became of the commands; a line on its standard input lets it come
//! to its end, the end of the input ends it at once. So it does not outlive us.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Read, Write};
use std::path::PathBuf;
use std::process::Command;

use forebay_host::process::{EndReason, Ended, Events, Job, start_job};

use super::CommandSummary;
use crate::Error;

/// What the process says when it watches.
pub const READY: &str = "ready";
/// Sent to the watcher when no more files will be closed.
pub const FINISH: &str = "finish";
/// Sent to the watcher when it must start nothing more.
pub const STOP: &str = "stop";

/// The process that runs the commands of one job.
pub struct WatcherProcess {
    job: Job,
    input: PipeWriter,
    output: BufReader<PipeReader>,
}

fn failed(why: impl std::fmt::Display) -> Error {
    Error::Request {
        message: format!("on close: {why}"),
        hint: "see fs.inotify in sysctl: max_user_watches, max_user_instances",
    }
}

impl WatcherProcess {
    /// Starts it, and waits until it watches.
    ///
    /// # Errors
    /// If it does not: it has said why on our standard error.
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
        Ok(Self { job, input, output })
    }

    /// Lets the commands come to their end, or ends them, and waits for it in this way.
    ///
    /// # Errors
    /// If the process was lost.
    pub fn end(
        mut self,
        finish_commands: bool,
        events: &Events,
        wait: impl FnOnce(Job) -> forebay_host::Result<(Ended, Option<EndReason>)>,
    ) -> Result<CommandSummary, Error> {
        let job = events.adopt_child(self.job);
        if finish_commands {
            // Who is gone hears nothing; that is seen below.
            writeln!(self.input, "{FINISH}").ok();
        } else {
            drop(self.input);
        }
        let reader = std::thread::spawn(move || {
            let mut text = String::new();
            self.output.read_to_string(&mut text).map(|_| text)
        });
        wait(job)?;
        let text = reader.join().map_err(|_| failed("no account came"))?;
        let text = text.map_err(failed)?;
        serde_json::from_str(&text).map_err(|_| failed("the watching process was killed"))
    }
}
