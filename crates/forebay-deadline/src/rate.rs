//! How fast stage-out goes.

use serde::Serialize;

/// What is known of the speed of staging.
#[derive(Debug, Clone, Copy)]
pub struct Measurements {
    /// Bytes and seconds of this job's stage-in.
    pub stage_in: Option<(u64, f64)>,
    /// Asks for bytes and seconds of earlier stage-outs, the newest first.
    pub earlier: fn() -> Vec<(u64, f64)>,
    /// Stage-out writes no more than this.
    pub bytes_per_s_max: Option<u64>,
}

/// A speed, and how it is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rate {
    pub(crate) bytes_per_s: f64,
    pub(crate) source: RateSource,
}

/// Where nothing was measured: what one node gets from a busy parallel file system.
const DEFAULT_BYTES_PER_S: f64 = 100e6;
/// A smaller sample is ignored.
const MIN_SAMPLE_BYTES: u64 = 16 << 20;
/// Writing and syncing is taken to be so many times slower than reading.
const OUT_PER_IN: f64 = 0.5;

/// How the speed is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RateSource {
    /// `--drain-rate`.
    Given,
    /// `--stage-rate`, of which no stage-out is faster.
    StageRate,
    /// What this job's own drain does, since it is slower than the others say.
    OwnDrain,
    /// The slowest of the last stage-outs on record.
    EarlierStageOut,
    /// Half of what this job's stage-in did.
    StageIn,
    /// Nowhere.
    Assumed,
}

impl Rate {
    /// The slower of the two, whatever the user gave.
    pub(crate) fn at_most(self, limit: Option<u64>) -> Self {
        #[allow(clippy::cast_precision_loss)]
        let limit = limit.map(|limit| limit.max(1) as f64);
        self.or_slower(limit, RateSource::StageRate)
    }

    /// The slower of the two, unless the user gave it. A drain yields to the job, so that its speed may let the
    /// job end too early, but not too late.
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

/// What stage-out is reckoned with when the end becomes known.
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
    let earlier = (measurements.earlier)().into_iter();
    let earlier = earlier.filter_map(|(bytes, seconds)| speed(bytes, seconds));
    if let Some(slowest) = earlier.take(5).reduce(f64::min) {
        return known(slowest, RateSource::EarlierStageOut);
    }
    match measurements.stage_in.and_then(|(bytes, seconds)| speed(bytes, seconds)) {
        Some(read) => known(read * OUT_PER_IN, RateSource::StageIn),
        None => known(DEFAULT_BYTES_PER_S, RateSource::Assumed),
    }
}
