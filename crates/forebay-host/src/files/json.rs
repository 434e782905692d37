//! Reads and writes JSON files. Readers see a file either before or after a change.

use std::io;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::create::{write_atomically, write_atomically_as};
use super::errors::with_path;
use super::read::read_record;
use crate::Result;

/// The JSON text of a value. `path` only names the file in errors.
pub fn to_json(path: &Path, value: &impl Serialize) -> Result<Vec<u8>> {
    let text = serde_json::to_vec_pretty(value).map_err(io::Error::other);
    with_path(text, "write down", path)
}

/// Writes a value to `fresh` in the same directory, and renames it to `path`.
pub fn write_json(path: &Path, fresh: &Path, value: &impl Serialize) -> Result<()> {
    write_atomically(path, fresh, &to_json(path, value)?)
}

/// As [`write_json`], with this mode, whatever the umask; the file survives a power failure.
pub fn write_json_as(path: &Path, fresh: &Path, value: &impl Serialize, mode: u32) -> Result<()> {
    write_atomically_as(path, fresh, &to_json(path, value)?, mode)
}

/// Reads a value from a JSON file.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T> {
    parsed(&read_record(path, None)?, path)
}

/// Reads a value from a JSON file of this user. One of another user is an error.
pub fn read_own_json<T: DeserializeOwned>(path: &Path) -> Result<T> {
    parsed(&read_record(path, Some(rustix::process::getuid().as_raw()))?, path)
}

fn parsed<T: DeserializeOwned>(text: &str, path: &Path) -> Result<T> {
    with_path(serde_json::from_str(text).map_err(io::Error::other), "understand", path)
}
