//! Checks the words of one directive against its rules.
//! Never compares directives with each other and never checks paths of stages: `request` and `persistent` do.

use std::collections::HashMap;

use crate::dialect::Dialect;
use crate::lines::Line;
use crate::problem::{Finding, Position, Problem, Weight};
use crate::rules::{COMMANDS, Command, FOREIGN, Key, NNF_COMMANDS, Requirement, Value, key_names};
use crate::suggestion::with_suggestion;
use crate::token::Token;
use crate::{access, values};

/// A directive with a known command, and the problems found in it.
#[derive(Debug)]
pub(crate) struct Directive {
    pub(crate) command: &'static Command,
    pub(crate) dialect: Dialect,
    pub(crate) start: Position,
    pub(crate) findings: Vec<Finding>,
    /// Words without a value.
    pub(crate) flags: Vec<&'static str>,
    values: HashMap<String, Token>,
}

impl Directive {
    /// The value of a key.
    pub(crate) fn value(&self, key: &str) -> Option<&Token> {
        self.values.get(key)
    }

    fn type_is(&self, name: &str) -> bool {
        self.value("type").is_some_and(|value| value.text == name)
    }

    /// The warnings. If there are errors, returns the wrong directives, or else the refused ones.
    pub(crate) fn warnings_or_problems(
        findings: Vec<Finding>,
    ) -> Result<Vec<Problem>, Vec<Problem>> {
        for weight in [Weight::Wrong, Weight::Refused] {
            if findings.iter().any(|finding| finding.weight == weight) {
                let heavy = findings.into_iter().filter(|f| f.weight == weight);
                return Err(heavy.map(|finding| finding.problem).collect());
            }
        }
        Ok(findings.into_iter().map(|f| f.problem).collect())
    }
}

/// Checks one line against the rules of a dialect.
///
/// # Errors
/// If the command is unknown.
pub(crate) fn check(line: &Line, dialect: Dialect) -> Result<Directive, Problem> {
    let Some((word, arguments)) = line.words.split_first() else {
        return Err(Problem::new(
            line.start,
            format!("{} without a command", line.prefix),
            known_commands(dialect),
        ));
    };
    let mut directive = Directive {
        command: find_command(word, line, dialect)?,
        dialect,
        start: word.start,
        findings: Vec::new(),
        flags: Vec::new(),
        values: HashMap::new(),
    };
    for argument in arguments {
        if argument.text.starts_with('#') {
            let hint = "write the comment into a line of its own";
            let message = "a directive has no comment";
            directive.findings.push(Finding::error(argument.start, message, hint));
            break;
        }
        let findings = directive.take(argument);
        directive.findings.extend(findings);
    }
    directive.check_needs();
    let command = directive.command;
    directive.findings.extend(Finding::of_support(command.support, directive.start, command.name));
    Ok(directive)
}

fn known_commands(dialect: Dialect) -> String {
    let names: Vec<_> = dialect.commands().iter().map(|c| c.name).collect();
    format!("known commands: {}", names.join(", "))
}

fn find_command(word: &Token, line: &Line, dialect: Dialect) -> Result<&'static Command, Problem> {
    let Some(command) = dialect.command(&word.text) else {
        let foreign = FOREIGN.iter().find(|(name, _)| *name == word.text);
        return Err(Problem::new(
            word.start,
            format!("unknown command \"{}\"", word.text),
            foreign.map_or_else(
                || {
                    // Of both dialects, since an unknown command does not tell which one is meant.
                    let own = dialect.commands().iter();
                    let all = own.chain(COMMANDS).chain(NNF_COMMANDS).map(|command| command.name);
                    with_suggestion(&word.text, all, known_commands(dialect))
                },
                |(_, hint)| (*hint).to_owned(),
            ),
        ));
    };
    if command.prefix != line.prefix {
        let Command { name, prefix, .. } = command;
        return Err(Problem::new(
            line.start,
            format!("{name} is written with {prefix}, not {}", line.prefix),
            format!("write {prefix} {name} ..."),
        ));
    }
    Ok(command)
}

