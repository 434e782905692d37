//! Resolves the ids that users type: a whole id, `last`, or the beginning or the end of an id.
//! `forebay.profiles.records` has the same rule for the verbs in Python; `short_ids.json` tests both.

use forebay_record::{RecordFile, records};
use forebay_recovery::{self as recovery, JobState};
use forebay_terminal::{CliError, print_status};

/// The newest job or staging that a command can apply to.
pub const LAST: &str = "last";
/// Fewest digits of a part of an id.
const PART_DIGITS_MIN: usize = 3;
/// Number of candidates that an error names.
const NAMED_MAX: usize = 5;

/// A job or a staging that a user can name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Its id.
    pub id: String,
    /// What it is, for messages: the script, or the paths.
    pub what: String,
}

/// The whole id. Says on standard error which one it is, if the user wrote another form. A text that matches
/// nothing is returned as it is, so that the command can say what it misses. `can_be_last`: whether the command
/// can apply to this id.
///
/// # Errors
/// If several ids match, or `last` has no match.
pub fn resolve(
    wanted: &str,
    candidates: &[Candidate],
    can_be_last: impl Fn(&str) -> Result<bool, CliError>,
) -> Result<String, CliError> {
    let found = if wanted == LAST {
        Some(last(candidates, can_be_last)?)
    } else {
        matching(wanted, candidates)?
    };
    let Some(found) = found.filter(|found| found.id != wanted) else {
        return Ok(wanted.to_owned());
    };
    print_status(&format!("{wanted} is {} ({})", found.id, found.what));
    Ok(found.id.clone())
}

fn last(
    candidates: &[Candidate],
    can_be_last: impl Fn(&str) -> Result<bool, CliError>,
) -> Result<&Candidate, CliError> {
    let mut newest: Vec<_> = candidates.iter().collect();
    newest.sort_by_key(|one| std::cmp::Reverse(began_unix_ms(&one.id)));
    for one in newest {
        if can_be_last(&one.id)? {
            return Ok(one);
        }
    }
    let hint = "forebay jobs lists jobs, forebay stage list lists stagings";
    Err(CliError::new("last: nothing is left that this command applies to").with_hint(hint))
}

fn matching<'a>(
    wanted: &str,
    candidates: &'a [Candidate],
) -> Result<Option<&'a Candidate>, CliError> {
    if let Some(exact) = candidates.iter().find(|one| one.id == wanted) {
        return Ok(Some(exact));
    }
    let is_part = |one: &&Candidate| {
        wanted.len() >= PART_DIGITS_MIN && (one.id.starts_with(wanted) || one.id.ends_with(wanted))
    };
    let mut found: Vec<_> = candidates.iter().filter(is_part).collect();
    found.dedup_by(|a, b| a.id == b.id);
    if found.len() < 2 {
        return Ok(found.first().copied());
    }
    let named = found.iter().take(NAMED_MAX).map(|one| format!("{} ({})", one.id, one.what));
    let more = if found.len() > NAMED_MAX { ", ..." } else { "" };
    let names = named.collect::<Vec<_>>().join(", ");
    let message = format!("{wanted} is a part of {} ids: {names}{more}", found.len());
    Err(CliError::new(message).with_hint("write more digits, from the beginning or from the end"))
}

/// The start time in an id: milliseconds, followed by a random number if that name was taken.
pub fn began_unix_ms(id: &str) -> u128 {
    const MILLISECONDS_MAX: u128 = 1_000_000_000_000_000;
    let number = id.parse().unwrap_or(0);
    if number > MILLISECONDS_MAX { number / forebay_record::RANDOM_MAX } else { number }
}

/// A job as a candidate.
pub fn of_job(job: &RecordFile) -> Candidate {
    Candidate { id: job.record.id.clone(), what: job.record.script.clone() }
}

/// As [`resolve`], of jobs with a record: those that run, and leftovers. `can_be_last` gets the job and its state.
///
/// # Errors
/// As [`resolve`], or if the records cannot be read.
pub fn resolve_job(
    wanted: &str,
    can_be_last: impl Fn(&RecordFile, &JobState) -> bool,
) -> Result<String, CliError> {
    let found = records().map_err(recovery::Error::from)?.found;
    let candidates: Vec<_> = found.iter().map(of_job).collect();
    resolve(wanted, &candidates, |id| {
        let job = found.iter().find(|job| job.record.id == id);
        let state = job.map(|job| Ok::<_, CliError>((job, recovery::state(job)?))).transpose()?;
        Ok(state.is_some_and(|(job, state)| can_be_last(job, &state)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize)]
    struct Case {
        ids: Vec<String>,
        wanted: String,
        /// The resolved id; null: there is no such id; false: several.
        is: serde_json::Value,
    }

    #[test]
    fn short_ids_select_jobs_as_the_table_says() {
        let cases: Vec<Case> =
            serde_json::from_str(include_str!("short_ids.json")).expect("a table");
        for Case { ids, wanted, is } in cases {
            let candidates: Vec<_> =
                ids.iter().map(|id| Candidate { id: id.clone(), what: String::new() }).collect();
            let found = if wanted == LAST {
                last(&candidates, |_| Ok(true)).map(Some)
            } else {
                matching(&wanted, &candidates)
            };
            let found = match found {
                Ok(found) => found.map_or(serde_json::Value::Null, |one| one.id.clone().into()),
                Err(_) => false.into(),
            };
            assert_eq!(found, is, "{wanted} of {ids:?}");
        }
    }
}
