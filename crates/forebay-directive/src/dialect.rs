//! Distinguishes DataWarp and NNF, two dialects with the same prefix.
//! Commands, keys, listed values and the prefix decide. Never reports a wrong key: `directive_check` does.

use crate::VariableStyle;
use crate::lines::Line;
use crate::problem::{Position, Problem};
use crate::rules::{COMMANDS, Command, NNF_COMMANDS, Value};
use crate::token::Token;
use crate::values::{NAME_BYTES_MAX, value_error};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    DataWarp,
    Nnf,
}

impl Dialect {
    pub(crate) fn commands(self) -> &'static [Command] {
        match self {
            Self::DataWarp => COMMANDS,
            Self::Nnf => NNF_COMMANDS,
        }
    }

    pub(crate) fn command(self, name: &str) -> Option<&'static Command> {
        self.commands().iter().find(|command| command.name == name)
    }

    fn name(self) -> &'static str {
        match self {
            Self::DataWarp => "DataWarp",
            Self::Nnf => "NNF (Rabbit)",
        }
    }
}

/// The dialect of each line. Ambiguous lines get the dialect of the first unambiguous line, or else
/// DataWarp.
pub(crate) fn of_lines(lines: &[Line]) -> (Vec<Dialect>, Option<Problem>) {
    let mut clear: Vec<_> = lines.iter().map(of_line).collect();
    if !clear.contains(&Some(Dialect::DataWarp)) {
        for (dialect, line) in clear.iter_mut().zip(lines) {
            *dialect = dialect.or_else(|| by_prefix(line));
        }
    }
    let first = clear.iter().flatten().next().copied();
    let dialects =
        clear.iter().map(|dialect| dialect.or(first).unwrap_or(Dialect::DataWarp)).collect();
    (dialects, mixed(lines, &clear))
}

fn mixed(lines: &[Line], clear: &[Option<Dialect>]) -> Option<Problem> {
    let first_of = |dialect| -> Option<Position> {
        let at = clear.iter().position(|&of| of == Some(dialect))?;
        Some(lines[at].start)
    };
    let datawarp = (first_of(Dialect::DataWarp)?, Dialect::DataWarp);
    let nnf = (first_of(Dialect::Nnf)?, Dialect::Nnf);
    let ((early, one), (late, other)) =
        if datawarp.0 < nnf.0 { (datawarp, nnf) } else { (nnf, datawarp) };
    let message = format!(
        "this directive is {}'s, that of {early} is {}'s: a script has one dialect",
        other.name(),
        one.name()
    );
    Some(Problem::new(
        late,
        message,
        "stage_in and stage_out go with a jobdw that has access_mode=, copy_in and copy_out with one that has name=",
    ))
}

/// How lines of the NNF dialect name namespaces.
pub(crate) fn naming_of_nnf(lines: &[Line], dialects: &[Dialect]) -> VariableStyle {
    let of_nnf = lines.iter().zip(dialects);
    let mut of_nnf = of_nnf.filter(|(_, dialect)| **dialect == Dialect::Nnf);
    let job = of_nnf.find(|(line, _)| line.words.first().is_some_and(|word| word.text == "jobdw"));
    let mut pairs = job.iter().flat_map(|(line, _)| &line.words).filter_map(Token::pair);
    let name = pairs.find(|(key, _)| *key == "name").map(|(_, name)| name.text);
    // Each stage has a copy of it.
    VariableStyle::Nnf { job: name.filter(|name| name.len() <= NAME_BYTES_MAX) }
}

/// The dialect of a line; none if the line is ambiguous.
fn of_line(line: &Line) -> Option<Dialect> {
    let command = line.words.first()?.text.as_str();
    let (datawarp, nnf) = match (Dialect::DataWarp.command(command), Dialect::Nnf.command(command))
    {
        (Some(datawarp), Some(nnf)) => (datawarp, nnf),
        (Some(_), None) => return Some(Dialect::DataWarp),
        (None, Some(_)) => return Some(Dialect::Nnf),
        (None, None) => return None,
    };
    let pairs: Vec<_> = line.words.iter().filter_map(|word| word.pair()).collect();
    // The type decides. Otherwise a single DataWarp key outweighs all NNF keys.
    let by_type = pairs.iter().filter(|(key, _)| *key == "type");
    let told = |(key, value): &(&str, Token)| match (
        allows(datawarp, key, &value.text),
        allows(nnf, key, &value.text),
    ) {
        (true, false) => Some(Dialect::DataWarp),
        (false, true) => Some(Dialect::Nnf),
        _ => None,
    };
    by_type.filter_map(told).next().or_else(|| {
        let told: Vec<_> = pairs.iter().filter_map(told).collect();
        let datawarp = told.iter().find(|&&dialect| dialect == Dialect::DataWarp);
        datawarp.or(told.first()).copied()
    })
}

/// If both dialects have the same single key, the prefix decides, unless the value is none of NNF. A
/// create_persistent has more keys, so its wrong prefix is an error.
fn by_prefix(line: &Line) -> Option<Dialect> {
    let [command, argument] = line.words.as_slice() else { return None };
    let datawarp = Dialect::DataWarp.command(&command.text)?;
    let nnf = Dialect::Nnf.command(&command.text)?;
    let (key, value) = argument.pair()?;
    let is_of_nnf = value_error(nnf.key(key)?.value, &value.text).is_none();
    let alone = datawarp.keys.len() == 1;
    let is_nnf = alone && is_of_nnf && datawarp.prefix != nnf.prefix && line.prefix == nnf.prefix;
    is_nnf.then_some(Dialect::Nnf)
}

/// Whether the command accepts this key and, for keys with a list of words, this word.
fn allows(command: &Command, key: &str, value: &str) -> bool {
    command.key(key).is_some_and(|key| match key.value {
        Value::Words(words) => words.iter().any(|word| word.name == value),
        _ => true,
    })
}
