//! `key=value` tokens of one directive, checked against its rules.

use crate::lines::{Byte, Logical};
use crate::rules::{COMMANDS, Command, Key, Support, Value};
use crate::{Place, Problem, access, parse_size};

/// One blank-separated token.
pub(crate) struct Token {
    pub(crate) text: String,
    pub(crate) place: Place,
    /// A `$` was written in it; one that a symbol brought in does not count.
    pub(crate) has_variable: bool,
}

/// A token as written, with the place of each of its bytes.
struct Word {
    text: String,
    bytes: Vec<Byte>,
    place: Place,
}

/// A directive whose command and keys are known and whose values have the right shape.
pub(crate) struct Directive {
    pub(crate) command: &'static Command,
    pub(crate) start: Place,
    values: Vec<(&'static str, Token)>,
    /// Keys that were written, with a good value or a bad one.
    written: Vec<&'static str>,
}

impl Directive {
    /// The value of a key, with the place where the value begins.
    pub(crate) fn value(&self, key: &str) -> Option<&Token> {
        self.values.iter().find(|(k, _)| *k == key).map(|(_, t)| t)
    }
}

fn words(line: &Logical) -> Vec<Word> {
    let blank = |byte: &Byte| !byte.from_symbol && byte.value.is_ascii_whitespace();
    let words = line.bytes.split(blank).filter(|word| !word.is_empty());
    words
        .map(|word| {
            let text: Vec<u8> = word.iter().map(|byte| byte.value).collect();
            Word {
                text: String::from_utf8_lossy(&text).into_owned(),
                bytes: word.to_vec(),
                place: word[0].place,
            }
        })
        .collect()
}

/// Checks one logical line against the table of rules.
pub(crate) fn check(line: &Logical) -> Result<Directive, Vec<Problem>> {
    let mut words = words(line).into_iter();
    let Some(word) = words.next() else {
        return Err(vec![Problem::new(
            line.start,
            format!("{} without a command", line.prefix.text()),
            format!("known commands: {}", known_commands()),
        )]);
    };
    let command = find_command(&word, line).map_err(|problem| vec![problem])?;
    let mut directive = Directive {
        command,
        start: word.place,
        values: Vec::new(),
        written: Vec::new(),
    };
    let mut problems = Vec::new();
    for word in words {
        if let Err(problem) = take(&mut directive, &word) {
            problems.push(problem);
        }
    }
    for key in command.keys.iter().filter(|key| key.required) {
        if !directive.written.contains(&key.name) {
            problems.push(Problem::new(
                directive.start,
                format!("{} needs {}=", command.name, key.name),
                format!("for example: {}", command.example),
            ));
        }
    }
    if problems.is_empty() {
        Ok(directive)
    } else {
        Err(problems)
    }
}

fn known_commands() -> String {
    let names: Vec<_> = COMMANDS.iter().map(|c| c.name).collect();
    names.join(", ")
}

fn find_command(word: &Word, line: &Logical) -> Result<&'static Command, Problem> {
    let prefix = line.prefix.text();
    let Some(command) = COMMANDS.iter().find(|c| c.name == word.text) else {
        return Err(Problem::new(
            word.place,
            format!("unknown command \"{}\"", word.text),
            format!("known commands: {}", known_commands()),
        ));
    };
    if command.prefix != prefix {
        return Err(Problem::new(
            line.start,
            format!(
                "{} is written with {}, not {prefix}",
                command.name, command.prefix
            ),
            format!("write {} {} ...", command.prefix, command.name),
        ));
    }
    match command.support {
        Support::Yes => Ok(command),
        Support::Refused(why) => Err(Problem::new(
            word.place,
            format!("{} is refused: {why}", command.name),
            "remove the line; a job allocation (#DW jobdw) is what can be had",
        )),
    }
}

/// Takes one `key=value` token into the directive.
fn take(directive: &mut Directive, token: &Word) -> Result<(), Problem> {
    let command = directive.command;
    let names = || {
        let names: Vec<_> = command
            .keys
            .iter()
            .map(|k| format!("{}=", k.name))
            .collect();
        format!("{} knows {}", command.name, names.join(" "))
    };
    let Some((name, value)) = token.text.split_once('=') else {
        let message = format!("\"{}\" is not of the form key=value", token.text);
        return Err(Problem::new(token.place, message, names()));
    };
    // Slurm's own command line writes `access=`; scripts copied from there do too.
    let name = if name == "access" {
        "access_mode"
    } else {
        name
    };
    let Some(key) = command.keys.iter().find(|k| k.name == name) else {
        return Err(Problem::new(
            token.place,
            format!("unknown key \"{name}\""),
            names(),
        ));
    };
    if directive.written.contains(&key.name) {
        let message = format!("{name} is given twice");
        return Err(Problem::new(token.place, message, "keep one of them"));
    }
    directive.written.push(key.name);
    let bytes = &token.bytes[token.text.len() - value.len()..];
    let place = bytes.first().map_or(token.place, |byte| byte.place);
    let has_variable = bytes
        .iter()
        .any(|byte| byte.value == b'$' && !byte.from_symbol);
    check_value(key, value, command)
        .map_err(|(message, hint)| Problem::new(place, message, hint))?;
    let text = value.to_owned();
    let token = Token {
        text,
        place,
        has_variable,
    };
    directive.values.push((key.name, token));
    Ok(())
}

fn check_value(key: &Key, value: &str, command: &Command) -> Result<(), (String, String)> {
    if value.is_empty() {
        let hint = format!("for example: {}", command.example);
        return Err((format!("{}= has no value", key.name), hint));
    }
    let one_of = |words: &[&str]| {
        let message = format!("{}={value} is not known", key.name);
        (
            message,
            format!("write {}={}", key.name, words.join(" or ")),
        )
    };
    match key.value {
        Value::Size => parse_size(value).map(|_| ()).map_err(|error| {
            let message = format!("{}={value} is no size: {error}", key.name);
            (message, format!("write for example {}=10GiB", key.name))
        }),
        Value::Word(words, _) if words.contains(&value) => Ok(()),
        Value::Word(words, refused) => {
            let refusal = refused.iter().find(|(word, _)| *word == value);
            Err(refusal.map_or_else(
                || one_of(words),
                |(_, remedy)| {
                    let message = format!("{}={value} is refused", key.name);
                    (message, (*remedy).to_owned())
                },
            ))
        }
        Value::AccessModes => access::parse(value).map(|_| ()),
        Value::Text | Value::Path => Ok(()),
    }
}
