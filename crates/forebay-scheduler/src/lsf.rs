//! Spectrum LSF 10.1: `#BSUB` lines (bsub(1)), whose options are words after one dash; variables of
//! a job; and the end time from bjobs(1).

use std::time::Duration;

use crate::dialect::{Dialect, Meaning as M, meaning};
use crate::end_time::{EndTime, after_minutes};
use crate::job_facts::{Facts, Names};
use crate::quantity::{mixed_radix, parse_hms};
use crate::scheduler_program::{parse_error, run_command};

pub(crate) static DIALECT: Dialect = Dialect {
    options: &[
        (&["-J"], M::JobNameAndArray),
        (&["-n"], M::Tasks),
        (&["-nnodes"], M::Nodes),
        (&["-cwd"], M::Directory),
        (&["-q"], M::Partition),
        (&["-P"], M::Account),
        (&["-o", "-oo"], M::Output),
        (&["-e", "-eo"], M::Error),
        (&["-W"], M::TimeLimit),
        (&["-alloc_flags"], M::Features),
    ],
    split: split_option,
    time,
    time_form: "[hours:]minutes",
    memory_unit_bytes: 1 << 10,
};

/// Splits `-W10` and `-n16`. Other options have no attached values: `-oo` and `-nnodes` are
/// options.
fn split_option(word: &str) -> (&str, Option<&str>) {
    let begins_with_digit = |value: &&str| value.starts_with(|c: char| c.is_ascii_digit());
    match word.split_at_checked(2) {
        Some((name, value))
            if begins_with_digit(&value) && meaning(DIALECT.options, name).is_some() =>
        {
            (name, Some(value))
        }
        _ => (word, None),
    }
}

/// A host name may follow, which LSF uses to scale the time. It is ignored.
fn time(text: &str) -> Option<Duration> {
    let time = text.split('/').next()?;
    mixed_radix(time, &[&[60], &[3600, 60]]).map(Duration::from_secs)
}

/// The limit for the value of a variable, below that of Linux.
const LONGEST_BYTES: usize = 100_000;

pub(crate) fn variables(facts: &Facts, set: &mut dyn FnMut(Names)) {
    let tasks: usize = facts.tasks.parse().unwrap_or(1);
    let hosts = vec![facts.host.as_str(); tasks].join(" ");
    let host_and_tasks = format!("{} {tasks}", facts.host);
    let table: &[Names] = &[
        (&["LSB_JOBID", "LSB_BATCH_JID"], facts.id),
        (&["LSB_JOBINDEX"], "0".as_ref()),
        (&["LSB_JOBNAME"], facts.name.as_ref()),
        // bsub uses the default queue if none is named. LSF's own default is "normal".
        (&["LSB_QUEUE"], facts.partition.unwrap_or("normal").as_ref()),
        (&["LSB_MCPU_HOSTS"], host_and_tasks.as_ref()),
        (&["LSB_DJOB_HOSTFILE"], &facts.node_file),
        (&["LSB_DJOB_NUMPROC"], facts.tasks.as_ref()),
        (&["LSB_SUB_HOST"], facts.host.as_ref()),
        (&["LS_SUBCWD"], facts.submit_directory),
    ];
    table.iter().for_each(|line| set(*line));
    if hosts.len() < LONGEST_BYTES {
        set((&["LSB_HOSTS"], hosts.as_ref()));
    }
    if let Some(account) = facts.account {
        set((&["LSB_PROJECT_NAME"], account.as_ref()));
    }
}

/// `bjobs` prints hours and minutes, followed by L for a run limit.
pub(crate) fn query_end_time(
    job: &str,
    should_continue: &dyn Fn() -> bool,
) -> Result<Option<EndTime>, String> {
    let output = run_command("bjobs", &["-noheader", "-o", "time_left", job], should_continue)?;
    match lsf_left(&output) {
        Some(left) => Ok(left.map(|seconds| after_minutes(seconds, "bjobs"))),
        None => Err(parse_error("bjobs", &output)),
    }
}

fn lsf_left(output: &str) -> Option<Option<f64>> {
    let words: Vec<_> = output.split_whitespace().collect();
    let time = match words[..] {
        ["-"] | [_, "E" | "X"] => return Some(None),
        [time] | [time, "L"] => time,
        _ => return None,
    };
    // LSF adds seconds if LSB_HMS_TIME_FORMAT is set.
    let smallest_s = match time.split(':').count() {
        2 => 60.0,
        3 => 1.0,
        _ => return None,
    };
    Some(Some(parse_hms(time)? * smallest_s))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_and_minutes_of_a_run_limit_are_read() {
        assert_eq!(lsf_left("0:23 L\n"), Some(Some(1380.0)));
        assert_eq!(lsf_left("12:05 L"), Some(Some(43500.0)));
        assert_eq!(lsf_left("12:05:07 L"), Some(Some(43507.0)));
        assert_eq!(lsf_left("12"), None);
        assert_eq!(lsf_left("12:05 E"), Some(None), "an estimate ends no job");
        assert_eq!(lsf_left("-"), Some(None));
        assert_eq!(lsf_left("Job <7> is not found"), None);
        assert_eq!(lsf_left(""), None);
    }
}
