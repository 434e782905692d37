//! `#PBS` (qsub(1B) of PBS Professional and of Torque).

use std::time::Duration;

use super::dialect::{Dialect, Meaning as M, Options, meaning};
use super::quantity::{count, mixed_radix};
use super::{Header, slurm};

pub(super) static DIALECT: Dialect = Dialect {
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

/// Resources of the whole job; those of nodes and chunks are read apart.
const RESOURCES: Options = &[
    (&["walltime"], M::TimeLimit),
    (&["mem"], M::Memory),
    (&["mppwidth", "procs"], M::Tasks),
    (&["mppnppn"], M::TasksPerNode),
    (&["mppdepth"], M::CpusPerTask),
];

/// What a node (`nodes=`, Torque) or chunk (`select=`) has: its tasks, its threads for each.
const TASKS: [&str; 2] = ["ppn", "mpiprocs"];
const THREADS: &str = "ompthreads";

fn time(text: &str) -> Option<Duration> {
    let whole = text.split('.').next()?;
    mixed_radix(whole, &[&[1], &[60, 1], &[3600, 60, 1]]).map(Duration::from_secs)
}

impl Header {
    /// `walltime=1:00:00,nodes=2:ppn=16`.
    pub(super) fn take_resources(&mut self, dialect: &Dialect, list: &str) -> Result<(), String> {
        for resource in list.split(',') {
            let (name, value) = match resource.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (resource, None),
            };
            let named = format!("-l {name}");
            match (name, value, meaning(RESOURCES, name)) {
                ("nodes" | "select", Some(chunks), _) => self.take_chunks(&named, chunks)?,
                (_, _, Some(meaning)) => self.take(dialect, meaning, &named, value)?,
                _ => self.ignored_options.push(format!("-l {resource}")),
            }
        }
        Ok(())
    }

    /// `2:ncpus=16:mpiprocs=16+1:ncpus=4`: parts joined by `+`, each so many times.
    fn take_chunks(&mut self, name: &str, chunks: &str) -> Result<(), String> {
        let (mut nodes, mut tasks) = (0_u32, 0_u32);
        for chunk in chunks.split('+') {
            let (mut times, mut each) = (1, 1);
            for (place, word) in chunk.split(':').enumerate() {
                match word.split_once('=') {
                    Some((key, value)) if TASKS.contains(&key) => {
                        each = count(&format!("{name}, {key}"), Some(value))?;
                    }
                    Some((THREADS, value)) => {
                        self.cpus_per_task =
                            Some(count(&format!("{name}, {THREADS}"), Some(value))?);
                    }
                    // Instead of a number there may be the name of a node.
                    None if place == 0 && !word.starts_with(char::is_alphabetic) => {
                        times = count(name, Some(word))?;
                    }
                    _ => {}
                }
            }
            nodes = nodes.saturating_add(times);
            tasks = tasks.saturating_add(times.saturating_mul(each));
        }
        (self.nodes, self.tasks) = (Some(nodes), Some(tasks));
        self.tasks_per_node = (tasks % nodes == 0).then_some(tasks / nodes);
        Ok(())
    }
}
