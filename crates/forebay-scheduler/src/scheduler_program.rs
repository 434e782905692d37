//! Runs query programs of schedulers.

use std::time::Duration;

use forebay_host::process::{command, run_captured};

/// The time limit for an answer.
const QUERY_TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) fn run_command(
    name: &'static str,
    arguments: &[&str],
    should_continue: &dyn Fn() -> bool,
) -> Result<String, String> {
    let mut asked = command(name);
    // Numeric times are independent of time zones.
    asked.args(arguments).env("SLURM_TIME_FORMAT", "%s");
    let captured =
        run_captured(asked, QUERY_TIMEOUT, should_continue).map_err(|error| error.to_string())?;
    let captured = captured.map(|captured| captured.output);
    captured.ok_or_else(|| format!("{name} did not answer within {} s", QUERY_TIMEOUT.as_secs()))
}

pub(crate) fn parse_error(name: &str, said: &str) -> String {
    format!("{name} says \"{}\"", said.trim())
}
