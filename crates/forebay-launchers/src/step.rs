//! Runs one step: several tasks of one program, for all launchers.
//! Assumes that all nodes of the job are this machine. Opens files that tasks share; a task opens its own (`%t`).

use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;

use forebay_host::exit_codes::FAILED;
use forebay_host::files::{self, Kind};
use forebay_host::system;
use forebay_scheduler::JOB_ID_VARIABLE;
use forebay_terminal::{print_error, print_stdout, print_warning};

use crate::mpi_launcher::{Launcher, check_ranks, no_program, tasks_of_the_job};
use crate::options::{Count, Dialect, Step, Symbol};
use crate::rank;

/// Runs a launcher's command line in a job without a scheduler.
pub fn launch(dialect: &Dialect, words: &[OsString]) -> i32 {
    let name = dialect.name;
    match dialect.parse(words) {
        Ok(step) => start(dialect, &step),
        Err(error) => print_error(
            &format!("{name}: {error}"),
            Some(&format!("{name} --help lists what matters here")),
            2,
        ),
    }
}

fn start(dialect: &Dialect, step: &Step) -> i32 {
    let name = dialect.name;
    for warning in &step.warnings {
        print_warning(&format!("{name}: {warning}"));
    }
    if let Some(answer) = &step.question {
        return print_stdout(answer, 0);
    }
    if step.program.is_empty() {
        return no_program(&format!("{name} -n 4 ./a.out"));
    }
    if let Some(directory) = &step.directory {
        let found = files::status(directory);
        if !found.is_ok_and(|status| status.kind == Kind::Directory) {
            let message = format!("{name}: {} is not a directory", directory.display());
            return print_error(&message, None, FAILED);
        }
    }
    let launcher = match Launcher::find() {
        Ok(launcher) => launcher,
        Err(status) => return status,
    };
    let ranks = ranks(dialect, step);
    if let Err(status) = check_ranks(ranks.to_str().and_then(|text| text.parse().ok()).unwrap_or(0))
    {
        return status;
    }
    let words = command_line(step, &launcher, ranks);
    match words.and_then(|words| Ok((words, Streams::of(dialect, step)?))) {
        Ok((words, streams)) => launcher.start(&words, |process| {
            process.envs(rank::NAMES.into_iter().zip(dialect.task_variables));
            for (name, symbol) in dialect.step_variables {
                process.env(name, value(*symbol));
            }
            process.envs(step.exports.iter().cloned());
            if let Some(cpus) = step.count(Count::CpusPerTask) {
                process.env("SLURM_CPUS_PER_TASK", cpus.to_string());
            }
            if let Some(directory) = &step.directory {
                process.current_dir(directory);
            }
            streams.attach(process);
        }),
        Err(error) => print_error(&error.to_string(), None, FAILED),
    }
}

/// The number of tasks: the step's own, else the job's.
fn ranks(dialect: &Dialect, step: &Step) -> OsString {
    let own = (dialect.tasks)(step).map(|tasks| OsString::from(tasks.to_string()));
    own.or_else(tasks_of_the_job).unwrap_or("1".into())
}

/// Options of the launcher, ourselves as the start of each task, and the program.
fn command_line(
    step: &Step,
    launcher: &Launcher,
    ranks: OsString,
) -> forebay_host::Result<Vec<OsString>> {
    let mut words: Vec<OsString> = vec!["-n".into(), ranks];
    if step.label {
        words.push(launcher.spell("-l".as_ref()).to_owned());
    }
    words.extend([system::this_program()?.into(), "__rank".into(), "--".into()]);
    words.extend(step.program.iter().cloned());
    Ok(words)
}

fn value(symbol: Symbol) -> String {
    match symbol {
        Symbol::Job => std::env::var(JOB_ID_VARIABLE).unwrap_or_default(),
        Symbol::Host => system::hostname(),
        Symbol::Node => "0".to_owned(),
        Symbol::Nodes => "1".to_owned(),
    }
}

/// The streams of a step: files shared by all tasks, and files for each task.
#[derive(Default)]
struct Streams {
    output: Option<File>,
    error: Option<File>,
    /// Files that each task opens itself.
    of_each_task: Vec<(&'static str, PathBuf)>,
}

impl Streams {
    fn of(dialect: &Dialect, step: &Step) -> forebay_host::Result<Self> {
        let named = |path: &PathBuf| {
            let mut text = path.to_string_lossy().into_owned();
            if dialect.no_file == Some(text.as_str()) {
                return PathBuf::from("/dev/null");
            }
            for (name, symbol) in dialect.symbols {
                text = text.replace(name, &value(*symbol));
            }
            PathBuf::from(text)
        };
        let mut streams = Self::default();
        if let Some(path) = &step.input {
            streams.of_each_task.push((rank::INPUT_VARIABLE, named(path)));
        }
        let output = step.output.as_ref().map(named);
        let mut error = step.error.as_ref().map(named);
        if dialect.error_follows_output {
            error = error.or_else(|| output.clone());
        }
        let [mut shared_output, mut shared_error] = [output, error];
        let ends = [
            (rank::OUTPUT_VARIABLE, &mut shared_output),
            (rank::ERROR_VARIABLE, &mut shared_error),
        ];
        for (variable, path) in ends {
            if let Some(path) = path.take_if(|path| rank::is_of_each_task(path)) {
                streams.of_each_task.push((variable, path));
            }
        }
        [streams.output, streams.error] =
            files::open_streams(shared_output.as_deref(), shared_error.as_deref())?;
        Ok(streams)
    }

    fn attach(self, process: &mut std::process::Command) {
        process.envs(self.of_each_task);
        if let Some(file) = self.output {
            process.stdout(file);
        }
        if let Some(file) = self.error {
            process.stderr(file);
        }
    }
}
