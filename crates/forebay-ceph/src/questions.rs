//! Commands to the monitors and their answers.
//! Commands sent at once have no order. After a failure of one, others are still sent and carried out.

use std::sync::atomic::{AtomicUsize, Ordering};

use forebay_host::threads;
use serde_json::{Map, Value};

use crate::actions::prefix;
use crate::error::Error;
use crate::monitors::Monitors;

/// The most commands on their way at a time.
const AT_ONCE: usize = 64;

pub(crate) fn command(command: Value) -> Map<String, Value> {
    match command {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

pub(crate) fn not_understood(prefix: &str, reason: String) -> Error {
    Error::Answer { prefix: prefix.to_owned(), reason }
}

pub(crate) fn ask(
    monitors: &Monitors,
    command: &Map<String, Value>,
    input: &str,
) -> Result<Vec<u8>, Error> {
    let answer = monitors.command(&Value::Object(command.clone()), input.as_bytes());
    answer.map_err(|error| Error::Command { prefix: prefix(command).to_owned(), error })
}

/// Sends the commands in several threads. Returns the answers in the order of the commands (null if all are
/// empty), or the first failure.
pub(crate) fn ask_at_once(
    monitors: &Monitors,
    commands: &[Map<String, Value>],
) -> Result<Value, Error> {
    let next = AtomicUsize::new(0);
    let work = || -> Result<Vec<(usize, Value)>, Error> {
        let mut answers = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(command) = commands.get(number) else { return Ok(answers) };
            answers.push((number, value_of(&ask(monitors, command, "")?)));
        }
    };
    let answers = std::thread::scope(|scope| {
        let threads = commands.len().min(AT_ONCE);
        let started: Result<Vec<_>, Error> =
            (0..threads).map(|_| Ok(threads::spawn_scoped(scope, work)?)).collect();
        let mut answers = Vec::new();
        for thread in started? {
            let panicked = |_| threads::error(std::io::Error::other("a thread was given up"));
            answers.extend(thread.join().map_err(panicked)??);
        }
        Ok::<_, Error>(answers)
    });
    let mut answers: Vec<(usize, Value)> = answers?;
    if answers.iter().all(|(_, answer)| answer.is_null()) {
        return Ok(Value::Null);
    }
    answers.sort_by_key(|(number, _)| *number);
    Ok(answers.into_iter().map(|(_, answer)| answer).collect())
}

/// The answer as JSON, otherwise as text; null if there is none.
pub(crate) fn value_of(answer: &[u8]) -> Value {
    if answer.is_empty() {
        return Value::Null;
    }
    serde_json::from_slice(answer)
        .unwrap_or_else(|_| String::from_utf8_lossy(answer).trim_end().into())
}
