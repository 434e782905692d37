//! The stand-in for Spectral's wait command. Reports Spectral's directories to `forebay run`.

use std::ffi::OsString;

use forebay_host::exit_codes::FAILED;
use forebay_onclose::{ControlRequest, Error, query_drain};
use forebay_terminal::{
    drain_counts, print_drain_failures, print_error, print_stdout, print_warning,
};

/// Runs Spectral's `spectral_wait.py`.
pub fn spectral_wait(_words: &[OsString]) -> i32 {
    let waited = announce().and_then(|_| {
        let begin = query_drain(&ControlRequest::Status)?;
        print_stdout(&drain_counts(&begin), 0);
        query_drain(&ControlRequest::Wait)
    });
    match waited {
        Ok(status) => {
            let code = print_drain_failures(&status);
            print_stdout(&drain_counts(&status), code);
            if code == 0 {
                return print_stdout("All files moved", 0);
            }
            code
        }
        Err(error) => {
            print_error(&format!("spectral_wait.py: {error}"), error.hint().as_deref(), FAILED)
        }
    }
}

/// Reports the directories of Spectral to `forebay run`, if the script has set them.
fn announce() -> Result<bool, Error> {
    let named = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let (Some(persist), Some(pfs)) = (named("PERSIST_DIR"), named("PFS_DIR")) else {
        return Ok(false);
    };
    query_drain(&ControlRequest::Spectral { persist, pfs }).map(|_| true)
}

/// The same, called by a launcher in any job.
pub fn announce_from_launcher() {
    match announce() {
        // A job without Spectral has no socket. Its variables mean something else.
        Ok(_) | Err(Error::NoDrain { .. }) => {}
        Err(error) => print_warning(&format!("Spectral: {error}")),
    }
}
