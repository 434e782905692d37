//! Reads the clocks, and sleeps.

use std::time::{Duration, Instant, SystemTime};

use rustix::time::{ClockId, clock_gettime};

/// The monotonic clock, to measure durations.
pub fn now() -> Instant {
    Instant::now()
}

/// Time since boot, including suspend. All processes share this clock, and it never jumps.
pub fn since_boot() -> Duration {
    let time = clock_gettime(ClockId::Boottime);
    let part_ns = u32::try_from(time.tv_nsec).unwrap_or_default();
    Duration::new(u64::try_from(time.tv_sec).unwrap_or_default(), part_ns)
}

/// Time since 1970-01-01 UTC, to the nanosecond; 0 if the clock is set to an earlier date.
pub fn since_epoch() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

/// Milliseconds since 1970-01-01 UTC; 0 if the clock is set to an earlier date.
pub fn unix_milliseconds() -> u128 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_millis())
}

/// Whole seconds since 1970-01-01 UTC; 0 as for [`unix_milliseconds`].
pub fn unix_s() -> u64 {
    u64::try_from(unix_milliseconds() / 1000).unwrap_or(u64::MAX)
}

/// Seconds since 1970-01-01 UTC with a fraction; 0 as for [`unix_milliseconds`].
pub fn unix_seconds() -> f64 {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0.0, |since| since.as_secs_f64())
}

/// Blocks this thread.
pub fn sleep(duration: Duration) {
    std::thread::sleep(duration);
}
