//! When the scheduler ends the job that we are part of.

use std::process::Command;
use std::time::{Duration, Instant};

use forebay_host::clock;
use forebay_host::process::{answer_of, command};

/// A scheduler that does not answer within this time is not waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// The end, and who says so.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct End {
    /// Seconds since 1970. Nothing is reckoned with it: the machine's clock may be set meanwhile.
    pub(super) unix_s: f64,
    /// What was left when it became known.
    left_s: f64,
    known: Instant,
    pub(super) told_by: &'static str,
    /// A change by less may be the way in which it is told.
    pub(super) exact_within_s: f64,
}

impl End {
    pub(super) fn left_s(&self) -> f64 {
        self.left_s - self.known.elapsed().as_secs_f64()
    }
}

const SECONDS: f64 = 2.0;
const MINUTES: f64 = 90.0;

/// Asks the scheduler, as long as it is to go on. None if it sets no end.
///
/// # Errors
/// Why it is not known.
pub(super) fn ask(go_on: &dyn Fn() -> bool) -> Result<Option<End>, String> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    if let Some(job) = variable("SLURM_JOB_ID") {
        return slurm(&job, go_on);
    }
    if let Some(job) = variable("LSB_JOBID") {
        return lsf(&job, go_on);
    }
    if let Some(job) = variable("PBS_JOBID") {
        return pbs(&job, go_on);
    }
    if std::env::var_os("FLUX_URI").is_some() {
        return flux(go_on);
    }
    Ok(None)
}

/// What the scheduler has in the job's environment: true when the job began.
pub(super) fn in_environment() -> Option<End> {
    let value = std::env::var("SLURM_JOB_END_TIME").ok()?; // Slurm 23.02 and newer
    let unix_s = value.parse().ok().filter(|seconds| *seconds > 0.0)?;
    Some(at(unix_s, "SLURM_JOB_END_TIME"))
}

fn answer(
    name: &'static str,
    arguments: &[&str],
    go_on: &dyn Fn() -> bool,
) -> Result<String, String> {
    let mut asked: Command = command(name);
    // As a number: no time zone is in doubt.
    asked.args(arguments).env("SLURM_TIME_FORMAT", "%s");
    let said = answer_of(asked, PATIENCE, go_on).map_err(|error| error.to_string())?;
    said.ok_or_else(|| format!("{name} did not answer within {} s", PATIENCE.as_secs()))
}

fn misunderstood(name: &str, said: &str) -> String {
    format!("{name} says \"{}\"", said.trim())
}

fn at(unix_s: f64, told_by: &'static str) -> End {
    known(unix_s, unix_s - clock::unix_seconds(), told_by)
}

fn known(unix_s: f64, left_s: f64, told_by: &'static str) -> End {
    End {
        unix_s,
        left_s,
        known: clock::now(),
        told_by,
        exact_within_s: SECONDS,
    }
}

/// `seconds` from now.
pub(super) fn after(seconds: f64, told_by: &'static str) -> End {
    known(clock::unix_seconds() + seconds, seconds, told_by)
}

/// The same, told in minutes.
fn after_about(seconds: f64, told_by: &'static str) -> End {
    let exact_within_s = MINUTES;
    End {
        exact_within_s,
        ..after(seconds, told_by)
    }
}

fn slurm(job: &str, go_on: &dyn Fn() -> bool) -> Result<Option<End>, String> {
    let said = answer("squeue", &["-h", "-j", job, "-o", "%e"], go_on)?;
    match said.trim() {
        "N/A" | "NONE" => Ok(None),
        word => {
            let end = word.parse().map(|unix_s| Some(at(unix_s, "squeue")));
            end.map_err(|_| misunderstood("squeue", &said))
        }
    }
}

/// `bjobs` gives hours and minutes, with the letter L where a run limit is what they count to.
fn lsf(job: &str, go_on: &dyn Fn() -> bool) -> Result<Option<End>, String> {
    let said = answer("bjobs", &["-noheader", "-o", "time_left", job], go_on)?;
    match lsf_left(&said) {
        Some(left) => Ok(left.map(|seconds| after_about(seconds, "bjobs"))),
        None => Err(misunderstood("bjobs", &said)),
    }
}

fn lsf_left(said: &str) -> Option<Option<f64>> {
    let words: Vec<_> = said.split_whitespace().collect();
    let time = match words[..] {
        ["-"] | [_, "E" | "X"] => return Some(None),
        [time] | [time, "L"] => time,
        _ => return None,
    };
    // With seconds where LSB_HMS_TIME_FORMAT is set.
    let smallest_s = match time.split(':').count() {
        2 => 60.0,
        3 => 1.0,
        _ => return None,
    };
    Some(Some(colons(time)? * smallest_s))
}

fn pbs(job: &str, go_on: &dyn Fn() -> bool) -> Result<Option<End>, String> {
    let said = answer("qstat", &["-f", job], go_on)?;
    let value = |name: &str| {
        let of_line = |line: &'_ str| {
            let (found, value) = line.split_once(" = ")?;
            (found.trim() == name).then(|| value.trim().to_owned())
        };
        said.lines().find_map(of_line)
    };
    // Torque says what is left; PBS Pro and OpenPBS what was given, and when it began.
    if let Some(left) = value("Walltime.Remaining").and_then(|left| left.parse().ok()) {
        return Ok(Some(after_about(left, "qstat")));
    }
    let Some(given) = value("Resource_List.walltime") else {
        return if said.contains("Job_Name") {
            Ok(None)
        } else {
            Err(misunderstood("qstat", &said))
        };
    };
    let began = value("stime").or_else(|| value("start_time"));
    let began = began.and_then(|began| {
        let said = answer("date", &["-d", &began, "+%s"], go_on).ok()?;
        said.trim().parse::<f64>().ok()
    });
    match (colons(&given), began) {
        (Some(seconds), Some(began)) => Ok(Some(at(began + seconds, "qstat"))),
        _ => Err(misunderstood("qstat", &given)),
    }
}

/// `H:M:S` and shorter.
fn colons(text: &str) -> Option<f64> {
    text.split(':').try_fold(0.0, |sum, part| {
        let part: u32 = part.parse().ok()?;
        Some(sum * 60.0 + f64::from(part))
    })
}

fn flux(go_on: &dyn Fn() -> bool) -> Result<Option<End>, String> {
    let said = answer("flux", &["job", "timeleft"], go_on)?;
    match said.trim().parse::<f64>() {
        // The largest number that there is says that there is no limit.
        Ok(seconds) if seconds.is_finite() && seconds < f64::from(u32::MAX) => {
            Ok(Some(after(seconds, "flux job timeleft")))
        }
        Ok(_) => Ok(None),
        Err(_) => Err(misunderstood("flux job timeleft", &said)),
    }
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

    #[test]
    fn times_between_colons_are_read() {
        assert_eq!(colons("00:10:05"), Some(605.0));
        assert_eq!(colons("90"), Some(90.0));
        assert_eq!(colons("1:x"), None);
    }
}
