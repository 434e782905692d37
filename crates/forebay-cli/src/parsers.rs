//! Parsers of option values. Each returns the message that clap prints for a refused value.

use std::path::{Component, PathBuf};

pub use forebay_config::parsers::{rate, size, time};
use forebay_engine::PathMap;

/// Parses permission bits in octal digits.
pub fn mode(text: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(text, 8).ok();
    // The owner must have all permissions.
    let mode = mode.filter(|mode| mode & !0o777 == 0 && mode & 0o700 == 0o700);
    mode.ok_or_else(|| "write three octal digits that begin with 7, for example 0770".to_owned())
}

/// Parses a duration into seconds.
pub fn expiry(text: &str) -> Result<u64, String> {
    let time = humantime::parse_duration(text).map(|time| time.as_secs());
    let time = time.ok().filter(|seconds| *seconds > 0);
    time.ok_or_else(|| "write for example 30d, 12h or 2weeks".to_owned())
}

/// Parses `PATH=DIR`.
pub fn map(text: &str) -> Result<PathMap, String> {
    let (at, from) = text.split_once('=').ok_or("write PATH=DIR")?;
    let at = PathBuf::from(at);
    if !at.is_absolute() || from.is_empty() {
        return Err("PATH must be absolute, DIR not empty".into());
    }
    let plain: PathBuf = at.components().collect();
    if plain.parent().is_none() || plain.components().any(|part| part == Component::ParentDir) {
        return Err("PATH must be below /, without ..".into());
    }
    if ["/proc", "/dev", "/sys"].iter().any(|system| plain.starts_with(system)) {
        return Err("PATH must not be in /proc, /dev or /sys".into());
    }
    let from = std::path::absolute(from).map_err(|error| error.to_string())?;
    Ok(PathMap { path: plain, directory: from })
}
