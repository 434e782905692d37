//! A limit on bytes per second for all requests together: the caller waits after each block.
//!
//! Unlike the limit of the mover, it counts every byte, also of cancelled copies. Never waits itself.

use std::time::{Duration, Instant};

/// The time when the next bytes may be written.
#[derive(Debug, Default)]
pub(crate) struct RateLimit {
    free_at: Option<Instant>,
}

impl RateLimit {
    /// Counts written bytes. Returns the time until which the caller must wait.
    pub(crate) fn reserve(&mut self, bytes: u64, bytes_per_s: u64, now: Instant) -> Instant {
        #[allow(clippy::cast_precision_loss)] // of a block and a rate
        let time = Duration::from_secs_f64(bytes as f64 / bytes_per_s as f64);
        let free_at = self.free_at.map_or(now, |free_at| free_at.max(now)) + time;
        self.free_at = Some(free_at);
        free_at
    }
}

#[cfg(test)]
mod tests {
    use crate::*;
    use forebay_host::clock;

    #[test]
    fn rate_limit_adds_up_over_bytes_and_not_over_pauses() {
        let mut limit = RateLimit::default();
        let now = clock::now();
        let second = Duration::from_secs(1);
        assert_eq!(limit.reserve(10, 10, now), now + second);
        assert_eq!(limit.reserve(10, 10, now), now + 2 * second);
        assert_eq!(limit.reserve(10, 10, now + 9 * second), now + 10 * second);
    }
}
