//! The user's options about the end of the job.

use std::time::Duration;

/// The user's options about the end of the job.
#[derive(Debug, Clone, Copy, Default)]
pub struct DeadlineOptions {
    /// The time until the end. Overrides the scheduler.
    pub end_after: Option<Duration>,
    /// The rate of stage-out in bytes per second. Overrides measurements.
    pub drain_bytes_per_s: Option<u64>,
    /// The time to keep free before the end.
    pub margin: Option<Duration>,
    /// The signal to send before Forebay ends the job.
    pub signal: Option<SignalBefore>,
}

/// A signal, and its time before the end of the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignalBefore {
    /// The number of the signal.
    pub signal: i32,
    /// The time before the end.
    pub before: Duration,
}

/// Parses a signal and a time, as for `sbatch --signal`: `USR1@120`, `10@60`, `SIGTERM`.
///
/// # Errors
/// A description of the expected format.
pub fn parse_signal(text: &str) -> Result<SignalBefore, String> {
    const DEFAULT_S: u64 = 60; // Slurm's
    let (name, seconds) = text.split_once('@').unwrap_or((text, ""));
    let signal = forebay_host::process::signal_number(name);
    let seconds = if seconds.is_empty() && !text.contains('@') {
        Some(DEFAULT_S)
    } else {
        seconds.parse().ok()
    };
    match (signal, seconds) {
        (Some(signal), Some(seconds)) => {
            Ok(SignalBefore { signal, before: Duration::from_secs(seconds) })
        }
        _ => {
            Err("write for example USR1@120: a signal, and seconds before the job is ended".into())
        }
    }
}
