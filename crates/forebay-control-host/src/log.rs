//! The log of calls, one line each, in the directory of the state.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use forebay_host::files::{self, printable_text};
use forebay_host::{clock, system};

use forebay_site::Site;

const NAME: &str = "dw_wlm_cli.log";
/// A longer file gets the ending `.1`, in place of the one before.
const BYTES_MAX: u64 = 16 << 20;

/// Appends to the log. A log that cannot be written stops no job.
pub(crate) struct Log {
    path: PathBuf,
}

impl Log {
    /// The log of a site.
    pub(crate) fn of(site: &Site) -> Self {
        Self { path: site.state.join(NAME) }
    }

    /// Writes one line, whole even if several processes write.
    pub(crate) fn line(&self, text: &str) {
        let now = humantime::format_rfc3339_seconds(
            std::time::UNIX_EPOCH + Duration::from_secs(clock::unix_s()),
        );
        let text = printable_text(text).replace('\n', "\\n");
        let line = format!("{now} {}: {text}\n", system::process_id());
        if self.is_full() {
            self.rotate();
        }
        if let Ok(mut file) = files::open_to_append(&self.path) {
            file.write_all(line.as_bytes()).ok(); // the disk may be full
        }
    }

    fn is_full(&self) -> bool {
        files::status_of_name(&self.path).is_ok_and(|found| found.size_bytes > BYTES_MAX)
    }

    /// Of the processes that see the full file one renames it, once: a second rename would replace it by a new one.
    fn rotate(&self) {
        let lock = files::lock_or_create(&self.path.with_extension("log.lock"));
        if let Ok(Some(_lock)) = lock
            && self.is_full()
        {
            files::rename(&self.path, &self.path.with_extension("log.1")).ok(); // the log stops no job
        }
    }
}
