//! Measures the speed of a drain, to estimate the time of a stage-out.

use std::time::{Duration, Instant};

/// The minimum size of a measured version and of the sum: for less, the cost per file dominates.
pub(super) const MIN_SAMPLE_BYTES: u64 = 16 << 20;

/// Bytes copied, and the time in which at least one version was being copied.
#[derive(Default)]
pub(super) struct Speed {
    bytes: u64,
    /// Time spent copying, up to the last pause.
    busy: Duration,
    in_progress: usize,
    /// When the current period of copying began.
    since: Option<Instant>,
}

impl Speed {
    pub(super) fn begin(&mut self, now: Instant) {
        self.in_progress += 1;
        self.since.get_or_insert(now);
    }

    pub(super) fn add(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    pub(super) fn end(&mut self, now: Instant) {
        self.in_progress -= 1;
        if self.in_progress == 0 {
            self.busy = self.busy(now);
            self.since = None;
        }
    }

    pub(super) fn bytes_per_s(&self, now: Instant) -> Option<f64> {
        let seconds = self.busy(now).as_secs_f64();
        #[allow(clippy::cast_precision_loss)]
        (self.bytes >= MIN_SAMPLE_BYTES && seconds > 0.0).then(|| self.bytes as f64 / seconds)
    }

    fn busy(&self, now: Instant) -> Duration {
        let in_progress = self.since.map(|since| now.saturating_duration_since(since));
        self.busy + in_progress.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forebay_host::clock;

    #[test]
    fn drain_time_excludes_gaps_and_counts_overlap_once() {
        let begin = clock::now();
        let at = |second: u64| begin + Duration::from_secs(second);
        let mut speed = Speed::default();
        speed.begin(at(0));
        speed.add(MIN_SAMPLE_BYTES - 1);
        assert_eq!(speed.bytes_per_s(at(1)), None, "too little tells nothing");
        speed.add(1);
        speed.begin(at(1));
        speed.add(3 * MIN_SAMPLE_BYTES);
        speed.end(at(2));
        // 64 MiB in four seconds; one copy is still in progress.
        assert_eq!(speed.bytes_per_s(at(4)), Some(16_777_216.0));
        speed.end(at(4));
        assert_eq!(speed.bytes_per_s(at(400)), Some(16_777_216.0));
        speed.begin(at(500));
        assert_eq!(speed.bytes_per_s(at(504)), Some(8_388_608.0));
    }
}
