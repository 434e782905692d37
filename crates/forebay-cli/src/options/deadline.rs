//! Options about the end of a job.

use std::time::Duration;

use clap::Args;
use forebay_deadline::{DeadlineOptions, SignalBefore, parse_signal};

use crate::parsers::{rate, time};

#[derive(Debug, Args)]
#[group(skip)]
pub struct DeadlineArguments {
    /// Finish everything, including stage-out, within TIME [default: the end that the scheduler sets]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub deadline: Option<Duration>,
    /// Ignore the end that the scheduler sets
    #[arg(long, conflicts_with_all = ["deadline", "drain_rate", "drain_margin", "signal_before"])]
    pub no_deadline: bool,
    /// Expected speed of stage-out in bytes per second, for example 500MB [default: as measured in earlier jobs]
    #[arg(long, value_name = "SIZE", value_parser = rate)]
    pub drain_rate: Option<u64>,
    /// Time to spare before the end [default: 5 % of the time available, at most a minute]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub drain_margin: Option<Duration>,
    /// Send the job a signal so many seconds before Forebay ends it for stage-out, for example USR1@120
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
