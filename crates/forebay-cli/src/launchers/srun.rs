//! The `srun` stand-in: its options, as far as they have a meaning on one machine.

use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;

use forebay_host::files::{self, Kind};
use forebay_host::machine;
use lexopt::prelude::*;

use super::{Launcher, no_program, rank};
use crate::messages::{data, fail, warn};

/// Options with a value that mean nothing on one machine without a scheduler: placement, limits,
/// accounting (srun(1) of Slurm 22.05).
const WITH_VALUE: &[&str] = &[
    "account",
    "accel-bind",
    "acctg-freq",
    "bb",
    "bbf",
    "bcast",
    "cluster-constraint",
    "comment",
    "compress",
    "constraint",
    "core-spec",
    "cores-per-socket",
    "cpu-bind",
    "cpu-freq",
    "cpu_bind",
    "cpus-per-gpu",
    "deadline",
    "delay-boot",
    "dependency",
    "distribution",
    "exclude",
    "extra-node-info",
    "gpu-bind",
    "gpu-freq",
    "gpus",
    "gpus-per-node",
    "gpus-per-socket",
    "gpus-per-task",
    "gres",
    "gres-flags",
    "het-group",
    "hint",
    "job-name",
    "licenses",
    "mail-type",
    "mail-user",
    "max-threads",
    "mcs-label",
    "mem",
    "mem-bind",
    "mem_bind",
    "mem-per-cpu",
    "mem-per-gpu",
    "mincpus",
    "mpi",
    "msg-timeout",
    "network",
    "nodefile",
    "nodelist",
    "ntasks-per-core",
    "ntasks-per-gpu",
    "ntasks-per-socket",
    "open-mode",
    "partition",
    "power",
    "priority",
    "profile",
    "prolog",
    "epilog",
    "propagate",
    "qos",
    "relative",
    "reservation",
    "slurmd-debug",
    "sockets-per-node",
    "switches",
    "task-epilog",
    "task-prolog",
    "thread-spec",
    "threads",
    "threads-per-core",
    "time",
    "time-min",
    "tmp",
    "wait",
    "wckey",
];
/// The same without a value, or with one behind `=` only.
const FLAGS: &[&str] = &[
    "contiguous",
    "immediate",
    "kill-on-bad-exit",
    "nice",
    "disable-status",
    "exact",
    "exclusive",
    "hold",
    "interactive",
    "join",
    "no-allocate",
    "no-kill",
    "no-shell",
    "overcommit",
    "overlap",
    "oversubscribe",
    "preserve-env",
    "quiet",
    "quit-on-interrupt",
    "reboot",
    "share",
    "spread-job",
    "unbuffered",
    "use-min-nodes",
    "verbose",
    "whole",
];
const SHORT_WITH_VALUE: &str = "ABCFGJLMPSTWdmpqrtwx";
const SHORT_WITH_ATTACHED_VALUE: &str = "IK";
const SHORT_FLAGS: &str = "EHOQXZjksuv";

const VERSION: &str = concat!("srun of forebay ", env!("CARGO_PKG_VERSION"));
const USAGE: &str = "\
usage: srun [OPTION...] PROGRAM [ARGUMENT...]
Stands in for Slurm's srun in a job that runs without a scheduler. Options that matter here:
  -n, --ntasks N         number of tasks [default: that of the job]
  -N, --nodes N, --ntasks-per-node N
  -c, --cpus-per-task N  sets SLURM_CPUS_PER_TASK
  -D, --chdir DIR        -o, --output FILE   -e, --error FILE   -i, --input FILE
  --export ALL,NAME=VALUE                    -l, --label
Placement and limits have no effect on one machine; unknown options are named.
example: srun -n 4 ./a.out";

/// What the options ask for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Step {
    tasks: Option<u32>,
    nodes: Option<u32>,
    tasks_per_node: Option<u32>,
    cpus_per_task: Option<u32>,
    directory: Option<PathBuf>,
    output: Option<PathBuf>,
    error: Option<PathBuf>,
    input: Option<PathBuf>,
    exports: Vec<(String, String)>,
    label: bool,
    /// What to say instead of starting anything.
    question: Option<&'static str>,
    warnings: Vec<String>,
    program: Vec<OsString>,
}

