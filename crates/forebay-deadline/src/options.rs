//! What the user says about the end of the job.

use std::time::Duration;

/// What the user says about the end of the job.
#[derive(Debug, Clone, Copy, Default)]
pub struct DeadlineOptions {
    /// The end is so far from now, whatever a scheduler says.
    pub end_after: Option<Duration>,
    /// Speed of stage-out in bytes per second, instead of what was measured.
    pub drain_bytes_per_s: Option<u64>,
    /// Time that is kept free before the end.
    pub margin: Option<Duration>,
    /// What the job's processes get before the job is ended.
    pub signal: Option<SignalBefore>,
}

/// A signal so long before the job is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignalBefore {
    /// Its number.
    pub signal: i32,
    /// How long before.
    pub before: Duration,
}

/// A signal and a time before, as for `sbatch --signal`: `USR1@120`, `10@60`, `SIGTERM`.
///
/// # Errors
/// What should be written.
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
