//! Parses the options of a launcher with its table.
//! Assumes that an unknown option has no separate value. Never starts or prints anything: warnings are returned.

use std::ffi::OsString;
use std::path::PathBuf;

use lexopt::prelude::*;

/// The meaning of a launcher's option on one machine without a scheduler.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// Sets a number.
    Count(Count),
    Directory,
    Output,
    Error,
    Input,
    /// Exports `NAME=VALUE` to the tasks.
    Export,
    /// Exports `ALL,NAME=VALUE` to the tasks.
    Exports,
    /// Removes variables from the tasks. Not supported.
    Unexport,
    /// Starts each line of output with the rank.
    Label,
    /// Uses the number of tasks of the job.
    TasksOfTheJob,
    /// No effect; takes no value.
    Flag,
    /// No effect; takes a value.
    Value,
    /// No effect; takes a value only if it is attached.
    AttachedValue,
    /// The first letter of options with two letters after a single dash, such as `-cc`.
    TwoLetters,
    /// Not supported, and too important to ignore.
    Refused,
    Version,
    Help,
}

/// The quantity that an option sets.
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

/// The result of the options.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// The last entry of each kind counts.
    pub counts: Vec<(Count, u32)>,
    pub directory: Option<PathBuf>,
    pub output: Option<PathBuf>,
    pub error: Option<PathBuf>,
    pub input: Option<PathBuf>,
    pub exports: Vec<(String, String)>,
    pub label: bool,
    pub tasks_of_the_job: bool,
    /// The text to print instead of starting a program.
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

/// Names of options with their dashes, separated by spaces, and their meaning.
pub type Options = &'static [(&'static str, Meaning)];

/// The value of a symbol in a file name, or of a variable.
#[derive(Clone, Copy)]
pub enum Symbol {
    Job,
    JobAndStep,
    /// The number of the step in the job.
    Step,
    /// The job of a job array, and the task in it.
    ArrayJob,
    ArrayTask,
    JobName,
    User,
    Host,
    /// The number of the node, which is always the first.
    Node,
    /// The number of nodes.
    Nodes,
}

/// A launcher that starts several tasks of one program.
pub struct Dialect {
    pub name: &'static str,
    pub usage: &'static str,
    pub options: Options,
    /// The number of tasks from the step's options; none to use the job's number.
    pub tasks: fn(&Step) -> Option<u32>,
    /// Variables of a task: rank, rank on the node, number of tasks.
    pub task_variables: [&'static str; 3],
    /// Other variables of a task.
    pub step_variables: &'static [(&'static str, Symbol)],
    /// Symbols in file names. All launchers use `%t` for the rank.
    pub symbols: &'static [(&'static str, Symbol)],
    /// Whether digits after the `%` of a symbol are the width of its number.
    pub pads_numbers: bool,
    /// The file name that means "no file". With it, `all` means the launcher's own stream, and `0` the input of rank 0.
    pub no_file: Option<&'static str>,
    /// Whether standard error follows standard output if it has no file.
    pub error_follows_output: bool,
    /// Whether all tasks read the standard input of the launcher.
    pub broadcasts_input: bool,
    /// Whether `:` separates the programs of a step.
    pub colon_separates: bool,
}

impl Dialect {
    fn meaning(&self, name: &str) -> Option<Meaning> {
        let mut options = self.options.iter();
        let found = options.find(|(names, _)| names.split_ascii_whitespace().any(|n| n == name));
        found.map(|(_, meaning)| *meaning)
    }

    /// Parses options up to the program.
    ///
    /// # Errors
    /// A bad or missing value, or a refused option.
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

/// Parses the minimum of a range. All hosts count as one.
fn number(text: &str) -> Result<u32, lexopt::Error> {
    let least = match text {
        "ALL_HOSTS" => "1",
        range => range.split('-').next().unwrap_or_default(),
    };
    OsString::from(least).parse()
}

/// Variables that are not named are always exported. Other requests cause a warning.
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
