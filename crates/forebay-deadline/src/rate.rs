//! Estimates the rate of stage-out.
//! Assumes that earlier stage-outs come newest first: five of them count. A rate is never zero.

use schemars::JsonSchema;
use serde::Serialize;

/// Measurements of staging.
#[derive(Debug, Clone, Copy)]
pub struct Measurements {
    /// Bytes and seconds of this job's stage-in.
    pub stage_in: Option<(u64, f64)>,
    /// The nodes that will copy.
    pub nodes: usize,
    /// Returns bytes and seconds of earlier stage-outs by at most so many nodes, newest first.
    pub earlier: fn(usize) -> Vec<(u64, f64)>,
    /// The maximum rate of stage-out.
    pub bytes_per_s_max: Option<u64>,
}

/// A rate and its source.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rate {
    pub(crate) bytes_per_s: f64,
    pub(crate) source: RateSource,
}

/// The default without measurements: a typical rate of one node on a busy parallel file system.
const DEFAULT_BYTES_PER_S: f64 = 100e6;
/// Smaller samples are ignored.
const MIN_SAMPLE_BYTES: u64 = 16 << 20;
/// The assumed ratio of stage-out to stage-in rates: writing and syncing is slower than reading.
const OUT_PER_IN: f64 = 0.5;

/// The source of a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RateSource {
    /// `--drain-rate`.
    Given,
    /// `--stage-rate`, which limits stage-out.
    StageRate,
    /// The job's own drain, if it is slower than the other rates.
    OwnDrain,
    /// The slowest of the recent stage-outs on record.
    EarlierStageOut,
    /// Half of the rate of this job's stage-in.
    StageIn,
    /// The default.
    Assumed,
}

impl Rate {
    /// The slower of the two, even if the user set the rate.
    pub(crate) fn at_most(self, limit: Option<u64>) -> Self {
        #[allow(clippy::cast_precision_loss)]
        let limit = limit.map(|limit| limit.max(1) as f64);
        self.or_slower(limit, RateSource::StageRate)
    }

    /// The slower of the two, unless the user set the rate. A drain yields to the job, so its rate
    /// may end the job too early, but never too late.
    pub(crate) fn or_drain(self, drain_bytes_per_s: Option<f64>) -> Self {
        let drain = drain_bytes_per_s.filter(|_| self.source != RateSource::Given);
        self.or_slower(drain, RateSource::OwnDrain)
    }

    fn or_slower(self, other: Option<f64>, source: RateSource) -> Self {
        match other {
            Some(bytes_per_s) if bytes_per_s < self.bytes_per_s => Self { bytes_per_s, source },
            _ => self,
        }
    }
}

/// The rate to use when the end becomes known.
pub(crate) fn rate(given: Option<u64>, measurements: &Measurements) -> Rate {
    let known = |bytes_per_s, source| Rate { bytes_per_s, source };
    #[allow(clippy::cast_precision_loss)]
    let speed = |bytes: u64, seconds: f64| {
        (bytes >= MIN_SAMPLE_BYTES && seconds > 0.0).then(|| bytes as f64 / seconds)
    };
    #[allow(clippy::cast_precision_loss)]
    if let Some(given) = given {
        return known(given.max(1) as f64, RateSource::Given);
    }
    let earlier = (measurements.earlier)(measurements.nodes).into_iter();
    let earlier = earlier.filter_map(|(bytes, seconds)| speed(bytes, seconds));
    if let Some(slowest) = earlier.take(5).reduce(f64::min) {
        return known(slowest, RateSource::EarlierStageOut);
    }
    match measurements.stage_in.and_then(|(bytes, seconds)| speed(bytes, seconds)) {
        Some(read) => known(read * OUT_PER_IN, RateSource::StageIn),
        None => known(DEFAULT_BYTES_PER_S, RateSource::Assumed),
    }
}
