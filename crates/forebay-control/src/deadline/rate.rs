//! How fast stage-out goes.

use serde::Serialize;

use crate::Staged;

/// A speed, and whence it is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rate {
    pub(super) bytes_per_s: f64,
    pub(super) from: Measured,
}

/// Where nothing was measured: what one node gets from a busy parallel file system.
const CAUTIOUS_BYTES_PER_S: f64 = 100e6;
/// What moved less tells nothing.
const TELLING_BYTES: u64 = 16 << 20;
/// Writing and syncing is taken to be so many times slower than reading.
const OUT_PER_IN: f64 = 0.5;

/// Whence the speed is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measured {
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
    pub(super) fn at_most(self, limit: Option<u64>) -> Self {
        #[allow(clippy::cast_precision_loss)]
        let limit = limit.map(|limit| limit.max(1) as f64);
        self.or_slower(limit, Measured::StageRate)
    }

    /// The slower of the two, unless the user gave it. A drain yields to the job, so that its speed may let the
    /// job end too early, but not too late.
    pub(super) fn or_drain(self, drain_bytes_per_s: Option<f64>) -> Self {
        let drain = drain_bytes_per_s.filter(|_| self.from != Measured::Given);
        self.or_slower(drain, Measured::OwnDrain)
    }

    fn or_slower(self, other: Option<f64>, from: Measured) -> Self {
        match other {
            Some(bytes_per_s) if bytes_per_s < self.bytes_per_s => Self { bytes_per_s, from },
            _ => self,
        }
    }
}

/// What stage-out is reckoned with when the end becomes known.
pub(super) fn rate(given: Option<u64>, stage_in: Option<&Staged>) -> Rate {
    let known = |bytes_per_s, from| Rate { bytes_per_s, from };
    #[allow(clippy::cast_precision_loss)]
    let speed = |bytes: u64, seconds: f64| {
        (bytes >= TELLING_BYTES && seconds > 0.0).then(|| bytes as f64 / seconds)
    };
    #[allow(clippy::cast_precision_loss)]
    if let Some(given) = given {
        return known(given.max(1) as f64, Measured::Given);
    }
    let earlier = forebay_profile::recent_stage_outs();
    let earlier = earlier.filter_map(|(bytes, seconds)| speed(bytes, seconds));
    if let Some(slowest) = earlier.take(5).reduce(f64::min) {
        return known(slowest, Measured::EarlierStageOut);
    }
    match stage_in.and_then(|staged| speed(staged.copied_bytes, staged.seconds)) {
        Some(read) => known(read * OUT_PER_IN, Measured::StageIn),
        None => known(CAUTIOUS_BYTES_PER_S, Measured::Assumed),
    }
}
