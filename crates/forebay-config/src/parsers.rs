//! Parsers of values, for settings and for options alike. Each returns the message for a refused value.

use std::time::Duration;

use forebay_directive::parse_size;
use forebay_scheduler::parse_time;

/// Parses a size in bytes: `4GiB`, `500MB`.
///
/// # Errors
/// What is wrong with the text.
pub fn size(text: &str) -> Result<u64, String> {
    parse_size(text).map_err(|error| error.to_string())
}

/// Parses bytes per second: `500MB`, `500MB/s`.
///
/// # Errors
/// What is wrong with the text.
pub fn rate(text: &str) -> Result<u64, String> {
    size(text.strip_suffix("/s").unwrap_or(text))
}

/// Parses a time: `30` (minutes), `1:30:00`, `1-12`.
///
/// # Errors
/// What is wrong with the text.
pub fn time(text: &str) -> Result<Duration, String> {
    parse_time(text).ok_or_else(|| "write for example 30, 1:30:00 or 1-12".to_owned())
}
