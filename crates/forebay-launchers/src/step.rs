//! Runs one step: several tasks of one program, for all launchers.
//! Assumes that all nodes of the job are this machine. Opens files that tasks share; a task opens its own (`%t`).

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::process::parent_id;
use std::path::{Path, PathBuf};

use forebay_host::exit_codes::FAILED;
use forebay_host::files::{self, Kind};
use forebay_host::system;
use forebay_terminal::{print_error, print_stdout, print_warning};

use crate::mpi_launcher::{Launcher, check_ranks, no_program, tasks_of_the_job};
use crate::options::{Count, Dialect, Step};
use crate::{rank, symbols};

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
    let takes_all_input = step.input.as_ref().is_none_or(|input| input.as_os_str() == "all");
    if dialect.broadcasts_input && takes_all_input && ranks != "1" && input_is_redirected() {
        print_warning(&format!(
            "{name}: standard input reaches rank 0 only; --input FILE gives all tasks a file"
        ));
    }
    let words = command_line(step, &launcher, ranks);
    match words.and_then(|words| Ok((words, Streams::of(dialect, step)?))) {
        Ok((words, streams)) => launcher.start(&words, |process| {
            process.envs(rank::NAMES.into_iter().zip(dialect.task_variables));
            for (name, symbol) in dialect.step_variables {
                process.env(name, symbols::value(*symbol));
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

/// Whether the script gives this launcher a standard input of its own.
fn input_is_redirected() -> bool {
    let input_of =
        |process: u32| files::read_link(Path::new(&format!("/proc/{process}/fd/0"))).ok();
    let own = input_of(std::process::id());
    own.is_some_and(|own| own != Path::new("/dev/null") && Some(own) != input_of(parent_id()))
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
        let named = |path: &PathBuf| match dialect.no_file {
            Some(name) if path.as_os_str() == name => Some(PathBuf::from("/dev/null")),
            Some(_) if path.as_os_str() == "all" => None,
            _ => Some(symbols::replaced(dialect, path)),
        };
        let mut streams = Self::default();
        let of_first_rank = |path: &&PathBuf| dialect.no_file.is_some() && path.as_os_str() == "0";
        let input = step.input.as_ref().filter(|path| !of_first_rank(path));
        if let Some(path) = input.and_then(named) {
            streams.of_each_task.push((rank::INPUT_VARIABLE, path));
        }
        let output = step.output.as_ref().and_then(named);
        let mut error = step.error.as_ref().and_then(named);
        if dialect.error_follows_output && step.error.is_none() {
            error = output.clone();
        }
        let [mut shared_output, mut shared_error] = [output, error];
        let ends = [
            (rank::OUTPUT_VARIABLE, &mut shared_output),
            (rank::ERROR_VARIABLE, &mut shared_error),
        ];
        for (variable, path) in ends {
            if let Some(path) = path.take_if(|path| symbols::is_of_each_task(path)) {
                streams.of_each_task.push((variable, path));
            }
        }
        let [output, error] =
            [shared_output, shared_error].map(|path| path.map(|path| symbols::of_rank(&path, "")));
        [streams.output, streams.error] = files::open_streams(output.as_deref(), error.as_deref())?;
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
