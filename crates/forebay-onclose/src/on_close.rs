//! Commands on close: one for each version of a matching file, run when its last writer has closed it.
//! Assumes a process without other children: those that are left at the end are killed. After a stop, no command
//! starts.

mod callbacks;
mod queue;
mod watcher_process;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use forebay_host::close_watch::{CloseEvent, CloseWatcher, WatchHandle};
use forebay_host::process::{EventSender, Events, ExitStatus, Group, command};
use forebay_host::{clock, files, threads};
use parking_lot::{Condvar, Mutex};

use crate::Error;
use crate::versions::Version;
pub use callbacks::Callbacks;
use forebay_staging::{Pattern, Patterns};
pub use queue::CommandSummary;
use queue::Queue;
pub use watcher_process::{CLOSED, FINISH, READY, STOP, WatcherProcess};

/// The environment variable with the path of the file.
const FILE_VARIABLE: &str = "FOREBAY_FILE";
/// The environment variable with the number of the version, counted from 1.
const VERSION_VARIABLE: &str = "FOREBAY_VERSION";
/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(10);
/// The pause before the first retry. It doubles for each further retry, up to `LONGEST_PAUSE`.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// One `--on-close`: `PATTERN[,PATTERN...]=COMMAND`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnClose {
    /// The text of the option.
    pub text: String,
    patterns: Patterns,
    command: String,
}

impl OnClose {
    /// Parses the text of the option.
    ///
    /// # Errors
    /// Describes what is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let form = "write 'PATTERN[,PATTERN...]=COMMAND'";
        let (patterns, command) = text.split_once('=').ok_or(form)?;
        if command.trim().is_empty() {
            return Err(format!("there is no command; {form}"));
        }
        Ok(Self {
            text: text.to_owned(),
            patterns: Patterns::parse(patterns).map_err(|error| format!("{error}; {form}"))?,
            command: command.to_owned(),
        })
    }

    /// The command for a file: `{}` is replaced by the path, quoted for the shell.
    fn command_for(&self, path: &Path) -> Result<String, String> {
        if !self.command.contains("{}") {
            return Ok(self.command.clone());
        }
        let text = path.to_str();
        let text = text
            .ok_or("its name is not UTF-8: let the command use \"$FOREBAY_FILE\" instead of {}")?;
        let quoted = shlex::try_quote(text).map_err(|error| error.to_string())?;
        Ok(self.command.replace("{}", &quoted))
    }
}

/// How Forebay runs commands.
#[derive(Debug, Clone)]
pub struct CommandOptions {
    /// The number of commands that run at the same time, at least 1.
    pub at_most: usize,
    /// How often a failed command is retried.
    pub retries: u32,
    /// The file for the output of the commands; none: standard error.
    pub log: Option<PathBuf>,
    /// Calls functions of the program that started Forebay; none: the shell runs the commands.
    pub callbacks: Option<Arc<Callbacks>>,
}

/// The phase of a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Watching,
    /// Handles the files closed before this ticket and those that their commands create.
    Finishing {
        ticket: u64,
        closed: u64,
    },
    /// Scans the directory trees once more.
    Last,
}

/// Runs commands on close for some directory trees.
pub struct Handler<'a> {
    on_close: &'a [OnClose],
    roots: &'a [PathBuf],
    options: &'a CommandOptions,
    queue: Mutex<Queue>,
    changed: Condvar,
    /// Patterns that no closed file has matched so far.
    unmatched: Mutex<Vec<Pattern>>,
    say: &'a (dyn Fn(&str) + Sync),
}

impl<'a> Handler<'a> {
    /// Starts nothing yet. `say` receives messages about failures.
    #[must_use]
    pub fn new(
        on_close: &'a [OnClose],
        roots: &'a [PathBuf],
        options: &'a CommandOptions,
        say: &'a (dyn Fn(&str) + Sync),
    ) -> Self {
        let patterns = on_close.iter().flat_map(|on_close| on_close.patterns.all());
        Self {
            on_close,
            roots,
            options,
            queue: Mutex::default(),
            changed: Condvar::new(),
            unmatched: Mutex::new(patterns.cloned().collect()),
            say,
        }
    }

