//! Runs processes in an allocation: a job's script, or the commands of a series.
//! Assumes that all descendants of the job can be found. Ends leftover processes before it returns; those
//! of other users can remain.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use forebay_cluster::{NodeHandle, Session};
use forebay_directive::AccessMode;
use forebay_engine::JobAllocation;
use forebay_host::exit_codes;
use forebay_host::process::{
    EndReason, Events, ExitStatus, Job, Orphans, WaitAction, command, start_job,
};
use forebay_host::{clock, files, system, threads, users};
use forebay_requests::SOCKET_VARIABLE;

use crate::context::{ActiveJob, JobContext};
use crate::job_spec::Output;
use crate::{Error, store_watch};
use forebay_deadline::Guard;
use forebay_onclose::{CommandSummary, DRAIN_VARIABLE, OtherNodes, WatcherProcess};
use forebay_profile::is_launcher;
use forebay_profile::{Profile, Recording};
use forebay_record::PendingUpdate;
use forebay_record::RUN_VARIABLE;
use forebay_scheduler::JobScript;

/// Set in a job without a burst buffer, whose namespaces are on the file system: settings for the one are not those
/// for the other.
const NO_BURST_BUFFER_VARIABLE: &str = "FOREBAY_NO_BURST_BUFFER";
/// Time a job has between SIGTERM and SIGKILL.
pub(crate) const JOB_GRACE: Duration = Duration::from_secs(10);
/// The same if a scheduler ends the job. Slurm's `KillWait` is 30 s by default, and stage-out needs
/// most of it.
const SCHEDULER_GRACE: Duration = Duration::from_secs(2);
/// The same for leftover processes of a job.
pub(crate) const LEFTOVER_GRACE: Duration = Duration::from_secs(2);

/// How often messages about the nodes are printed while files are staged.
const NODES_INTERVAL: Duration = Duration::from_millis(500);

