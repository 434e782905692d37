//! Options of a launcher, read by its table.

use std::ffi::OsString;
use std::path::PathBuf;

use lexopt::prelude::*;

/// What an option of a launcher means on one machine without a scheduler.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// So many of something.
    Count(Count),
    Directory,
    Output,
    Error,
    Input,
    /// `NAME=VALUE` for the tasks.
    Export,
    /// `ALL,NAME=VALUE` for the tasks.
    Exports,
    /// Takes variables away from the tasks, which is not done.
    Unexport,
    /// Each line of output begins with its rank.
    Label,
    /// As many tasks as the job has.
    TasksOfTheJob,
    /// Nothing; it has no value.
    Flag,
    /// Nothing; it has a value.
    Value,
    /// Nothing; it has a value only where that is attached.
    AttachedValue,
    /// First of two letters that are an option together, such as `-cc`.
    TwoLetters,
    /// Something we cannot do, and which must not be left out silently.
    Refused,
    Version,
    Help,
}

/// What an option counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    Tasks,
    Nodes,
    TasksPerNode,
    CpusPerTask,
    /// Resource sets of `jsrun`.
    Sets,
    SetsPerHost,
    TasksPerSet,
}

/// What the options ask for.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// The last one of a kind counts.
    pub counts: Vec<(Count, u32)>,
    pub directory: Option<PathBuf>,
    pub output: Option<PathBuf>,
    pub error: Option<PathBuf>,
    pub input: Option<PathBuf>,
    pub exports: Vec<(String, String)>,
    pub label: bool,
    pub tasks_of_the_job: bool,
    /// What to say instead of starting anything.
    pub question: Option<String>,
    pub warnings: Vec<String>,
    pub program: Vec<OsString>,
}

impl Step {
    pub fn count(&self, what: Count) -> Option<u32> {
        let found = self.counts.iter().rev().find(|(count, _)| *count == what);
        found.map(|(_, number)| *number)
    }
}

/// Names of options with their dashes, between spaces, and what they mean.
pub type Options = &'static [(&'static str, Meaning)];

/// A symbol in the name of a file, or a variable.
#[derive(Clone, Copy)]
pub enum Symbol {
    Job,
    Host,
    /// Number of the node, which is the first.
    Node,
    /// Number of nodes.
    Nodes,
}

/// A launcher that starts one program in many tasks.
pub struct Dialect {
    pub name: &'static str,
    pub usage: &'static str,
    pub options: Options,
    /// Tasks by the step's own options; none for those of the job.
    pub tasks: fn(&Step) -> Option<u32>,
    /// Variables of a task: its rank, its rank on the node, the number of tasks.
    pub task_variables: [&'static str; 3],
    /// Other variables of a task.
    pub step_variables: &'static [(&'static str, Symbol)],
    /// Symbols in names of files. The rank is `%t` wherever a launcher knows it.
    pub symbols: &'static [(&'static str, Symbol)],
    /// Name of a file that is no file.
    pub no_file: Option<&'static str>,
    /// Does standard error go where standard output goes, unless it has a file of its own?
    pub error_follows_output: bool,
    /// Is `:` between the programs of a step with several?
    pub colon_separates: bool,
}

impl Dialect {
    fn meaning(&self, name: &str) -> Option<Meaning> {
        let mut options = self.options.iter();
        let found = options.find(|(names, _)| names.split_ascii_whitespace().any(|n| n == name));
        found.map(|(_, meaning)| *meaning)
    }

    /// Reads options up to the program.
    ///
    /// # Errors
    /// A bad or missing value, or an option that is refused.
    pub fn parse(&self, words: &[OsString]) -> Result<Step, lexopt::Error> {
        let mut step = Step::default();
        let mut parser = lexopt::Parser::from_args(words);
        while let Some(argument) = parser.next()? {
            let mut name = match argument {
                Short(letter) => format!("-{letter}"),
                Long(name) => format!("--{name}"),
                Value(program) => {
                    step.program.push(program);
                    step.program.extend(parser.raw_args()?);
                    break;
                }
            };
            let mut meaning = self.meaning(&name);
            if meaning == Some(Meaning::TwoLetters) {
                name += &parser.optional_value().unwrap_or_default().to_string_lossy();
                meaning = self.meaning(&name);
            }
            self.take(&mut step, &name, meaning, &mut parser)?;
        }
        if self.colon_separates && step.program.iter().any(|word| word == ":") {
            return Err(
                "several programs in one step, with : between them, are not supported".into()
            );
        }
        Ok(step)
    }

    fn take(
        &self,
        step: &mut Step,
        name: &str,
        meaning: Option<Meaning>,
        parser: &mut lexopt::Parser,
    ) -> Result<(), lexopt::Error> {
        let Some(meaning) = meaning else {
            step.warnings.push(format!("unknown option {name} has no effect"));
            if name.starts_with("--") {
                parser.optional_value();
            }
            return Ok(());
        };
        match meaning {
            Meaning::Count(count) => {
                let number = number(&parser.value()?.string()?)?;
                step.counts.push((count, number));
            }
            Meaning::Directory => step.directory = Some(parser.value()?.into()),
            Meaning::Output => step.output = Some(parser.value()?.into()),
            Meaning::Error => step.error = Some(parser.value()?.into()),
            Meaning::Input => step.input = Some(parser.value()?.into()),
            Meaning::Export => export(step, name, &parser.value()?.string()?),
            Meaning::Exports => {
                for item in parser.value()?.string()?.split(',') {
                    export(step, name, item);
                }
            }
            Meaning::Unexport => {
                let value = parser.value()?.string()?;
                not_honoured(step, name, &value);
            }
            Meaning::Label => step.label = true,
            Meaning::TasksOfTheJob => step.tasks_of_the_job = true,
            Meaning::Flag | Meaning::TwoLetters => {}
            Meaning::Value => {
                parser.value()?;
            }
            Meaning::AttachedValue => {
                parser.optional_value();
            }
            Meaning::Refused => return Err(format!("{name} is not supported").into()),
            Meaning::Version => {
                let version = env!("CARGO_PKG_VERSION");
                step.question = Some(format!("{} of forebay {version}", self.name));
            }
            Meaning::Help => step.question = Some(self.usage.to_owned()),
        }
        Ok(())
    }
}

/// The least of a range; there is one host.
fn number(text: &str) -> Result<u32, lexopt::Error> {
    let least = match text {
        "ALL_HOSTS" => "1",
        range => range.split('-').next().unwrap_or_default(),
    };
    OsString::from(least).parse()
}

/// What is not named is exported too, unless the real launcher is asked not to.
fn export(step: &mut Step, name: &str, item: &str) {
    match item.split_once('=') {
        _ if item == "NONE" || item.starts_with(['-', '^']) => not_honoured(step, name, item),
        Some((variable, value)) => step.exports.push((variable.to_owned(), value.to_owned())),
        None => {}
    }
}

fn not_honoured(step: &mut Step, name: &str, value: &str) {
    step.warnings.push(format!("{name}={value} is not honoured: the job's environment stays"));
}

#[cfg(test)]
pub fn parsed(dialect: &Dialect, line: &str) -> Step {
    let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
    dialect.parse(&words).expect(line)
}
