//! What was done about the end of a job.

use serde::Serialize;

use crate::rate::RateSource;

/// What became of the time, as `--json` shows it.
#[derive(Debug, Clone, Serialize)]
pub struct DeadlineAccount {
    /// When the scheduler ends the job, in seconds since 1970.
    pub end_unix_s: f64,
    /// Who says so.
    pub told_by: &'static str,
    /// Speed of stage-out that was reckoned with.
    pub drain_bytes_per_s: f64,
    /// How it is known.
    pub drain_rate_from: RateSource,
    /// What was said of the time left.
    pub warnings: Vec<String>,
    /// Processes that got the signal; none if it was not sent.
    pub signalled: Option<usize>,
    /// The job was ended so that stage-out had time.
    pub ended_job: bool,
}
