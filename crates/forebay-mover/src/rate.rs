//! No more than so many bytes in a second.

use std::num::NonZeroU32;
use std::time::Duration;

use forebay_host::clock;
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultDirectRateLimiter, Quota};

/// What the library counts: its numbers end at four thousand millions.
const UNIT_BYTES: u64 = 1024;
/// Parts of a second that may be written at once.
const BURSTS_PER_S: u32 = 20;
/// The longest sleep: whoever waits for us to stop waits no longer.
const STEP: Duration = Duration::from_millis(50);

/// A limit on bytes in a second, for all threads together.
pub(crate) struct Rate {
    limiter: DefaultDirectRateLimiter,
    burst: NonZeroU32,
    clock: DefaultClock,
}

impl Rate {
    pub(crate) fn new(bytes_per_s_max: u64) -> Self {
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

    /// The most that is asked for at once: a power of two, so that blocks stay aligned to stripes and pages.
    pub(crate) fn block_bytes(&self) -> usize {
        let units = 1_u64 << self.burst.ilog2();
        usize::try_from(units * UNIT_BYTES).unwrap_or(usize::MAX)
    }

    /// Waits until so many bytes may go, `block_bytes` at most; less long if told to stop.
    pub(crate) fn wait(&self, bytes: usize, stopped: impl Fn() -> bool) {
        let units = (bytes as u64).div_ceil(UNIT_BYTES);
        let units = u32::try_from(units)
            .unwrap_or(u32::MAX)
            .min(self.burst.get());
        let Some(units) = NonZeroU32::new(units) else {
            return;
        };
        while let Ok(Err(early)) = self.limiter.check_n(units) {
            if stopped() {
                return;
            }
            clock::sleep(early.wait_time_from(self.clock.now()).min(STEP));
        }
    }
}
