//! `forebay watch`: runs commands for files that programs close. Also the options of `forebay run` for that.
//! With a parent process, assumes its lines on standard input, and stops at once when they end.

use std::ffi::OsString;
use std::io::BufRead;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use clap::Args;
use forebay_host::close_watch::WatchHandle;
use forebay_host::exit_codes::{FAILED, of_signal};
use forebay_host::files::real_path;
use forebay_host::messages::FAILURES_SHOWN;
use forebay_host::process::{EventSender, SignalGuard};
use forebay_host::threads;
use forebay_onclose::{
    CLOSED, Callbacks, CommandOptions, CommandSummary, Error, FINISH, Handler, OnClose, READY, STOP,
};
use forebay_terminal::{
    print_error, print_error_line, print_json, print_status, print_stdout, print_warning,
};

#[derive(Debug, Args)]
pub struct WatchArguments {
    /// Directories to watch, including subdirectories
    #[arg(required = true, value_name = "DIR")]
    pub directories: Vec<PathBuf>,
    /// Command for files that match PATTERN, run by sh; {} is the file; may be repeated
    #[arg(long, required = true, value_name = "PATTERN=COMMAND", value_parser = OnClose::parse)]
    pub on_close: Vec<OnClose>,
    /// Maximum number of commands at a time
    #[arg(long = "jobs", aliases = ["on-close-jobs", "at-most"], value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub at_most: u32,
    /// Number of times to repeat a failed command
    #[arg(long, alias = "on-close-retries", value_name = "K", default_value_t = 0)]
    pub retries: u32,
    /// Write the commands' output to FILE [default: standard error]
    #[arg(long, alias = "on-close-log", value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Print one JSON object about the commands
    #[arg(long)]
    pub json: bool,
    /// Started by forebay run
    #[arg(long, hide = true)]
    pub beside_job: bool,
    /// Started by a program that does itself what the commands only name
    #[arg(long, hide = true)]
    pub calls: bool,
}

impl WatchArguments {
    /// True if the parent process communicates with this one over standard input and output.
    pub fn is_started(&self) -> bool {
        self.beside_job || self.calls
    }
}

#[derive(Debug, Args)]
pub struct RunHandlingArguments {
    /// Maximum number of --on-close commands at a time
    #[arg(long = "on-close-jobs", aliases = ["jobs", "on-close-at-most"], value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024), requires = "on_close")]
    pub on_close_at_most: u32,
    /// Number of times to repeat a failed --on-close command
    #[arg(long, alias = "retries", value_name = "K", default_value_t = 0, requires = "on_close")]
    pub on_close_retries: u32,
    /// Write the output of --on-close commands to FILE [default: standard error]
    #[arg(long, alias = "log", value_name = "FILE", requires = "on_close")]
    pub on_close_log: Option<PathBuf>,
}

pub const COMMANDS: &str = "commands";

pub fn watch(arguments: &WatchArguments) -> i32 {
    match handle(arguments) {
        Ok((handled, signal)) => {
            let failed = if handled.failures.is_empty() { 0 } else { FAILED };
            let code = signal.map_or(failed, of_signal);
            if !arguments.beside_job {
                print_summary(&handled, if arguments.calls { "calls" } else { COMMANDS });
            }
            if arguments.json || arguments.is_started() {
                return print_json(&handled, code);
            }
            code
        }
        Err(error) => print_error(&format!("watch: {error}"), error.hint().as_deref(), FAILED),
    }
}

