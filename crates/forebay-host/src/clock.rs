//! The clock.

use std::time::{Duration, Instant, SystemTime};

use rustix::time::{ClockId, clock_gettime};

/// A point in time from which durations are measured.
pub fn now() -> Instant {
    Instant::now()
}

/// Since this start of the machine, its sleep included: the same for all processes, and it never jumps.
pub fn since_boot() -> Duration {
    let time = clock_gettime(ClockId::Boottime);
    let part_ns = u32::try_from(time.tv_nsec).unwrap_or_default();
    Duration::new(u64::try_from(time.tv_sec).unwrap_or_default(), part_ns)
}

/// Milliseconds since 1970-01-01 UTC; 0 if the machine's clock is before it.
pub fn unix_milliseconds() -> u128 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_millis())
}

/// Whole seconds since 1970-01-01 UTC, as [`unix_milliseconds`].
pub fn unix_s() -> u64 {
    u64::try_from(unix_milliseconds() / 1000).unwrap_or(u64::MAX)
}

/// Seconds since 1970-01-01 UTC with their fraction, as [`unix_milliseconds`].
pub fn unix_seconds() -> f64 {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0.0, |since| since.as_secs_f64())
}

/// Blocks this thread.
pub fn sleep(duration: Duration) {
    std::thread::sleep(duration);
}
