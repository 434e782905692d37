//! What the command line says about the end of the job, and what is told of it.

use std::time::Duration;

use clap::Args;
use forebay_control::{DeadlineWishes, NotSafe, SignalBefore, parse_signal};
use indicatif::HumanBytes;

use crate::arguments::{rate, time};
use crate::messages::{error, hint};

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
    /// None if nothing is to be looked after.
    pub fn wishes(&self) -> Option<DeadlineWishes> {
        (!self.no_deadline).then_some(DeadlineWishes {
            end_after: self.deadline,
            drain_bytes_per_s: self.drain_rate,
            margin: self.drain_margin,
            signal: self.signal_before,
        })
    }
}

/// Names what is not safe.
pub fn tell(not_safe: &NotSafe) {
    for path in &not_safe.first {
        error(&format!("not safe: {}", path.display()));
    }
    let more = not_safe.files - not_safe.first.len() as u64;
    if more > 0 {
        error(&format!("not safe: and {more} more files"));
    }
    let (files, bytes, list) = (
        not_safe.files,
        HumanBytes(not_safe.bytes),
        not_safe.list.display(),
    );
    hint(&format!(
        "{bytes} are on this machine only; {list} names all {files} files and what is wrong with them"
    ));
}
