//! When the scheduler ends the job that we are part of.

use std::process::Command;
use std::time::{Duration, Instant};

use forebay_host::clock;
use forebay_host::process::{answer_of, command};

/// A scheduler that does not answer within this time is not waited for.
const QUERY_TIMEOUT: Duration = Duration::from_secs(5);

/// The end, and who says so.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EndTime {
    /// Seconds since 1970. Nothing is reckoned with it: the machine's clock may be set meanwhile.
    pub unix_s: f64,
    /// What was left when it became known.
    left_s: f64,
    known: Instant,
    /// Who says so.
    pub source: &'static str,
    /// A change by less may be the way in which it is told.
    pub resolution_s: f64,
}

impl EndTime {
    /// Asks the scheduler, as long as it is to go on. None if it sets no end.
    ///
    /// # Errors
    /// Why it is not known.
    pub fn query(go_on: &dyn Fn() -> bool) -> Result<Option<Self>, String> {
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
    #[must_use]
    pub fn from_environment() -> Option<Self> {
        let value = std::env::var("SLURM_JOB_END_TIME").ok()?; // Slurm 23.02 and newer
        let unix_s = value.parse().ok().filter(|seconds| *seconds > 0.0)?;
        Some(at(unix_s, "SLURM_JOB_END_TIME"))
    }

    /// An end that is so many seconds from now.
    #[must_use]
    pub fn after(seconds: f64, source: &'static str) -> Self {
        known(clock::unix_seconds() + seconds, seconds, source)
    }

    /// What is left of the time now.
    #[must_use]
    pub fn left_s(&self) -> f64 {
        self.left_s - self.known.elapsed().as_secs_f64()
    }
}

const SECONDS: f64 = 2.0;
const MINUTES: f64 = 90.0;

fn run_command(
    name: &'static str,
    arguments: &[&str],
    go_on: &dyn Fn() -> bool,
) -> Result<String, String> {
    let mut asked: Command = command(name);
    // As a number: no time zone is in doubt.
    asked.args(arguments).env("SLURM_TIME_FORMAT", "%s");
    let said = answer_of(asked, QUERY_TIMEOUT, go_on).map_err(|error| error.to_string())?;
    said.ok_or_else(|| format!("{name} did not answer within {} s", QUERY_TIMEOUT.as_secs()))
}

fn parse_error(name: &str, said: &str) -> String {
    format!("{name} says \"{}\"", said.trim())
}

fn at(unix_s: f64, source: &'static str) -> EndTime {
    known(unix_s, unix_s - clock::unix_seconds(), source)
}

fn known(unix_s: f64, left_s: f64, source: &'static str) -> EndTime {
    EndTime {
        unix_s,
        left_s,
        known: clock::now(),
        source,
        resolution_s: SECONDS,
    }
}

/// In seconds from now, as a scheduler says that counts in minutes.
fn after_minutes(seconds: f64, source: &'static str) -> EndTime {
    let resolution_s = MINUTES;
    EndTime {
        resolution_s,
        ..EndTime::after(seconds, source)
    }
}

fn slurm(job: &str, go_on: &dyn Fn() -> bool) -> Result<Option<EndTime>, String> {
    let said = run_command("squeue", &["-h", "-j", job, "-o", "%e"], go_on)?;
    match said.trim() {
        "N/A" | "NONE" => Ok(None),
        word => {
            let end = word.parse().map(|unix_s| Some(at(unix_s, "squeue")));
            end.map_err(|_| parse_error("squeue", &said))
        }
    }
}

/// `bjobs` gives hours and minutes, with the letter L where a run limit is what they count to.
fn lsf(job: &str, go_on: &dyn Fn() -> bool) -> Result<Option<EndTime>, String> {
    let said = run_command("bjobs", &["-noheader", "-o", "time_left", job], go_on)?;
    match lsf_left(&said) {
        Some(left) => Ok(left.map(|seconds| after_minutes(seconds, "bjobs"))),
        None => Err(parse_error("bjobs", &said)),
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
    Some(Some(parse_hms(time)? * smallest_s))
}

fn pbs(job: &str, go_on: &dyn Fn() -> bool) -> Result<Option<EndTime>, String> {
    let said = run_command("qstat", &["-f", job], go_on)?;
    let value = |name: &str| {
        let of_line = |line: &'_ str| {
            let (found, value) = line.split_once(" = ")?;
            (found.trim() == name).then(|| value.trim().to_owned())
        };
        said.lines().find_map(of_line)
    };
    // Torque says what is left; PBS Pro and OpenPBS what was given, and when it began.
    if let Some(left) = value("Walltime.Remaining").and_then(|left| left.parse().ok()) {
        return Ok(Some(after_minutes(left, "qstat")));
    }
    let Some(given) = value("Resource_List.walltime") else {
        return if said.contains("Job_Name") {
            Ok(None)
        } else {
            Err(parse_error("qstat", &said))
        };
    };
    let began = value("stime").or_else(|| value("start_time"));
    let began = began.and_then(|began| {
        let said = run_command("date", &["-d", &began, "+%s"], go_on).ok()?;
        said.trim().parse::<f64>().ok()
    });
    match (parse_hms(&given), began) {
        (Some(seconds), Some(began)) => Ok(Some(at(began + seconds, "qstat"))),
        _ => Err(parse_error("qstat", &given)),
    }
}

/// `H:M:S` and shorter.
fn parse_hms(text: &str) -> Option<f64> {
    text.split(':').try_fold(0.0, |sum, part| {
        let part: u32 = part.parse().ok()?;
        Some(sum * 60.0 + f64::from(part))
    })
}

fn flux(go_on: &dyn Fn() -> bool) -> Result<Option<EndTime>, String> {
    let said = run_command("flux", &["job", "timeleft"], go_on)?;
    match said.trim().parse::<f64>() {
        // The largest number that there is says that there is no limit.
        Ok(seconds) if seconds.is_finite() && seconds < f64::from(u32::MAX) => {
            Ok(Some(EndTime::after(seconds, "flux job timeleft")))
        }
        Ok(_) => Ok(None),
        Err(_) => Err(parse_error("flux job timeleft", &said)),
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
    fn times_between_parse_hms_are_read() {
        assert_eq!(parse_hms("00:10:05"), Some(605.0));
        assert_eq!(parse_hms("90"), Some(90.0));
        assert_eq!(parse_hms("1:x"), None);
    }
}
