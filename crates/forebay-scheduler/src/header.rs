//! Reads scheduler options in a script: `#SBATCH`, `#BSUB`, `#PBS`, `# flux:`.
//! Assumes the form of each scheduler's manual. Never asks a scheduler, and never applies an option.

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::Duration;

use forebay_directive::ContinuationReader;

use crate::dialect::{Dialect, Meaning, meaning};
use crate::pbs::Resource;
use crate::{flux, lsf, pbs, quantity, slurm};

/// A scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheduler {
    /// Slurm: `#SBATCH`.
    Slurm,
    /// IBM Spectrum LSF: `#BSUB`.
    Lsf,
    /// PBS Professional, OpenPBS, Torque: `#PBS`.
    Pbs,
    /// Flux: `# flux:` and the other forms of RFC 36.
    Flux,
}

/// The prefix of Moab, whose msub(1) takes the options of Torque's qsub.
const MOAB: &str = "#MSUB";

impl Scheduler {
    /// The prefix of its lines.
    pub fn sentinel(self) -> &'static str {
        match self {
            Self::Slurm => "#SBATCH",
            Self::Lsf => "#BSUB",
            Self::Pbs => "#PBS",
            Self::Flux => "# flux:",
        }
    }

    fn dialect(self) -> &'static Dialect {
        match self {
            Self::Slurm => &slurm::DIALECT,
            Self::Lsf => &lsf::DIALECT,
            Self::Pbs => &pbs::DIALECT,
            Self::Flux => &flux::DIALECT,
        }
    }

    /// The scheduler of a line, and the options in the line.
    fn of_line(line: &str) -> Option<(Self, &str)> {
        let plain = [Self::Slurm, Self::Lsf, Self::Pbs].map(|one| (one, one.sentinel()));
        let found =
            plain.into_iter().chain([(Self::Pbs, MOAB)]).find_map(|(scheduler, sentinel)| {
                let rest = line.strip_prefix(sentinel)?;
                let is_longer_word = rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
                (!is_longer_word).then_some((scheduler, rest))
            });
        found.or_else(|| Some((Self::Flux, flux::options_of_line(line)?)))
    }
}

/// The scheduler options that matter without a scheduler.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Header {
    /// The scheduler whose lines were read; none if there are no such lines.
    pub scheduler: Option<Scheduler>,
    /// The name of the job.
    pub job_name: Option<String>,
    /// The number of tasks on all nodes.
    pub tasks: Option<u32>,
    /// The number of nodes, or the minimum of a range.
    pub nodes: Option<u32>,
    /// Tasks on each node.
    pub tasks_per_node: Option<u32>,
    /// Processors for each task.
    pub cpus_per_task: Option<u32>,
    /// The working directory, as written.
    pub directory: Option<PathBuf>,
    /// Partition or queue.
    pub partition: Option<String>,
    /// Account, project or bank.
    pub account: Option<String>,
    /// File for standard output. Symbols such as `%j` are not replaced.
    pub output: Option<PathBuf>,
    /// File for standard error, in the same form.
    pub error: Option<PathBuf>,
    /// The time limit; none for no limit.
    pub time_limit: Option<Duration>,
    /// Memory of the job (PBS) or of each node (Slurm); none for all memory.
    pub memory_bytes: Option<u64>,
    /// `--bb` of sbatch: a burst-buffer directive without `#DW`.
    pub bb: Option<String>,
    /// `--bbf` of sbatch: a file of directives.
    pub bbf: Option<PathBuf>,
    /// Whether the job requests the node's own storage, `/mnt/bb/$USER`.
    pub node_local: bool,
    /// Whether it requests Spectral, which drains that storage while the job runs.
    pub spectral: bool,
    /// Options that have no effect here, as written.
    pub ignored_options: Vec<String>,
    /// Schedulers whose lines are ignored because the script has lines of another one.
    pub ignored_schedulers: Vec<Scheduler>,
}

/// Options that are recorded but have no effect.
const ONLY_RECORDED: &[Meaning] = &[Meaning::Output, Meaning::Error, Meaning::Memory];

