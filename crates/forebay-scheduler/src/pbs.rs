//! PBS: `#PBS` lines and variables (qsub(1B) of PBS Professional and of Torque), and the end time
//! from qstat(1B).

use std::ffi::OsString;
use std::time::Duration;

use crate::dialect::{Dialect, Meaning as M, Options, meaning};
use crate::end_time::{EndTime, after_minutes, at};
use crate::job_facts::{Facts, Names};
use crate::quantity::{count, mixed_radix, parse_hms};
use crate::scheduler_program::{parse_error, run_command};
use crate::slurm;

pub(crate) static DIALECT: Dialect = Dialect {
    options: &[
        (&["-N"], M::JobName),
        (&["-l"], M::Resources),
        (&["-d", "-w"], M::Directory),
        (&["-q"], M::Partition),
        (&["-A", "-P"], M::Account),
        (&["-o"], M::Output),
        (&["-e"], M::Error),
    ],
    split: slurm::split_option,
    time,
    time_form: "[[hours:]minutes:]seconds",
    memory_unit_bytes: 1,
};

/// Resources of the whole job. Nodes and chunks are parsed separately.
const RESOURCES: Options = &[
    (&["walltime"], M::TimeLimit),
    (&["mem"], M::Memory),
    (&["mppwidth", "procs"], M::Tasks),
    (&["mppnppn"], M::TasksPerNode),
    (&["mppdepth"], M::CpusPerTask),
];

/// Keys in a node (`nodes=`, Torque) or chunk (`select=`): its tasks, and threads for each task.
const TASKS: [&str; 2] = ["ppn", "mpiprocs"];
const THREADS: &str = "ompthreads";

fn time(text: &str) -> Option<Duration> {
    let whole = text.split('.').next()?;
    mixed_radix(whole, &[&[1], &[60, 1], &[3600, 60, 1]]).map(Duration::from_secs)
}

/// One entry of a resource list.
pub(crate) enum Resource<'a> {
    /// The same as an option with this name.
    Option(M, String, Option<&'a str>),
    /// Nodes or chunks.
    Chunks(Chunks),
    /// No effect here.
    Ignored(String),
}

/// The total of `nodes=` or `select=`.
pub(crate) struct Chunks {
    pub(crate) nodes: u32,
    pub(crate) tasks: u32,
    pub(crate) cpus_per_task: Option<u32>,
}

/// Parses a resource list: `walltime=1:00:00,nodes=2:ppn=16`.
pub(crate) fn resources(list: &str) -> Result<Vec<Resource<'_>>, String> {
    let resource = |text| {
        let (name, value) = match str::split_once(text, '=') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        let named = format!("-l {name}");
        Ok(match (name, value, meaning(RESOURCES, name)) {
            ("nodes" | "select", Some(list), _) => Resource::Chunks(chunks(&named, list)?),
            (_, _, Some(meaning)) => Resource::Option(meaning, named, value),
            _ => Resource::Ignored(format!("-l {text}")),
        })
    };
    list.split(',').map(resource).collect()
}

/// Parses parts joined by `+`, each with a factor: `2:ncpus=16:mpiprocs=16+1:ncpus=4`.
fn chunks(name: &str, list: &str) -> Result<Chunks, String> {
    let (mut nodes, mut tasks, mut cpus_per_task) = (0_u32, 0_u32, None);
    for chunk in list.split('+') {
        let (mut times, mut each) = (1, 1);
        for (place, word) in chunk.split(':').enumerate() {
            match word.split_once('=') {
                Some((key, value)) if TASKS.contains(&key) => {
                    each = count(&format!("{name}, {key}"), Some(value))?;
                }
                Some((THREADS, value)) => {
                    cpus_per_task = Some(count(&format!("{name}, {THREADS}"), Some(value))?);
                }
                // The name of a node can replace the number.
                None if place == 0 && !word.starts_with(char::is_alphabetic) => {
                    times = count(name, Some(word))?;
                }
                _ => {}
            }
        }
        nodes = nodes.saturating_add(times);
        tasks = tasks.saturating_add(times.saturating_mul(each));
    }
    Ok(Chunks { nodes, tasks, cpus_per_task })
}

/// New names for variables from the environment of `qsub`.
const FROM_SUBMISSION: [(&[&str], &str); 4] = [
    (&["PBS_O_HOME"], "HOME"),
    (&["PBS_O_LOGNAME"], "LOGNAME"),
    (&["PBS_O_PATH"], "PATH"),
    (&["PBS_O_SHELL"], "SHELL"),
];

pub(crate) fn variables(facts: &Facts, set: &mut dyn FnMut(Names)) {
    let table: &[Names] = &[
        (&["PBS_JOBID"], facts.id),
        (&["PBS_JOBNAME"], facts.name.as_ref()),
        (&["PBS_O_WORKDIR"], facts.submit_directory),
        (&["PBS_O_HOST"], facts.host.as_ref()),
        (&["PBS_QUEUE", "PBS_O_QUEUE"], facts.partition.unwrap_or("workq").as_ref()),
        (&["PBS_NODEFILE"], &facts.node_file),
        (&["PBS_NP"], facts.tasks.as_ref()),
        (&["PBS_NUM_NODES"], "1".as_ref()),
        (&["PBS_NUM_PPN"], facts.tasks.as_ref()),
        (&["PBS_NODENUM"], "0".as_ref()),
        (&["PBS_TASKNUM"], "1".as_ref()),
        (&["NCPUS"], facts.processors.as_ref()),
        (&["PBS_ENVIRONMENT"], "PBS_BATCH".as_ref()),
    ];
    table.iter().for_each(|line| set(*line));
    if let Some(threads) = &facts.cpus_per_task {
        set((&["OMP_NUM_THREADS"], threads.as_ref()));
    }
    for (names, source) in FROM_SUBMISSION {
        let value: Option<OsString> = std::env::var_os(source);
        if let Some(value) = value {
            set((names, &value));
        }
    }
}

pub(crate) fn query_end_time(
    job: &str,
    should_continue: &dyn Fn() -> bool,
) -> Result<Option<EndTime>, String> {
    let output = run_command("qstat", &["-f", job], should_continue)?;
    let value = |name: &str| {
        let of_line = |line: &'_ str| {
            let (found, value) = line.split_once(" = ")?;
            (found.trim() == name).then(|| value.trim().to_owned())
        };
        output.lines().find_map(of_line)
    };
    // Torque reports the time left; PBS Pro and OpenPBS report the limit and the start time.
    if let Some(left) = value("Walltime.Remaining").and_then(|left| left.parse().ok()) {
        return Ok(Some(after_minutes(left, "qstat")));
    }
    let Some(given) = value("Resource_List.walltime") else {
        return if output.contains("Job_Name") {
            Ok(None)
        } else {
            Err(parse_error("qstat", &output))
        };
    };
    let began = value("stime").or_else(|| value("start_time"));
    let began = began.and_then(|began| {
        let output = run_command("date", &["-d", &began, "+%s"], should_continue).ok()?;
        output.trim().parse::<f64>().ok()
    });
    match (parse_hms(&given), began) {
        (Some(seconds), Some(began)) => Ok(Some(at(began + seconds, "qstat"))),
        _ => Err(parse_error("qstat", &given)),
    }
}
