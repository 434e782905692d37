//! Commands on close: one for each version of a matching file, as soon as its last writer has closed it.

mod callbacks;
mod queue;
mod watcher_process;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use forebay_host::close_watch::{CloseEvent, CloseWatcher, WatchHandle};
use forebay_host::process::{Ended, EventSender, Events, Group, command};
use forebay_host::{clock, files};
use parking_lot::{Condvar, Mutex};

use crate::Error;
use crate::versions::Version;
pub use callbacks::Callbacks;
use forebay_staging::Patterns;
pub use queue::CommandSummary;
use queue::Queue;
pub use watcher_process::{FINISH, READY, STOP, WatcherProcess};

/// Names the file for the command.
const FILE_VARIABLE: &str = "FOREBAY_FILE";
/// Counts its versions from 1.
const VERSION_VARIABLE: &str = "FOREBAY_VERSION";
/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(10);
/// Before the first retry; twice that before the next one, up to the other.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// One `--on-close`: `PATTERN[,PATTERN...]=COMMAND`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnClose {
    /// As it was written.
    pub text: String,
    patterns: Patterns,
    command: String,
}

impl OnClose {
    /// Reads it.
    ///
    /// # Errors
    /// What is wrong with it, in words.
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

    /// The command for a file: `{}` is its path, quoted for the shell.
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

/// How commands are run.
#[derive(Debug, Clone)]
pub struct CommandOptions {
    /// So many at a time, at least 1.
    pub at_most: usize,
    /// One that failed is run so often again.
    pub retries: u32,
    /// Where their output goes; none: to our standard error.
    pub log: Option<PathBuf>,
    /// The program that started us does what the commands only name; none: the shell runs them.
    pub callbacks: Option<Arc<Callbacks>>,
}

/// How a watch goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Watching,
    /// All that is closed by the time of this ticket, and what its commands make, is to be handled.
    Finishing {
        ticket: u64,
        closed: u64,
    },
    /// A last look through the trees.
    Last,
}

/// Commands on close over some directory trees.
pub struct Handler<'a> {
    on_close: &'a [OnClose],
    roots: &'a [PathBuf],
    options: &'a CommandOptions,
    queue: Mutex<Queue>,
    changed: Condvar,
    say: &'a (dyn Fn(&str) + Sync),
}

impl<'a> Handler<'a> {
    /// Starts nothing yet. `say` receives the failures.
    #[must_use]
    pub fn new(
        on_close: &'a [OnClose],
        roots: &'a [PathBuf],
        options: &'a CommandOptions,
        say: &'a (dyn Fn(&str) + Sync),
    ) -> Self {
        Self { on_close, roots, options, queue: Mutex::default(), changed: Condvar::new(), say }
    }

    /// Watches until we are asked to stop or `is_to_finish` says that nothing new comes, which is asked
    /// whenever the bell of the events is rung. Stopped, it begins no more commands and ends those that run;
    /// finished, it lets all come to their end.
    ///
    /// # Errors
    /// If a directory cannot be watched, or the log not be written.
    pub fn watch(
        &self,
        events: &Events,
        ready: impl FnOnce(),
        is_to_finish: impl Fn() -> bool,
    ) -> Result<CommandSummary, Error> {
        if let Some(log) = &self.options.log {
            files::open_to_append(log)?;
        }
        let roots: Vec<_> = self.roots.iter().map(PathBuf::as_path).collect();
        let closes = CloseWatcher::watch(&roots)?;
        let closing = closes.bell();
        let bell = &events.bell();
        ready();
        std::thread::scope(|scope| {
            scope.spawn(|| self.listen(closes, bell));
            for _ in 0..self.options.at_most.max(1) {
                scope.spawn(|| self.work(bell));
            }
            let mut phase = Phase::Watching;
            let finished = events.wait_until(|| self.step(&mut phase, &closing, is_to_finish()));
            self.queue.lock().stopped = true;
            self.changed.notify_all();
            if finished.is_none() {
                self.end_commands();
            }
            closing.stop().ok(); // the watch may have ended by itself
        });
        // What a command has left behind is none of the user's.
        events.kill_orphans(GRACE)?;
        Ok(self.queue.lock().summary())
    }

    /// Is all done?
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

    fn listen(&self, mut closes: CloseWatcher, bell: &EventSender) {
        loop {
            match closes.wait() {
                Ok(CloseEvent::Closed(closed)) => {
                    let root = self.roots.iter().find(|root| closed.path.starts_with(root));
                    let below = root.and_then(|root| closed.path.strip_prefix(root).ok());
                    let below = below.unwrap_or(&closed.path);
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
            bell.ring();
        }
        self.queue.lock().watch_ended = true;
        bell.ring();
    }

    fn work(&self, bell: &EventSender) {
        while let Some(version) = self.take() {
            let outcome = match files::status_of_name(&version.closed.path) {
                Err(error) if error.is_not_found() => None,
                _ => Some(self.run_with_retries(&version)),
            };
            self.queue.lock().complete(&version, outcome);
            self.changed.notify_all();
            bell.ring();
        }
    }

    fn take(&self) -> Option<Version> {
        let mut queue = self.queue.lock();
        loop {
            if queue.stopped {
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

    fn run(&self, version: &Version) -> Result<Ended, String> {
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
            queue.running.push(group.number());
            group
        };
        let waited = group.wait();
        let number = group.number();
        self.queue.lock().running.retain(|running| *running != number);
        let ended = waited.and_then(|()| group.reap()).map_err(text)?;
        self.log(&format!("{path}, version {version}: status {}", ended.shell_status()))
            .map_err(text)?;
        Ok(ended)
    }

    /// A line of ours in the log, if there is one.
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

fn succeeded(ended: Ended) -> Result<(), String> {
    match ended {
        Ended::Exit(0) => Ok(()),
        Ended::Exit(status) => Err(format!("the command ended with status {status}")),
        Ended::Signal(signal) => Err(format!("the command was ended by signal {signal}")),
    }
}
