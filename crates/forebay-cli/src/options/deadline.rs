//! Options about the end of a job.

use std::time::Duration;

use clap::Args;
use forebay_deadline::{DeadlineOptions, SignalBefore, parse_signal};

use crate::parsers::{rate, time};

#[derive(Debug, Args)]
#[group(skip)]
pub struct DeadlineArguments {
    /// All of it, stage-out too, is to be done after TIME [default: when the scheduler ends the job]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub deadline: Option<Duration>,
    /// Do not look after the end that the scheduler sets
    #[arg(long, conflicts_with_all = ["deadline", "drain_rate", "drain_margin", "signal_before"])]
    pub no_deadline: bool,
    /// Bytes in a second that stage-out does, for example 500MB [default: as measured before]
    #[arg(long, value_name = "SIZE", value_parser = rate)]
    pub drain_rate: Option<u64>,
    /// Time that is kept free before the end [default: a twentieth of the time there is, at most a minute]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub drain_margin: Option<Duration>,
    /// Before the job is ended so that stage-out has time, send its processes a signal, for example USR1@120
    #[arg(long, value_name = "SIGNAL@SECONDS", value_parser = parse_signal)]
    pub signal_before: Option<SignalBefore>,
}

impl DeadlineArguments {
    /// None with `--no-deadline`.
    pub fn options(&self) -> Option<DeadlineOptions> {
        (!self.no_deadline).then_some(DeadlineOptions {
            end_after: self.deadline,
            drain_bytes_per_s: self.drain_rate,
            margin: self.drain_margin,
            signal: self.signal_before,
        })
    }
}
