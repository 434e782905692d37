//! The `srun` stand-in: its options, as far as they have a meaning on one machine.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use forebay_host::{files, machine};
use lexopt::prelude::*;

use crate::launch::launch;
use crate::messages::{fail, warn};

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
    "cpus-per-task",
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
const SHORT_WITH_VALUE: &str = "ABCFGJLMPSTWcdmpqrtwx";
const SHORT_WITH_ATTACHED_VALUE: &str = "IK";
const SHORT_FLAGS: &str = "EHOQXZjksuv";

/// What the options ask for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Step {
    tasks: Option<u32>,
    nodes: Option<u32>,
    tasks_per_node: Option<u32>,
    directory: Option<PathBuf>,
    output: Option<PathBuf>,
    error: Option<PathBuf>,
    input: Option<PathBuf>,
    exports: Vec<(String, String)>,
    label: bool,
    warnings: Vec<String>,
    program: Vec<OsString>,
}

/// `srun` of a job that runs without a scheduler.
pub fn srun(words: &[OsString]) -> i32 {
    match parse(words) {
        Ok(step) => start(&step),
        Err(error) => {
            let hint = "the options of srun that matter here: -n, -N, --ntasks-per-node, -D, -o, -e, -i, --export, -l";
            fail(&format!("srun: {error}"), Some(hint), 2)
        }
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
            Short(letter) => step.warnings.push(format!("-{letter}")),
            Long(name) => {
                step.warnings.push(format!("--{name}"));
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
            None if item == "NONE" => step.warnings.push("--export=NONE".to_owned()),
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
    for option in &step.warnings {
        warn(&format!("srun: unknown option {option} has no effect"));
    }
    let this = match machine::this_program() {
        Ok(this) => this,
        Err(error) => return fail(&error.to_string(), None, 127),
    };
    let mut options: Vec<OsString> = vec!["-n".into(), tasks(step).to_string().into()];
    if step.label {
        options.push("-l".into());
    }
    let mut program: Vec<OsString> = Vec::new();
    if !step.program.is_empty() {
        program.extend([this.into(), "__rank".into(), "--".into()]);
        program.extend(step.program.iter().cloned());
    }
    let opened = match open_all(step) {
        Ok(opened) => opened,
        Err(error) => return fail(&error.to_string(), None, 1),
    };
    launch(&options, &program, |process| {
        process.envs(step.exports.iter().cloned());
        if let Some(directory) = &step.directory {
            process.current_dir(directory);
        }
        opened.attach(process);
    })
}

/// Files that stand for the step's streams.
struct Streams {
    input: Option<std::fs::File>,
    output: Option<std::fs::File>,
    error: Option<std::fs::File>,
}

impl Streams {
    fn attach(self, process: &mut std::process::Command) {
        if let Some(file) = self.input {
            process.stdin(file);
        }
        if let Some(file) = self.output {
            process.stdout(file);
        }
        if let Some(file) = self.error {
            process.stderr(file);
        }
    }
}

fn open_all(step: &Step) -> forebay_host::Result<Streams> {
    let job = std::env::var("SLURM_JOB_ID").unwrap_or_default();
    let named = |path: &PathBuf| {
        path.to_string_lossy()
            .replace("%j", &job)
            .replace("%J", &job)
    };
    let write = |path: &PathBuf| files::open_to_write(Path::new(&named(path)));
    let output = step.output.as_ref().map(write).transpose()?;
    let error = step.error.as_ref().map(write).transpose()?;
    let input = step.input.as_deref().map(files::open_to_read).transpose()?;
    Ok(Streams {
        input,
        output,
        error,
    })
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
        assert_eq!(step.warnings, ["--what", "--ever", "-Y"]);
        assert_eq!((step.tasks, step.program), (Some(2), vec!["./x".into()]));
    }

    #[test]
    fn a_bad_number_is_an_error() {
        let words = ["-n".into(), "four".into(), "x".into()];
        let error = parse(&words).expect_err("no number").to_string();
        assert!(error.contains("four"), "{error}");
    }
}
