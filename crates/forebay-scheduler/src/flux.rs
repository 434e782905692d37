//! Flux: `# flux:` lines (flux-batch(1), RFC 36) and the end time from flux-job(1).

use std::time::Duration;

use crate::dialect::{Dialect, Meaning as M};
use crate::end_time::EndTime;
use crate::scheduler_program::{parse_error, run_command};
use crate::slurm;

pub(crate) static DIALECT: Dialect = Dialect {
    options: &[
        (&["--job-name"], M::JobName),
        (&["-n", "--nslots"], M::Tasks),
        (&["-N", "--nodes"], M::Nodes),
        (&["-c", "--cores-per-slot"], M::CpusPerTask),
        (&["--cwd"], M::Directory),
        (&["-q", "--queue"], M::Partition),
        (&["-B", "--bank"], M::Account),
        (&["--output"], M::Output),
        (&["--error"], M::Error),
        // Flux accepts abbreviated options. Only this one is common.
        (&["-t", "--time-limit", "--time"], M::TimeLimit),
    ],
    split: slurm::split_option,
    time,
    time_form: "minutes or such as 30s, 1.5h, 2d",
    memory_unit_bytes: 1,
};

/// Characters that are not part of a word may precede the tag: `#FLUX:`, `# flux:`, `-- flux:`.
/// Without options after it, the line is an ordinary comment.
pub(crate) fn options_of_line(line: &str) -> Option<&str> {
    let tag = line.trim_start_matches(|c: char| !c.is_alphanumeric() && c != '_');
    let mut names = ["flux:", "FLUX:"].iter();
    let options = names.find_map(|name| tag.strip_prefix(name))?;
    options.trim_start().starts_with('-').then_some(options)
}

/// A number of minutes, or a duration of Flux (RFC 23).
fn time(text: &str) -> Option<Duration> {
    const UNITS: [(&str, f64); 5] =
        [("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0), ("d", 86400.0)];
    if ["inf", "infinity"].contains(&text) {
        return Some(Duration::ZERO);
    }
    let unit = UNITS.iter().find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, *seconds)));
    let (number, seconds) = unit.unwrap_or((text, 60.0));
    let number: f64 = number.parse().ok()?;
    Duration::try_from_secs_f64(number * seconds).ok()
}

pub(crate) fn query_end_time(
    should_continue: &dyn Fn() -> bool,
) -> Result<Option<EndTime>, String> {
    let output = run_command("flux", &["job", "timeleft"], should_continue)?;
    match output.trim().parse::<f64>() {
        // Flux reports "no limit" as the largest number.
        Ok(seconds) if seconds.is_finite() && seconds < f64::from(u32::MAX) => {
            Ok(Some(EndTime::after(seconds, "flux job timeleft")))
        }
        Ok(_) => Ok(None),
        Err(_) => Err(parse_error("flux job timeleft", &output)),
    }
}
