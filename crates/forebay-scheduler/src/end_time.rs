//! The time when the scheduler ends the current job.

use std::time::Instant;

use forebay_host::clock;

/// The end of the job, and the source of this information.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EndTime {
    /// Seconds since 1970, for display only: the clock may be set while the job runs.
    pub unix_s: f64,
    /// The time left when it became known.
    left_s: f64,
    known: Instant,
    /// The source, such as a command or a variable.
    pub source: &'static str,
    /// Smaller changes may be due to rounding.
    pub resolution_s: f64,
}

impl EndTime {
    /// The end in the job's environment, as of the start of the job.
    pub fn from_environment() -> Option<Self> {
        let value = std::env::var("SLURM_JOB_END_TIME").ok()?; // Slurm 23.02 and newer
        let unix_s = value.parse().ok().filter(|seconds| *seconds > 0.0)?;
        Some(at(unix_s, "SLURM_JOB_END_TIME"))
    }

    /// An end that is this many seconds from now.
    pub fn after(seconds: f64, source: &'static str) -> Self {
        known(clock::unix_seconds() + seconds, seconds, source)
    }

    /// The time left now.
    pub fn left_s(&self) -> f64 {
        self.left_s - self.known.elapsed().as_secs_f64()
    }
}

const SECONDS: f64 = 2.0;
const MINUTES: f64 = 90.0;

pub(crate) fn at(unix_s: f64, source: &'static str) -> EndTime {
    known(unix_s, unix_s - clock::unix_seconds(), source)
}

fn known(unix_s: f64, left_s: f64, source: &'static str) -> EndTime {
    EndTime { unix_s, left_s, known: clock::now(), source, resolution_s: SECONDS }
}

/// The same, from a scheduler that counts in minutes.
pub(crate) fn after_minutes(seconds: f64, source: &'static str) -> EndTime {
    let resolution_s = MINUTES;
    EndTime { resolution_s, ..EndTime::after(seconds, source) }
}
