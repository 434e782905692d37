//! How fast stage-out goes.

use serde::Serialize;

use crate::{Staged, profile};

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
    /// The slowest of the last stage-outs on record.
    EarlierStageOut,
    /// Half of what this job's stage-in did.
    StageIn,
    /// Nowhere.
    Assumed,
}

/// Bytes per second, and whence they are known.
pub(super) fn rate(given: Option<u64>, stage_in: Option<&Staged>) -> (f64, Measured) {
    #[allow(clippy::cast_precision_loss)]
    let speed = |bytes: u64, seconds: f64| {
        (bytes >= TELLING_BYTES && seconds > 0.0).then(|| bytes as f64 / seconds)
    };
    #[allow(clippy::cast_precision_loss)]
    if let Some(given) = given {
        return (given.max(1) as f64, Measured::Given);
    }
    let earlier = profile::earlier_stage_outs();
    let earlier = earlier.filter_map(|(bytes, seconds)| speed(bytes, seconds));
    if let Some(slowest) = earlier.take(5).reduce(f64::min) {
        return (slowest, Measured::EarlierStageOut);
    }
    match stage_in.and_then(|staged| speed(staged.bytes, staged.seconds)) {
        Some(read) => (read * OUT_PER_IN, Measured::StageIn),
        None => (CAUTIOUS_BYTES_PER_S, Measured::Assumed),
    }
}