impl Directive {
    /// Parses one word after the command.
    fn take(&mut self, word: &Token) -> Vec<Finding> {
        let command = self.command;
        let Some((name, value)) = word.pair() else {
            return self.take_alone(word);
        };
        let Some(key) = command.key(name) else {
            let message = format!("unknown key \"{name}\"");
            let names = command.keys.iter().flat_map(Key::names);
            let hint = with_suggestion(name, names, knows(command));
            return vec![Finding::error(word.start, message, hint)];
        };
        // A key with a wildcard keeps the name as written.
        let name = if key.name.ends_with('*') { name } else { key.name };
        if self.value(name).is_some() {
            let message = format!("{name} is given twice");
            return vec![Finding::error(word.start, message, "keep one of them")];
        }
        let quoted = value.text.starts_with(['"', '\'']);
        let findings = if quoted {
            let message = format!("{name}={} begins with a quote", value.text);
            let hint = "directives have no quotes: write the value bare; a blank ends it";
            vec![Finding::error(value.start, message, hint)]
        } else {
            check_value(name, key, &value)
        };
        // Quoted values get no further checks.
        let value = if quoted { value.part(0..0) } else { value };
        self.values.insert(name.to_owned(), value);
        findings
    }

    /// Parses a word without `=`.
    fn take_alone(&mut self, word: &Token) -> Vec<Finding> {
        let command = self.command;
        if let Some(flag) = command.flags.iter().find(|flag| **flag == word.text) {
            self.flags.push(flag);
            return Vec::new();
        }
        let positional = command.positional.filter(|key| self.value(key.name).is_none());
        let Some(key) = positional else {
            let message = format!("\"{}\" is not of the form key=value", word.text);
            let hint = if word.text == "\\" {
                "a line goes on in the next one if the backslash is its last character".into()
            } else {
                with_suggestion(&word.text, command.flags.iter().copied(), knows(command))
            };
            return vec![Finding::error(word.start, message, hint)];
        };
        self.values.insert(key.name.to_owned(), word.clone());
        let fault = values::value_error(key.value, &word.text);
        fault
            .map(|(what, _)| {
                let message = format!("{} {} {what}", command.name, word.text);
                Finding::error(word.start, message, for_example(command))
            })
            .into_iter()
            .collect()
    }

    /// Checks for missing and for forbidden keys.
    fn check_needs(&mut self) {
        let command = self.command;
        let needed = |what: String| Finding::error(self.start, what, for_example(command));
        let mut findings = Vec::new();
        if let Some(key) = command.positional
            && self.value(key.name).is_none()
        {
            findings.push(needed(format!("{} needs {}", command.name, key.name)));
        }
        for key in command.keys {
            match (key.need, self.value(key.name)) {
                (Requirement::Required, None) => {
                    findings.push(needed(format!("{} needs {}=", command.name, key.name)));
                }
                (Requirement::RequiredUnless(kind), None) if !self.type_is(kind) => {
                    findings.push(needed(format!("{} needs {}=", command.name, key.name)));
                }
                (Requirement::RequiredWith(kind), None) if self.type_is(kind) => {
                    findings.push(needed(format!("type={kind} needs {}=", key.name)));
                }
                (
                    Requirement::RequiredWith(kind) | Requirement::OptionalWith(kind),
                    Some(value),
                ) if !self.type_is(kind) => {
                    findings.push(misplaced(key, kind, value));
                }
                _ => {}
            }
        }
        self.findings.extend(findings);
    }
}

/// All problems with the value of a key.
fn check_value(name: &str, key: &Key, value: &Token) -> Vec<Finding> {
    let mut findings = values::check(name, key, value);
    if matches!(key.value, Value::AccessModes) && !value.text.is_empty() {
        findings.extend(access::read(value).findings);
    }
    findings
}

fn misplaced(key: &Key, kind: &str, value: &Token) -> Finding {
    Finding::error(
        value.start,
        format!("{}= belongs to type={kind}", key.name),
        format!("remove it, or write type={kind}"),
    )
}

fn knows(command: &Command) -> String {
    let positional = command.positional.map(|key| format!(" {}", key.name));
    let flags: String = command.flags.iter().map(|f| format!(" {f}")).collect();
    let positional = positional.unwrap_or_default();
    let keys = key_names(command.keys);
    format!("{} knows{positional} {keys}{flags}", command.name)
}

fn for_example(command: &Command) -> String {
    format!("for example: {}", command.example)
}
