//! The values of symbols in file names and variables of a step.
//! Leaves the rank, which only a task knows, as `%t`, and `%` as `%%`: [`of_rank`] replaces both.

use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use forebay_host::{files, system, users};
use forebay_scheduler::{JOB_ID_VARIABLE, SHIMS_VARIABLE};

use crate::options::{Dialect, Symbol};

/// Slurm pads numbers to this width at most.
const WIDTH_MAX: usize = 10;
/// The array task of a job that is none (`NO_VAL` of Slurm).
const NO_ARRAY_TASK: &str = "4294967294";

/// The value of a symbol.
pub fn value(symbol: Symbol) -> String {
    let variable = |name| std::env::var(name).ok();
    match symbol {
        Symbol::Job => variable(JOB_ID_VARIABLE).unwrap_or_default(),
        Symbol::JobAndStep => format!("{}.{}", value(Symbol::Job), value(Symbol::Step)),
        Symbol::Step => step_number().to_string(),
        Symbol::ArrayJob => variable("SLURM_ARRAY_JOB_ID").unwrap_or_else(|| value(Symbol::Job)),
        Symbol::ArrayTask => {
            variable("SLURM_ARRAY_TASK_ID").unwrap_or_else(|| NO_ARRAY_TASK.to_owned())
        }
        Symbol::JobName => variable("SLURM_JOB_NAME").unwrap_or_default(),
        Symbol::User => users::user_name(),
        Symbol::Host => system::hostname(),
        Symbol::Node => "0".to_owned(),
        Symbol::Nodes => "1".to_owned(),
    }
}

/// The number of this step in its job, from 0.
fn step_number() -> u64 {
    static NUMBER: OnceLock<u64> = OnceLock::new();
    // Each step adds one byte. The position behind it is that of this step, whatever other steps add at the same time.
    let count = || {
        let launchers = std::env::var_os(SHIMS_VARIABLE)?;
        let mut file =
            files::open_to_append(&Path::new(&launchers).with_file_name("steps")).ok()?;
        file.write_all(b".").ok()?;
        file.stream_position().ok()?.checked_sub(1)
    };
    *NUMBER.get_or_init(|| count().unwrap_or(0))
}

/// Replaces the symbols of a launcher in a file name, in the form that [`of_rank`] reads.
pub fn replaced(dialect: &Dialect, name: &Path) -> PathBuf {
    let name = name.to_string_lossy();
    // Of Slurm: a backslash ends all replacement.
    if dialect.pads_numbers && name.contains('\\') {
        return PathBuf::from(escaped(&name.replace('\\', "")));
    }
    let mut text = String::new();
    let mut rest = &*name;
    while let Some(first) = rest.chars().next() {
        let (word, new) = symbol_at(dialect, rest)
            .unwrap_or_else(|| (first.len_utf8(), escaped(&rest[..first.len_utf8()])));
        text += &new;
        rest = &rest[word..];
    }
    PathBuf::from(text)
}

/// The length of the symbol with which a text begins, and its value.
fn symbol_at(dialect: &Dialect, text: &str) -> Option<(usize, String)> {
    let digits = match text.strip_prefix('%').filter(|_| dialect.pads_numbers) {
        Some(rest) => rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len(),
        None => 0,
    };
    let mut names = dialect.symbols.iter();
    let found = names.find_map(|(name, symbol)| {
        let length = match name.strip_prefix('%') {
            Some(name) => text.strip_prefix('%')?[digits..]
                .starts_with(name)
                .then(|| 1 + digits + name.len())?,
            None => text.starts_with(name).then_some(name.len())?,
        };
        Some((length, padded(&value(*symbol), &text[1..=digits])))
    });
    let letter = text.as_bytes().get(1 + digits);
    match found {
        None if text.starts_with('%') && letter == Some(&b't') => {
            Some((digits + 2, text[..digits + 2].to_owned()))
        }
        None if dialect.pads_numbers && text.starts_with("%%") => Some((2, "%%".to_owned())),
        _ => found.map(|(length, value)| (length, escaped(&value))),
    }
}

fn escaped(text: &str) -> String {
    text.replace('%', "%%")
}

/// Numbers get leading zeros up to a width.
fn padded(value: &str, width: &str) -> String {
    match width.parse::<usize>() {
        Ok(width) if value.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("{value:0>width$}", width = width.min(WIDTH_MAX))
        }
        _ => value.to_owned(),
    }
}

/// Whether each task has its own file with this name.
pub fn is_of_each_task(name: &Path) -> bool {
    of_rank(name, "0") != of_rank(name, "1")
}

/// The file of a task.
pub fn of_rank(name: &Path, rank: &str) -> PathBuf {
    let name = name.to_string_lossy();
    let mut parts = name.split('%');
    let mut text = parts.next().unwrap_or_default().to_owned();
    while let Some(part) = parts.next() {
        match part.find(|c: char| !c.is_ascii_digit()) {
            Some(width) if part[width..].starts_with('t') => {
                text += &padded(rank, &part[..width]);
                text += &part[width + 1..];
            }
            // The second one of two is part of the name.
            _ => {
                text += "%";
                text += parts.next().unwrap_or_default();
            }
        }
    }
    PathBuf::from(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flux::FLUX_RUN;
    use crate::srun::SRUN;

    #[test]
    fn symbols_are_replaced_with_their_width() {
        for (name, expected) in [
            ("a%t", "a7"),
            ("a%3t.%12t", "a007.0000000007"),
            ("%n%3n%5N%%t%%", &format!("0000{}%t%", system::hostname())),
            ("%2a", NO_ARRAY_TASK),
            ("%q%3q%", "%q%3q%"),
            ("a\\%t%n", "a%t%n"),
        ] {
            let found = replaced(&SRUN, Path::new(name));
            assert_eq!(of_rank(&found, "7"), Path::new(expected), "{name}");
        }
        for (name, expected) in [("{{node.id}}%%5%t%3t", "0%%57%3t"), ("%n", "%n")] {
            let found = replaced(&FLUX_RUN, Path::new(name));
            assert_eq!(of_rank(&found, "7"), Path::new(expected), "{name}");
        }
    }

    #[test]
    fn only_a_rank_makes_files_of_each_task() {
        for (name, expected) in [("a%t", true), ("%03t", true), ("%%t", false), ("%j%s", false)] {
            assert_eq!(is_of_each_task(&replaced(&SRUN, Path::new(name))), expected, "{name}");
        }
    }
}