/// Parses a time limit of sbatch. Zero means no limit. None if it is invalid.
pub fn parse_time(text: &str) -> Option<Duration> {
    (slurm::DIALECT.time)(text)
}

impl Header {
    /// The number of tasks of the job. The default is nodes times tasks per node, with one task for
    /// each node (sbatch's rule).
    pub fn task_count(&self) -> u32 {
        let nodes = self.nodes.unwrap_or(1);
        let per_node = self.tasks_per_node.unwrap_or(1);
        self.tasks.unwrap_or_else(|| nodes.saturating_mul(per_node))
    }

    /// Whether the script requests a number of tasks. sbatch then tells it to srun in SLURM_NTASKS.
    pub(crate) fn requests_tasks(&self) -> bool {
        self.tasks.is_some() || self.tasks_per_node.is_some()
    }

    /// Notes for the user about lines without effect.
    pub fn notes(&self) -> Vec<String> {
        let Some(scheduler) = self.scheduler else {
            return Vec::new();
        };
        let read = scheduler.sentinel();
        let mut notes = Vec::new();
        if !self.ignored_options.is_empty() {
            let options = self.ignored_options.join(" ");
            notes.push(format!("{read} options without effect here: {options}"));
        }
        if let Some(nodes) = self.nodes.filter(|nodes| *nodes > 1) {
            notes
                .push(format!("the {read} lines ask for {nodes} nodes: all tasks run on this one"));
        }
        notes.extend(self.ignored_schedulers.iter().map(|other| {
            let other = other.sentinel();
            format!("{other} lines have no effect, since the script has {read} lines too")
        }));
        notes
    }

    /// Reads the header block, which ends at the first line that is neither a comment nor blank. Of a heterogeneous job
    /// of Slurm, reads the first component.
    /// Reads lines of Slurm if there are any, otherwise lines of the scheduler that comes first.
    ///
    /// # Errors
    /// The line number, and the problem with the value of an option.
    pub fn read(script: &str) -> Result<Self, (usize, String)> {
        let mut lines = Vec::new();
        let mut ignored_options = Vec::new();
        let mut continuations = ContinuationReader::default();
        for (index, line) in script.lines().enumerate() {
            if continuations.read_line(line) {
                continue; // part of a directive, so the header continues
            }
            match Scheduler::of_line(line) {
                Some((Scheduler::Slurm, options)) if slurm::ends_component(options) => {
                    ignored_options.push(format!("{} and the lines after it", options.trim()));
                    break;
                }
                Some((scheduler, options)) => lines.push((index + 1, scheduler, options)),
                None if line.trim().is_empty() || line.trim_start().starts_with('#') => {}
                None => break,
            }
        }
        let mut found: Vec<Scheduler> = Vec::new();
        for (_, scheduler, _) in &lines {
            if !found.contains(scheduler) {
                found.push(*scheduler);
            }
        }
        found.sort_by_key(|scheduler| *scheduler != Scheduler::Slurm);
        let Some((&scheduler, others)) = found.split_first() else {
            return Ok(Self::default());
        };
        let mut header = Self {
            scheduler: Some(scheduler),
            ignored_schedulers: others.to_owned(),
            ..Self::default()
        };
        for (number, _, options) in lines.iter().filter(|line| line.1 == scheduler) {
            header
                .parse_line(scheduler.dialect(), options)
                .map_err(|message| (*number, message))?;
        }
        header.ignored_options.extend(ignored_options);
        Ok(header)
    }

    fn parse_line(&mut self, dialect: &Dialect, options: &str) -> Result<(), String> {
        // The schedulers treat quotes and comments as a shell does.
        let words = shlex::split(options).ok_or("a quote is not closed")?;
        let mut words = words.iter().map(String::as_str).peekable();
        while let Some(word) = words.next() {
            let (name, mut value) = (dialect.split)(word);
            if value.is_none() {
                value = words.next_if(|next| !next.starts_with('-'));
            }
            match meaning(dialect.options, name) {
                Some(meaning) => self.take(dialect, meaning, name, value)?,
                None => self.ignored_options.push(word.to_owned()),
            }
        }
        Ok(())
    }

