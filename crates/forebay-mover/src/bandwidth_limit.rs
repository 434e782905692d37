//! A limit on bytes per second that several threads share.
//!
//! Sleeps in short steps, so that a stopped thread ends soon. Never requests more than a burst at once.

use std::num::NonZeroU32;
use std::time::Duration;

use forebay_host::clock;
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultDirectRateLimiter, Quota};

/// Bytes of one unit of the limiter, which counts in 32 bits.
const UNIT_BYTES: u64 = 1024;
/// A burst is this fraction of the bytes of one second.
const BURSTS_PER_S: u32 = 20;
/// The longest sleep between two checks for a stop.
const WAIT_STEP: Duration = Duration::from_millis(50);

/// A limit on bytes per second, for all threads that use it together.
pub struct BandwidthLimit {
    limiter: DefaultDirectRateLimiter,
    burst: NonZeroU32,
    clock: DefaultClock,
}

impl BandwidthLimit {
    /// A limit in bytes per second, rounded up to a multiple of 1024.
    pub fn new(bytes_per_s_max: u64) -> Self {
        let units = u32::try_from(bytes_per_s_max.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX);
        let at_least_one = |units| NonZeroU32::new(units).unwrap_or(NonZeroU32::MIN);
        let burst = at_least_one(units / BURSTS_PER_S);
        Self {
            limiter: DefaultDirectRateLimiter::direct(
                Quota::per_second(at_least_one(units)).allow_burst(burst),
            ),
            burst,
            clock: DefaultClock::default(),
        }
    }

    /// A block size within one burst: a power of two, so that blocks stay aligned to stripes and pages.
    pub(crate) fn block_bytes(&self) -> usize {
        let units = 1_u64 << self.burst.ilog2();
        usize::try_from(units * UNIT_BYTES).unwrap_or(usize::MAX)
    }

    /// Waits until this number of bytes is within the limit, or until `is_stopped` returns true.
    pub fn wait(&self, bytes: u64, is_stopped: impl Fn() -> bool) {
        let mut units = bytes.div_ceil(UNIT_BYTES);
        while let Some(now) = NonZeroU32::new(u32::try_from(units).unwrap_or(u32::MAX)) {
            let now = now.min(self.burst);
            units -= u64::from(now.get());
            while let Ok(Err(early)) = self.limiter.check_n(now) {
                if is_stopped() {
                    return;
                }
                clock::sleep(early.wait_time_from(self.clock.now()).min(WAIT_STEP));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_counts_bytes_beyond_one_burst_and_ends_when_stopped() {
        let limit = BandwidthLimit::new(1 << 20);
        let began = clock::now();
        limit.wait(256 << 10, || false);
        assert!(began.elapsed() >= Duration::from_millis(150));
        limit.wait(1 << 40, || began.elapsed() >= Duration::from_millis(200));
        assert!(began.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn wait_adds_up_over_calls_and_pauses_allow_one_burst() {
        let limit = BandwidthLimit::new(1 << 20);
        for _ in 0..2 {
            let began = clock::now();
            (0..4).for_each(|_| limit.wait(64 << 10, || false));
            assert!(began.elapsed() >= Duration::from_millis(150));
            clock::sleep(Duration::from_millis(300));
        }
    }
}