    /// Watches until a stop request or until `is_to_finish` returns true. Each event of
    /// `events` calls `is_to_finish`. After a stop request, Forebay starts no more commands and
    /// ends the running ones. Otherwise it waits until all commands have completed.
    ///
    /// # Errors
    /// If a directory cannot be watched or the log cannot be written.
    pub fn watch(
        &self,
        events: &Events,
        ready: impl FnOnce(&WatchHandle),
        is_to_finish: impl Fn() -> bool,
    ) -> Result<CommandSummary, Error> {
        if let Some(log) = &self.options.log {
            files::open_to_append(log)?;
        }
        let roots: Vec<_> = self.roots.iter().map(PathBuf::as_path).collect();
        let closes = CloseWatcher::watch(&roots)?;
        let closing = closes.handle();
        let sender = &events.sender();
        std::thread::scope(|scope| -> Result<(), Error> {
            threads::spawn_scoped(scope, || self.listen(closes, sender))?;
            if let Err(error) = threads::spawn_scoped(scope, || self.work(sender)) {
                closing.stop().ok(); // the watch may have ended by itself
                return Err(error.into());
            }
            // With fewer threads, fewer commands run at the same time.
            let more = |_: &usize| threads::spawn_scoped(scope, || self.work(sender)).is_ok();
            (1..self.options.at_most).take_while(more).count();
            ready(&closing);
            let mut phase = Phase::Watching;
            let finished = events.wait_until(|| self.step(&mut phase, &closing, is_to_finish()));
            self.queue.lock().stopped = true;
            self.changed.notify_all();
            if finished.is_none() {
                self.end_commands();
            }
            closing.stop().ok(); // the watch may have ended by itself
            Ok(())
        })?;
        // Processes that a command left running are not the user's, so they are killed.
        events.kill_orphans(GRACE)?;
        let mut summary = self.queue.lock().summary();
        let unmatched = self.unmatched.lock();
        summary.unmatched = unmatched.iter().map(|pattern| pattern.as_str().to_owned()).collect();
        Ok(summary)
    }

    /// Advances the phase. Returns a value when everything is done.
    fn step(&self, phase: &mut Phase, closing: &WatchHandle, finish: bool) -> Option<()> {
        let queue = self.queue.lock();
        if queue.watch_ended && queue.is_idle() {
            return Some(());
        }
        let finishing = || {
            let ticket = closing.request_ticket().unwrap_or(0);
            let closed = queue.closed();
            Phase::Finishing { ticket, closed }
        };
        match *phase {
            Phase::Watching if finish => *phase = finishing(),
            Phase::Finishing { ticket, closed } if queue.synced_to >= ticket && queue.is_idle() => {
                if queue.closed() == closed {
                    *phase = Phase::Last;
                    closing.finish().ok(); // it may have ended by itself
                } else {
                    *phase = finishing();
                }
            }
            Phase::Watching | Phase::Finishing { .. } | Phase::Last => {}
        }
        None
    }

    fn listen(&self, closes: CloseWatcher, sender: &EventSender) {
        if threads::caught(|| self.queue_closed(closes, sender)).is_none() {
            (self.say)("nothing is watched any more: its thread ended unexpectedly");
        }
        self.queue.lock().watch_ended = true;
        sender.wake();
    }

    fn queue_closed(&self, mut closes: CloseWatcher, sender: &EventSender) {
        loop {
            match closes.wait() {
                Ok(CloseEvent::Closed(closed)) => {
                    let root = self.roots.iter().find(|root| closed.path.starts_with(root));
                    let below = root.and_then(|root| closed.path.strip_prefix(root).ok());
                    let below = below.unwrap_or(&closed.path);
                    self.unmatched.lock().retain(|pattern| !pattern.is_for(below));
                    let rules = self.on_close.iter().enumerate();
                    for (rule, _) in rules.filter(|(_, on_close)| on_close.patterns.are_for(below))
                    {
                        let closed = closed.clone();
                        self.queue.lock().add(Version { rule, closed });
                    }
                }
                Ok(CloseEvent::Drained(ticket)) => self.queue.lock().synced_to = ticket,
                Ok(CloseEvent::Unseen(error)) => {
                    (self.say)(&format!("{error}: what is closed there is seen at the end"));
                }
                Ok(CloseEvent::NoLease(error)) => (self.say)(&format!(
                    "{error}: a file counts as closed when one of its writers has closed it"
                )),
                Ok(CloseEvent::End) => break,
                Err(error) => {
                    (self.say)(&error.to_string());
                    break;
                }
            }
            self.changed.notify_all();
            sender.wake();
        }
    }

    fn work(&self, sender: &EventSender) {
        while let Some(version) = self.take() {
            let run = || match files::status_of_name(&version.closed.path) {
                Err(error) if error.is_not_found() => None,
                _ => Some(self.run_with_retries(&version)),
            };
            let failed = || Some(Err("its thread ended unexpectedly".to_owned()));
            let outcome = threads::caught(run).unwrap_or_else(failed);
            self.queue.lock().complete(&version, outcome);
            self.changed.notify_all();
            sender.wake();
        }
    }

