//! The report on the deadline of a job.

use schemars::JsonSchema;
use serde::Serialize;

use crate::rate::RateSource;

/// The report on the deadline, as `--json` shows it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct DeadlineAccount {
    /// When the scheduler ends the job, in seconds since 1970.
    pub end_unix_s: f64,
    /// The source of this time.
    pub told_by: &'static str,
    /// The rate of stage-out used in the calculation.
    pub drain_bytes_per_s: f64,
    /// The source of this rate.
    pub drain_rate_from: RateSource,
    /// The warnings about the remaining time.
    pub warnings: Vec<String>,
    /// The number of processes that got the signal; none if it was not sent.
    pub signalled: Option<usize>,
    /// Whether Forebay ended the job to leave time for stage-out.
    pub ended_job: bool,
}