/// The program to start.
#[derive(Clone, Copy)]
pub(crate) enum Program<'a> {
    /// A script, with the arguments of the specification.
    Script(&'a JobScript),
    /// A program and its arguments; not empty.
    Command(&'a [String]),
}

/// A program with its options.
pub(crate) struct Execution<'a> {
    /// The change of the job's record that the script's process commits when it starts.
    pub(crate) start_record: Option<&'a PendingUpdate>,
    pub(crate) program: Program<'a>,
    pub(crate) submit_directory: &'a Path,
    pub(crate) working_directory: &'a Path,
    /// Variables in addition to the job's.
    pub(crate) environment: &'a BTreeMap<String, String>,
    pub(crate) output: Output<'a>,
    pub(crate) time_limit: Option<Duration>,
    pub(crate) guard: Option<&'a Guard<'a>>,
    pub(crate) recording: Option<(&'a Profile, &'a Recording<'a>)>,
}

/// The result of an execution.
pub(crate) struct ExecutionResult {
    /// Exit status as a shell shows it.
    pub(crate) status: i32,
    pub(crate) seconds: f64,
    pub(crate) over_time_limit: bool,
    /// The signal that ended the first process.
    pub(crate) signal: Option<i32>,
    pub(crate) leftovers: Orphans,
}

impl<'a> Execution<'a> {
    /// The script whose header applies.
    pub(crate) fn script(&self, context: &'a JobContext) -> &'a JobScript {
        match self.program {
            Program::Script(script) => script,
            Program::Command(_) => context.spec.script,
        }
    }

    /// The launcher that the command names; its MPI is used instead of the one in PATH.
    fn launcher(&self) -> Option<&OsStr> {
        match self.program {
            Program::Script(_) => None,
            Program::Command(words) => {
                let program = words.first().map(OsStr::new);
                program.filter(|program| is_launcher(program))
            }
        }
    }
}

impl ActiveJob<'_> {
    /// Runs the program to its end, and ends its leftover processes.
    ///
    /// # Errors
    /// If the program cannot be started, or its processes can no longer be listed.
    pub(crate) fn execute(&self, execution: &Execution) -> Result<ExecutionResult, Error> {
        let context = self.context;
        let moved_before = self.events.transferred();
        let job = self.start(execution)?;
        let started = clock::now();
        let guard = execution.guard;
        let ended = self.wait(job, guard, execution.time_limit, JOB_GRACE);
        let (ended, asked) =
            ended.map_err(|error| Error::ProcessesUnknown { error, kept: None })?;
        let seconds = started.elapsed().as_secs_f64();
        self.poll_store();
        let status = status(ended, asked);
        let for_stage_out = guard.is_some_and(Guard::has_ended_job);
        let over_time_limit = asked == Some(EndReason::TimeLimit) && !for_stage_out;
        if over_time_limit {
            context.reporter.warning("the job was ended: its time limit was reached");
        }
        context.reporter.ended(&context.job_id, status, seconds);
        let leftovers = self.kill_orphans()?;
        if let Some((profile, _)) = execution.recording {
            let moved = self.events.transferred().zip(moved_before);
            profile.note_transferred(moved.map(|(now, before)| now.since(before)));
        }
        Ok(ExecutionResult {
            status,
            seconds,
            over_time_limit,
            signal: match ended {
                ExitStatus::Signal(signal) => Some(signal),
                ExitStatus::Exit(_) => None,
            },
            leftovers,
        })
    }

    /// Waits for `job` while the guard watches. `grace` applies at the limit or if the guard ends it.
    fn wait(
        &self,
        job: Job,
        guard: Option<&Guard>,
        limit: Option<Duration>,
        grace: Duration,
    ) -> forebay_host::Result<(ExitStatus, Option<EndReason>)> {
        // The clock cannot represent a longer limit, so none applies.
        let limit = limit.and_then(|limit| clock::now().checked_add(limit));
        let grace = |asked| match asked {
            // The scheduler has signalled the job's processes too, and sends SIGKILL soon.
            EndReason::Signal(_) if guard.is_some_and(Guard::is_active) => SCHEDULER_GRACE,
            EndReason::Signal(_) => JOB_GRACE,
            EndReason::TimeLimit => grace,
        };
        let look = |events: &Events| {
            let over = limit.is_some_and(|limit| limit <= clock::now());
            let end = guard.map_or(Ok(false), |guard| guard.apply_pending(events))?;
            if over || end {
                return Ok(WaitAction::End);
            }
            let next = self.poll_store();
            Ok(WaitAction::Continue(next.into_iter().chain(limit).min()))
        };
        let sender = self.events.sender();
        std::thread::scope(|scope| {
            let (ended, stop) = mpsc::channel();
            let watch = move || threads::caught(|| guard.map(|guard| guard.watch(&stop, &sender)));
            if guard.is_some()
                && let Err(error) = threads::spawn_scoped(scope, watch)
            {
                let warning = format!("the deadline is not watched: {error}");
                self.context.reporter.warning(&warning);
            }
            let waited = self.events.wait(job, grace, look);
            drop(ended);
            waited
        })
    }

    /// Looks at the space of the store. Returns when to look again; none without an allocation.
    fn poll_store(&self) -> Option<Instant> {
        self.print_node_messages();
        self.store_watch.check(self.job_allocation?.allocation.root());
        clock::now().checked_add(store_watch::INTERVAL)
    }

    /// Prints what happened on the nodes since the last look.
    pub(crate) fn print_node_messages(&self) {
        if let Some(session) = self.session {
            session.take_messages().iter().for_each(|text| self.context.reporter.warning(text));
            session.launchers().into_iter().for_each(|pid| self.events.exclude_pid(pid));
        }
    }

    /// Acts, and meanwhile prints what happens on the nodes.
    pub(crate) fn watching_nodes<T>(&self, act: impl FnOnce() -> T) -> T {
        let Some(session) = self.session else { return act() };
        let reporter = self.context.reporter;
        let acted = std::thread::scope(|scope| {
            let (ended, end) = mpsc::channel::<()>();
            let watch = move || {
                while end.recv_timeout(NODES_INTERVAL) == Err(mpsc::RecvTimeoutError::Timeout) {
                    session.take_messages().iter().for_each(|text| reporter.warning(text));
                }
            };
            if let Err(error) = threads::spawn_scoped(scope, watch) {
                reporter.warning(&format!("what happens on the nodes is shown later: {error}"));
            }
            let acted = act();
            drop(ended);
            acted
        });
        self.print_node_messages();
        acted
    }

    fn start(&self, execution: &Execution) -> Result<Job, Error> {
        let context = self.context;
        let mut process = self.command(execution)?;
        process.stdin(Stdio::null());
        match execution.output {
            Output::Inherit => {}
            Output::Error => {
                process.stdout(std::io::stderr());
            }
            Output::File(path) => {
                process.stdout(files::open_to_write(path)?);
            }
            Output::Both(path) => {
                let file = files::open_to_write(path)?;
                process.stderr(files::with_path(file.try_clone(), "open to write", path)?);
                process.stdout(file);
            }
        }
        self.prepare_environment(&mut process, execution)?;
        if let Some((profile, recording)) = execution.recording {
            let launcher = execution.launcher();
            process.envs(profile.environment(recording, launcher, context.reporter));
        }
        process.envs(execution.environment);
        if let Some(start_record) = execution.start_record {
            start_record.commit_on_exec(&mut process)?;
        }
        self.persistents.destroy_and_start(&context.owner(), || {
            context.reporter.running(&context.job_id);
            Ok(start_job(process)?)
        })
    }

    /// Sets the directory and environment of a process of the job.
    fn prepare_environment(
        &self,
        process: &mut Command,
        execution: &Execution,
    ) -> Result<(), Error> {
        let context = self.context;
        process.current_dir(execution.working_directory);
        if !context.under_scheduler {
            let launchers = context.directory.launchers();
            context.directory.add_launchers(&system::this_program()?, context.spec.shims)?;
            let start_up = context.directory.add_bash_start_up(forebay_scheduler::BASH_START_UP)?;
            process.envs(forebay_scheduler::shim_variables(&launchers, &start_up));
            process.envs(forebay_scheduler::job_variables(
                execution.script(context),
                &context.job_id,
                execution.submit_directory,
                |lines| context.directory.add_node_file(lines),
            )?);
        }
        process.env(RUN_VARIABLE, context.directory.with_outer_runs());
        if std::env::var_os("USER").is_none() {
            // Schedulers set it, containers do not. Scripts use /mnt/bb/$USER, and Forebay maps this name.
            process.env("USER", users::user_name());
        }
        // A nested job must not use the outer job's allocation.
        for (name, _) in std::env::vars_os() {
            let is_of_allocation =
                |name: &str| name.starts_with("DW_JOB_") || name.starts_with("DW_PERSISTENT_");
            if name.to_str().is_some_and(is_of_allocation) {
                process.env_remove(name);
            }
        }
        process.env_remove(NO_BURST_BUFFER_VARIABLE);
        if context.spec.store_options.pfs_directory.is_some() {
            process.env(NO_BURST_BUFFER_VARIABLE, "1");
        }
        process.env_remove(DRAIN_VARIABLE); // nor drain what is not its own
        process.env_remove(SOCKET_VARIABLE); // nor ask its Forebay
        process.envs(context.spec.variables.iter().map(|(name, value)| (name, value)));
        process.envs(self.variables());
        process.envs(self.session.into_iter().flat_map(Session::environment));
        process.envs(self.persistents.variables());
        Ok(())
    }

    /// Runs the program and the job's commands on close. The commands may finish unless Forebay was
    /// asked to stop. The summary is none without commands, or if their outcome is unknown.
    ///
    /// # Errors
    /// Errors of [`ActiveJob::execute`]. If files cannot be watched, the program is not started.
    pub(crate) fn execute_with_events(
        &self,
        execution: &Execution,
    ) -> Result<(ExecutionResult, Option<CommandSummary>), Error> {
        let (words, Some(allocated)) = (self.context.spec.on_close, self.job_allocation) else {
            return Ok((self.execute(execution)?, None));
        };
        if words.is_empty() {
            return Ok((self.execute(execution)?, None));
        }
        let mut process = command(system::this_program()?);
        self.prepare_environment(&mut process, execution)?;
        let roots = allocated.roots(&self.context.request);
        let watcher_process = WatcherProcess::start(process, words, &roots, &self.events)?;
        let (shared, nodes) = self.shared_roots(allocated);
        let others = (!shared.is_empty() && !nodes.is_empty())
            .then(|| OtherNodes::watch(nodes, "on-close", &shared, watcher_process.sink()));
        let others = others.transpose().map_err(|error| forebay_onclose::Error::Request {
            message: format!("on close: {error}"),
            hint: "see fs.inotify in sysctl: max_user_watches, max_user_instances",
        })?;
        let mut executed = self.execute(execution)?;
        if let Some(others) = others {
            others.sync();
        }
        let is_late = execution.guard.is_some_and(Guard::has_ended_job);
        let is_stopped = executed.over_time_limit || self.events.stops().count() > 0;
        let in_order = !is_late && !is_stopped;
        let handled = watcher_process.end(in_order, &self.events, |watcher_process| {
            self.wait_for_commands(watcher_process, execution, in_order, executed.seconds)
        });
        let handled = handled.map_err(|error| {
            let warning = format!("{error}; what became of the commands is not known");
            self.context.reporter.warning(&warning);
        });
        // If the watcher process was killed, its commands may still write.
        let leftovers = self.kill_orphans()?;
        let (before, after) = (&mut executed.leftovers, leftovers);
        before.found += after.found.saturating_sub(before.remaining.len());
        before.remaining = after.remaining;
        Ok((executed, handled.ok()))
    }

    /// The directories of namespaces that all nodes share, and the other nodes.
    pub(crate) fn shared_roots(
        &self,
        allocated: &JobAllocation,
    ) -> (Vec<PathBuf>, Vec<NodeHandle>) {
        let Some(session) = self.session else { return <_>::default() };
        let asked = self.context.request.job.iter().flat_map(|job| &job.access);
        let shared = asked.filter(|mode| **mode != AccessMode::Private);
        let root = |mode: &AccessMode| allocated.allocation.namespace(mode.directory());
        (shared.map(root).collect(), session.others())
    }

    /// Waits for the commands within the limits of the guard and the job. If the guard or a
    /// scheduler ended the job, the remaining time is for stage-out.
    fn wait_for_commands(
        &self,
        watcher_process: Job,
        execution: &Execution,
        in_order: bool,
        job_s: f64,
    ) -> forebay_host::Result<(ExitStatus, Option<EndReason>)> {
        let guard = execution.guard;
        guard.inspect(|guard| guard.script_has_ended());
        let has_end = guard.is_some_and(Guard::is_active);
        let grace = if has_end { SCHEDULER_GRACE } else { JOB_GRACE };
        let limit = if in_order {
            let job = Duration::from_secs_f64(job_s);
            execution.time_limit.map(|limit| limit.saturating_sub(job))
        } else {
            has_end.then_some(Duration::ZERO)
        };
        let waited = self.wait(watcher_process, guard.filter(|_| in_order), limit, grace)?;
        let for_stage_out = guard.is_some_and(Guard::has_ended_job);
        if in_order && waited.1 == Some(EndReason::TimeLimit) && !for_stage_out {
            self.context
                .reporter
                .warning("the commands on close were ended: the job's time limit was reached");
        }
        Ok(waited)
    }

    pub(crate) fn kill_orphans(&self) -> Result<Orphans, Error> {
        self.print_node_messages();
        let ended = self.events.kill_orphans(LEFTOVER_GRACE);
        let leftovers = ended.map_err(|error| Error::ProcessesUnknown { error, kept: None })?;
        if leftovers != Orphans::default() {
            self.context.reporter.leftovers(&leftovers);
        }
        Ok(leftovers)
    }

    fn command(&self, execution: &Execution) -> Result<Command, Error> {
        let context = self.context;
        match execution.program {
            Program::Script(script) => {
                let mut process = command(&script.interpreter[0]);
                process.args(&script.interpreter[1..]);
                if !context.under_scheduler {
                    process.args(forebay_scheduler::options_for_login_shell(&script.interpreter));
                }
                process.arg(context.directory.add_script(&script.path, &script.bytes)?);
                process.args(context.spec.arguments);
                Ok(process)
            }
            Program::Command(words) => {
                let (program, arguments) = words.split_first().ok_or(Error::NoCommand)?;
                let mut process = command(program);
                process.args(arguments);
                Ok(process)
            }
        }
    }

    /// Variables with the namespace paths, which end in a slash as in DataWarp.
    pub(crate) fn variables(&self) -> BTreeMap<String, std::ffi::OsString> {
        let Some((job, allocated)) = self.context.request.job.as_ref().zip(self.job_allocation)
        else {
            return BTreeMap::new();
        };
        let named = job.access.iter().map(|mode| {
            let root = allocated.allocation.namespace(mode.directory());
            (job.variable(*mode), forebay_scheduler::with_slash(&root))
        });
        named.collect()
    }
}

/// The exit status as a shell shows it, or that of timeout(1) if the time limit was reached.
pub(crate) fn status(ended: ExitStatus, asked: Option<EndReason>) -> i32 {
    match (ended, asked) {
        (_, Some(EndReason::TimeLimit)) => exit_codes::TIME_LIMIT_REACHED,
        (ExitStatus::Signal(_), Some(EndReason::Signal(signal))) => exit_codes::of_signal(signal),
        _ => ended.shell_status(),
    }
}