    fn take(
        &mut self,
        dialect: &Dialect,
        meaning: Meaning,
        name: &str,
        value: Option<&str>,
    ) -> Result<(), String> {
        use Meaning as M;
        let text = || value.ok_or(format!("{name} needs a value"));
        match meaning {
            M::JobName => self.job_name = Some(text()?.to_owned()),
            M::JobNameAndArray => {
                let (job_name, array) = text()?.split_once('[').unwrap_or((text()?, ""));
                self.job_name = Some(job_name.to_owned()).filter(|name| !name.is_empty());
                if !array.is_empty() {
                    self.ignored_options.push(format!("{name} [{array}"));
                }
            }
            M::Tasks => self.tasks = Some(quantity::count(name, value)?),
            M::Nodes => self.nodes = Some(quantity::count(name, value)?),
            M::TasksPerNode => self.tasks_per_node = Some(quantity::count(name, value)?),
            M::CpusPerTask => self.cpus_per_task = Some(quantity::count(name, value)?),
            M::Directory => self.directory = Some(text()?.into()),
            M::Partition => self.partition = Some(text()?.to_owned()),
            M::Account => self.account = Some(text()?.to_owned()),
            M::Output => self.output = Some(text()?.into()),
            M::Error => self.error = Some(text()?.into()),
            M::Bb => self.bb = Some(text()?.to_owned()),
            M::Bbf => self.bbf = Some(text()?.into()),
            M::TimeLimit => {
                let (text, form) = (text()?, dialect.time_form);
                let limit = (dialect.time)(text)
                    .ok_or_else(|| format!("{name} needs a time, {form}, not \"{text}\""))?;
                self.time_limit = Some(limit).filter(|limit| !limit.is_zero());
            }
            M::Memory => {
                let bytes =
                    quantity::bytes(text()?, dialect.memory_unit_bytes).ok_or_else(|| {
                        format!("{name} needs a size such as 4G, not \"{}\"", value.unwrap_or(""))
                    })?;
                self.memory_bytes = Some(bytes).filter(|bytes| *bytes > 0);
            }
            M::Features => self.take_features(name, text()?),
            M::Resources => self.take_resources(dialect, text()?)?,
        }
        if ONLY_RECORDED.contains(&meaning) {
            self.ignored_options.push(name.to_owned());
        }
        Ok(())
    }

    fn take_resources(&mut self, dialect: &Dialect, list: &str) -> Result<(), String> {
        for resource in pbs::resources(list)? {
            match resource {
                Resource::Option(meaning, name, value) => {
                    self.take(dialect, meaning, &name, value)?;
                }
                Resource::Chunks(pbs::Chunks { nodes, tasks, cpus_per_task }) => {
                    (self.nodes, self.tasks) = (Some(nodes), Some(tasks));
                    self.tasks_per_node = (tasks % nodes == 0).then_some(tasks / nodes);
                    self.cpus_per_task = cpus_per_task.or(self.cpus_per_task);
                }
                Resource::Ignored(option) => self.ignored_options.push(option),
            }
        }
        Ok(())
    }

    /// `nvme` requests the node's own storage. `spectral` requests it and a drain. Other words
    /// select or configure nodes.
    fn take_features(&mut self, name: &str, value: &str) {
        let is_part = |c: char| c.is_alphanumeric() || "_-.".contains(c);
        let mut others = Vec::new();
        for word in value.split(|c| !is_part(c)).filter(|word| !word.is_empty()) {
            match word.to_ascii_lowercase().as_str() {
                "nvme" => self.node_local = true,
                "spectral" => (self.node_local, self.spectral) = (true, true),
                _ => others.push(word),
            }
        }
        if !others.is_empty() {
            let others = others.join(" ");
            self.ignored_options.push(format!("{name} {others}"));
        }
    }
}