    fn take(&self) -> Option<Version> {
        let are_stopped = |callbacks: &Arc<Callbacks>| callbacks.is_stopped();
        let mut queue = self.queue.lock();
        loop {
            if queue.stopped || self.options.callbacks.as_ref().is_some_and(are_stopped) {
                return None;
            }
            if let Some(version) = queue.take() {
                return Some(version);
            }
            self.changed.wait(&mut queue);
        }
    }

    fn run_with_retries(&self, version: &Version) -> Result<(), String> {
        let mut pause = FIRST_PAUSE;
        let mut tries_left = self.options.retries;
        loop {
            let attempt = match &self.options.callbacks {
                Some(callbacks) => self.call(callbacks, version),
                None => self.run(version).and_then(succeeded),
            };
            let Err(reason) = attempt else {
                return Ok(());
            };
            if tries_left == 0 {
                return Err(reason);
            }
            tries_left -= 1;
            let mut queue = self.queue.lock();
            let goes_on = |queue: &mut Queue| !queue.stopped;
            self.changed.wait_while_for(&mut queue, goes_on, pause);
            if queue.stopped {
                return Err(reason);
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    fn call(&self, callbacks: &Callbacks, version: &Version) -> Result<(), String> {
        let text = |error: forebay_host::Error| error.to_string();
        let name = &self.on_close[version.rule].command;
        let closed = &version.closed;
        let of = format!("{}, version {}: {name}", closed.path.display(), closed.version);
        self.log(&of).map_err(text)?;
        let Err((reason, traceback)) = callbacks.call(version) else {
            return self.log(&format!("{of} returned")).map_err(text);
        };
        match (traceback, &self.options.log) {
            (Some(traceback), Some(_)) => {
                self.log(&format!("{of} failed\n{traceback}")).map_err(text)?;
            }
            (Some(traceback), None) => (self.say)(&format!("{of} failed\n{traceback}")),
            (None, _) => self.log(&format!("{of} failed: {reason}")).map_err(text)?,
        }
        Err(reason)
    }

    fn run(&self, version: &Version) -> Result<ExitStatus, String> {
        let text = |error: forebay_host::Error| error.to_string();
        let shell_text = self.on_close[version.rule].command_for(&version.closed.path)?;
        let mut shell = command("/bin/sh");
        shell.args(["-c", &shell_text]).stdin(Stdio::null());
        shell.env(FILE_VARIABLE, &version.closed.path);
        shell.env(VERSION_VARIABLE, version.closed.version.to_string());
        let (path, version) = (version.closed.path.display(), version.closed.version);
        self.log(&format!("{path}, version {version}: {shell_text}")).map_err(text)?;
        match &self.options.log {
            Some(log) => {
                let file = files::open_to_append(log).map_err(text)?;
                shell.stderr(file.try_clone().map_err(|error| error.to_string())?);
                shell.stdout(file);
            }
            None => {
                shell.stdout(std::io::stderr());
            }
        }
        let group = {
            let mut queue = self.queue.lock();
            if queue.stopped {
                return Err("it was not begun: we were to stop".to_owned());
            }
            let group = Group::start(shell).map_err(text)?;
            queue.running.push(group.process_group_id());
            group
        };
        let waited = group.wait();
        let number = group.process_group_id();
        self.queue.lock().running.retain(|running| *running != number);
        let ended = waited.and_then(|()| group.reap()).map_err(text)?;
        self.log(&format!("{path}, version {version}: status {}", ended.shell_status()))
            .map_err(text)?;
        Ok(ended)
    }

    /// Writes a line to the log, if there is one.
    fn log(&self, line: &str) -> forebay_host::Result<()> {
        let Some(path) = &self.options.log else {
            return Ok(());
        };
        let mut file = files::open_to_append(path)?;
        files::with_path(file.write_all(format!("== {line}\n").as_bytes()), "write", path)
    }

    fn end_commands(&self) {
        let began = clock::now();
        self.queue.lock().running.iter().for_each(|group| group.end(false));
        let mut queue = self.queue.lock();
        while !queue.running.is_empty() {
            let left = GRACE.saturating_sub(began.elapsed());
            if left.is_zero() {
                queue.running.iter().for_each(|group| group.end(true));
            }
            let step = left.max(Duration::from_millis(100));
            self.changed.wait_for(&mut queue, step);
        }
    }
}

fn succeeded(ended: ExitStatus) -> Result<(), String> {
    match ended {
        ExitStatus::Exit(0) => Ok(()),
        ExitStatus::Exit(status) => Err(format!("the command ended with status {status}")),
        ExitStatus::Signal(signal) => Err(format!("the command was ended by signal {signal}")),
    }
}
