//! Has reports made of the live files that killed programs left (docs/explanation/profiles.md).

use std::path::Path;
use std::time::Duration;

use forebay_host::{files, process, system};

use crate::error::Error;

const PREFIX: &str = "live-";
/// Installed next to the library, for each family of MPI. All of them read the files of each other.
const COLLECTORS: [&str; 2] = ["openmpi/forebay-collect", "mpich/forebay-collect"];
/// The maximum time, for a file system that does not answer.
const TIME_MAX: Duration = Duration::from_secs(120);

/// Makes the reports, and removes the live files of programs that no longer run. What cannot be read
/// stays for the reader of the record to name.
///
/// # Errors
/// If the collector cannot be started.
pub(crate) fn collect(directory: &Path) -> Result<(), Error> {
    let names = files::names_in(directory).unwrap_or_default();
    let is_live =
        |name: &std::ffi::OsString| name.as_encoded_bytes().starts_with(PREFIX.as_bytes());
    let Some(collector) = COLLECTORS.iter().find_map(|name| system::installed_library(name)) else {
        return Ok(()); // there is no library either
    };
    if names.iter().any(is_live) {
        let mut command = process::command(&collector);
        command.arg(directory).env_remove("LD_PRELOAD");
        process::run_captured(command, TIME_MAX, &|| true)?;
    }
    Ok(())
}