/// `srun` of a job that runs without a scheduler.
pub fn srun(words: &[OsString]) -> i32 {
    match parse(words) {
        Ok(step) => start(&step),
        Err(error) => fail(
            &format!("srun: {error}"),
            Some("srun --help lists what matters here"),
            2,
        ),
    }
}

fn parse(words: &[OsString]) -> Result<Step, lexopt::Error> {
    let mut step = Step::default();
    let mut parser = lexopt::Parser::from_args(words);
    while let Some(argument) = parser.next()? {
        match argument {
            Short('n') | Long("ntasks") => step.tasks = Some(parser.value()?.parse()?),
            Short('N') | Long("nodes") => {
                let range = parser.value()?.string()?;
                let least = range.split('-').next().unwrap_or_default();
                step.nodes = Some(OsString::from(least).parse()?);
            }
            Long("ntasks-per-node") => step.tasks_per_node = Some(parser.value()?.parse()?),
            Short('c') | Long("cpus-per-task") => {
                step.cpus_per_task = Some(parser.value()?.parse()?);
            }
            Short('V') | Long("version") => step.question = Some(VERSION),
            Short('h') | Long("help" | "usage") => step.question = Some(USAGE),
            Short('D') | Long("chdir") => step.directory = Some(parser.value()?.into()),
            Short('o') | Long("output") => step.output = Some(parser.value()?.into()),
            Short('e') | Long("error") => step.error = Some(parser.value()?.into()),
            Short('i') | Long("input") => step.input = Some(parser.value()?.into()),
            Long("export") => take_exports(&mut step, &parser.value()?.string()?),
            Short('l') | Long("label") => step.label = true,
            Long("multi-prog") => return Err("--multi-prog is not supported".into()),
            Value(program) => {
                step.program.push(program);
                step.program.extend(parser.raw_args()?);
                return Ok(step);
            }
            Short(letter) if SHORT_WITH_VALUE.contains(letter) => {
                parser.value()?;
            }
            Short(letter) if SHORT_WITH_ATTACHED_VALUE.contains(letter) => {
                parser.optional_value();
            }
            Short(letter) if SHORT_FLAGS.contains(letter) => {}
            Long(name) if WITH_VALUE.contains(&name) => {
                parser.value()?;
            }
            Long(name) if FLAGS.contains(&name) => {
                parser.optional_value();
            }
            Short(letter) => step
                .warnings
                .push(format!("unknown option -{letter} has no effect")),
            Long(name) => {
                step.warnings
                    .push(format!("unknown option --{name} has no effect"));
                parser.optional_value();
            }
        }
    }
    Ok(step)
}

/// `ALL,NAME=value`. What is not exported is left out by the real srun only with `NONE`.
fn take_exports(step: &mut Step, list: &str) {
    for item in list.split(',') {
        match item.split_once('=') {
            Some((name, value)) => step.exports.push((name.to_owned(), value.to_owned())),
            None if item == "NONE" => {
                step.warnings
                    .push("--export=NONE is not honoured: the job's environment stays".into());
            }
            None => {}
        }
    }
}

/// Tasks of the step: its own options, else the job's (srun(1), option --ntasks).
fn tasks(step: &Step) -> u32 {
    let of_the_job = || std::env::var("SLURM_NTASKS").ok()?.parse().ok();
    let per_node = step
        .tasks_per_node
        .map(|n| n.saturating_mul(step.nodes.unwrap_or(1)));
    step.tasks.or(per_node).or_else(of_the_job).unwrap_or(1)
}