/// Returns the results of the commands, and the signal that ended this process.
fn handle(arguments: &WatchArguments) -> Result<(CommandSummary, Option<i32>), Error> {
    let caught = SignalGuard::listen()?;
    let directories = arguments.directories.iter();
    // The command may start in another directory.
    let roots = directories.map(|directory| real_path(directory)).collect::<Result<Vec<_>, _>>()?;
    let log = arguments.log.as_deref().map(std::path::absolute).transpose();
    let how = CommandOptions {
        at_most: arguments.at_most as usize,
        retries: arguments.retries,
        log: log.unwrap_or(arguments.log.clone()),
        callbacks: arguments.calls.then(|| Arc::new(Callbacks::new(print_call))),
    };
    let events = caught.watch(None)?;
    let (finish, closes) = (Arc::new(AtomicBool::new(false)), Arc::new(OnceLock::new()));
    if arguments.is_started() {
        let (finish, sender, calls) = (Arc::clone(&finish), events.sender(), how.callbacks.clone());
        let closes = Arc::clone(&closes);
        threads::spawn(move || read_control_lines(&finish, &sender, calls.as_deref(), &closes))?;
    }
    let handler = Handler::new(&arguments.on_close, &roots, &how, &print_warning);
    let ready = |handle: &WatchHandle| {
        closes.get_or_init(|| handle.clone());
        if arguments.is_started() {
            print_stdout(READY, 0);
        } else {
            for root in &roots {
                print_status(&format!("watching {}; Ctrl-C ends it", root.display()));
            }
        }
    };
    let handled = handler.watch(&events, ready, || finish.load(Ordering::SeqCst))?;
    Ok((handled, events.stops().signal()))
}

fn print_call(line: &str) {
    print_stdout(line, 0);
}

/// Reads the lines of the parent process. At end of file, the parent is gone or requests an immediate stop.
fn read_control_lines(
    finish: &AtomicBool,
    sender: &EventSender,
    calls: Option<&Callbacks>,
    closes: &OnceLock<WatchHandle>,
) {
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        match (line.as_str(), calls) {
            (FINISH, _) => {
                finish.store(true, Ordering::SeqCst);
                sender.wake();
            }
            (STOP, _) => {
                if let Some(calls) = calls {
                    calls.stop();
                }
                sender.disconnect();
            }
            (line, None) if line.starts_with(CLOSED) => {
                let path = serde_json::from_str::<OsString>(&line[CLOSED.len()..]);
                if let (Ok(path), Some(closes)) = (path, closes.get()) {
                    closes.report(path.into()).ok(); // the last look finds it
                }
            }
            (answer, Some(calls)) => {
                if let Err(wrong) = calls.answer(answer) {
                    print_warning(&wrong);
                    break;
                }
            }
            (other, None) => print_warning(&format!("{other} is not understood")),
        }
    }
    if let Some(calls) = calls {
        calls.disconnect();
    }
    sender.disconnect();
}

/// The command line of the watcher process for a job's commands; empty if there are none.
pub fn to_args(on_close: &[OnClose], handling: &RunHandlingArguments) -> Vec<OsString> {
    let mut words: Vec<OsString> = on_close
        .iter()
        .flat_map(|rule| [OsString::from("--on-close"), OsString::from(&rule.text)])
        .collect();
    if words.is_empty() {
        return words;
    }
    words.splice(0..0, ["watch".into(), "--beside-job".into()]);
    words.extend(["--at-most".into(), handling.on_close_at_most.to_string().into()]);
    words.extend(["--retries".into(), handling.on_close_retries.to_string().into()]);
    if let Some(log) = &handling.on_close_log {
        // The job may start in another directory.
        let log = std::path::absolute(log).unwrap_or_else(|_| log.clone());
        words.extend(["--log".into(), log.into()]);
    }
    words
}

/// Prints the results of the commands, or of what `what` names.
pub fn print_summary(handled: &CommandSummary, what: &str) {
    let CommandSummary { done, failed, .. } = handled;
    print_status(&format!("on close: {done} {what} succeeded, {failed} failed"));
    for pattern in &handled.unmatched {
        print_warning(&format!("on close: no file that was closed matched {pattern}"));
    }
    for (path, version, reason) in handled.failures.iter().take(FAILURES_SHOWN) {
        print_error_line(&format!("on close: {path}, version {version}: {reason}"));
    }
    if handled.failures.len() > FAILURES_SHOWN {
        print_error_line(&format!(
            "on close: and {} more",
            handled.failures.len() - FAILURES_SHOWN
        ));
    }
}
