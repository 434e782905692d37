//! The clock.

use std::time::{Duration, Instant, SystemTime};

/// A point in time from which durations are measured.
#[must_use]
pub fn now() -> Instant {
    Instant::now()
}

/// Milliseconds since 1970-01-01 UTC; 0 if the machine's clock stands before it.
#[must_use]
pub fn unix_milliseconds() -> u128 {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| since.as_millis())
}

/// Seconds since 1970-01-01 UTC, as [`unix_milliseconds`].
#[must_use]
pub fn unix_seconds() -> f64 {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0.0, |since| since.as_secs_f64())
}

/// Blocks this thread.
pub fn sleep(duration: Duration) {
    std::thread::sleep(duration);
}