fn start(step: &Step) -> i32 {
    for warning in &step.warnings {
        warn(&format!("srun: {warning}"));
    }
    if let Some(answer) = step.question {
        return data(answer, 0);
    }
    if step.program.is_empty() {
        return no_program("srun -n 4 ./a.out");
    }
    if let Some(directory) = &step.directory {
        let found = files::status(directory);
        if !found.is_ok_and(|status| status.kind == Kind::Directory) {
            let message = format!("srun: --chdir={} is not a directory", directory.display());
            return fail(&message, None, 1);
        }
    }
    let launcher = match Launcher::find() {
        Ok(launcher) => launcher,
        Err(status) => return status,
    };
    match command_line(step, &launcher).and_then(|words| Ok((words, Streams::of(step)?))) {
        Ok((words, streams)) => launcher.start(&words, |process| {
            process.envs(step.exports.iter().cloned());
            if let Some(cpus) = step.cpus_per_task {
                process.env("SLURM_CPUS_PER_TASK", cpus.to_string());
            }
            if let Some(directory) = &step.directory {
                process.current_dir(directory);
            }
            streams.attach(process);
        }),
        Err(error) => fail(&error.to_string(), None, 1),
    }
}

/// Options of the launcher, ourselves as the start of each task, and the program.
fn command_line(step: &Step, launcher: &Launcher) -> forebay_host::Result<Vec<OsString>> {
    let mut words: Vec<OsString> = vec!["-n".into(), tasks(step).to_string().into()];
    if step.label {
        words.push(launcher.spell("-l".as_ref()).to_owned());
    }
    words.extend([
        machine::this_program()?.into(),
        "__rank".into(),
        "--".into(),
    ]);
    words.extend(step.program.iter().cloned());
    Ok(words)
}

/// The step's streams: files for all tasks together, and for each of them.
#[derive(Default)]
struct Streams {
    output: Option<File>,
    error: Option<File>,
    /// What each task opens for itself.
    of_each_task: Vec<(&'static str, PathBuf)>,
}

impl Streams {
    fn of(step: &Step) -> forebay_host::Result<Self> {
        let job = std::env::var("SLURM_JOB_ID").unwrap_or_default();
        let named = |path: &PathBuf| {
            let text = path.to_string_lossy();
            if text == "none" {
                return PathBuf::from("/dev/null");
            }
            let text = text.replace("%j", &job).replace("%J", &job);
            PathBuf::from(text.replace("%N", &machine::hostname()))
        };
        let mut streams = Self::default();
        if let Some(path) = &step.input {
            streams
                .of_each_task
                .push((rank::INPUT_VARIABLE, named(path)));
        }
        let output = step.output.as_ref().map(named);
        // Without a file of its own, standard error goes where standard output goes.
        let error = step.error.as_ref().map(named).or_else(|| output.clone());
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

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Step {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        parse(&words).expect(line)
    }

    #[test]
    fn what_matters_is_taken_and_the_program_keeps_its_own_options() {
        let step =
            parsed("-n 1024 --hint=nomultithread -c4 -K1 -lu --cpu_bind=cores ./btio -n deck");
        assert_eq!(step.tasks, Some(1024));
        assert!(step.label);
        assert_eq!(step.program, ["./btio", "-n", "deck"]);
        assert_eq!(step.warnings, [""; 0]);
        let step = parsed("--nodes=2-4 --ntasks-per-node 3 --export=ALL,A=b -D /tmp -o out.%j x");
        assert_eq!(tasks(&step), 6);
        assert_eq!(step.exports, [("A".to_owned(), "b".to_owned())]);
        assert_eq!(step.output, Some("out.%j".into()));
    }

    #[test]
    fn unknown_options_are_named() {
        let step = parsed("--what=3 --ever -Y -n 2 ./x");
        let named: Vec<_> = step.warnings.iter().map(|w| w.split(' ').nth(2)).collect();
        assert_eq!(named, [Some("--what"), Some("--ever"), Some("-Y")]);
        assert_eq!((step.tasks, step.program), (Some(2), vec!["./x".into()]));
    }

    #[test]
    fn a_bad_number_is_an_error() {
        let words = ["-n".into(), "four".into(), "x".into()];
        let error = parse(&words).expect_err("no number").to_string();
        assert!(error.contains("four"), "{error}");
    }
}
