//! Why a file failed, and what the user can do about it.
//! Assumes that the texts `FULL` and `OVER_QUOTA` never change: `shortages.rs` finds rows of older journals by them.

use std::path::Path;

use forebay_host::files;
use serde::{Deserialize, Serialize};

use crate::model::partial_names::is_part;

/// Why a step failed, and what the user can do about it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Reason {
    pub(crate) text: String,
    pub(crate) remedy: Option<String>,
    /// See errno(3).
    pub(crate) errno: Option<i32>,
    /// Forebay was stopped; a restart is enough.
    pub(crate) is_stop: bool,
    /// The source was being written; a retry can help.
    pub(crate) is_change: bool,
}

impl Reason {
    pub(crate) fn new(text: &str, remedy: &str) -> Self {
        Self {
            text: text.to_owned(),
            remedy: (!remedy.is_empty()).then(|| remedy.to_owned()),
            errno: None,
            is_stop: false,
            is_change: false,
        }
    }

    /// The caller requested a stop.
    pub(crate) fn stopped() -> Self {
        Self { is_stop: true, ..Self::new("staging was stopped", "") }
    }

    /// The source changed during the copy.
    pub(crate) fn changed(text: &str) -> Self {
        let remedy = "stage it again when its writer has closed it";
        Self { is_change: true, errno: Some(libc::EAGAIN), ..Self::new(text, remedy) }
    }
}

impl From<forebay_host::Error> for Reason {
    fn from(error: forebay_host::Error) -> Self {
        Self {
            text: error.to_string(),
            remedy: remedy(&error),
            errno: error.source.raw_os_error(),
            is_stop: false,
            is_change: false,
        }
    }
}

/// Remedies of files that found no room. The journal finds these files by this text.
pub(crate) const FULL: &str = "free space there, then retry: files that were copied are kept";

pub(crate) const OVER_QUOTA: &str = "remove files that count against the quota, or have it raised, then retry: \
                                     files that were copied are kept";

/// What the user can do about a system error.
pub(crate) fn remedy(error: &forebay_host::Error) -> Option<String> {
    use std::io::ErrorKind;
    Some(match error.source.kind() {
        _ if files::is_over_quota(&error.source) => OVER_QUOTA.to_owned(),
        _ if files::is_full(&error.source) => FULL.to_owned(),
        _ if files::is_loop(&error.source) => {
            "correct the symbolic links: they form a loop".to_owned()
        }
        ErrorKind::PermissionDenied => {
            let path = error.path.display();
            format!("get the right to {path} and to the directories above it, then stage it again")
        }
        ErrorKind::FileTooLarge => {
            "choose a file system that takes files of this size, or raise the limit (ulimit -f)"
                .to_owned()
        }
        ErrorKind::ReadOnlyFilesystem => "choose a target that can be written".to_owned(),
        ErrorKind::InvalidFilename => "give it a shorter name".to_owned(),
        ErrorKind::IsADirectory | ErrorKind::NotADirectory => {
            "something of another kind has that name: move it away or choose another target"
                .to_owned()
        }
        ErrorKind::NotFound => format!("{} since it was looked at: stage again", gone(&error.path)),
        _ => return None,
    })
}

/// Whether the file system does not have what was asked for, or does not allow it to this user. Any other error may
/// pass, so that trying again helps.
pub(crate) fn is_unsupported(error: &forebay_host::Error) -> bool {
    use libc::{E2BIG, EACCES, EINVAL, EMLINK, ENOSYS, EOPNOTSUPP, EPERM, ERANGE, EXDEV};
    let unsupported = [E2BIG, EACCES, EINVAL, EMLINK, ENOSYS, EOPNOTSUPP, EPERM, ERANGE, EXDEV];
    error.source.raw_os_error().is_some_and(|errno| unsupported.contains(&errno))
}

/// A temporary name says nothing to whoever reads it.
fn gone(path: &Path) -> String {
    let part = path.ancestors().find(|path| is_part(path));
    match part.and_then(Path::parent) {
        Some(target) => {
            format!("{}, or what was in it, has vanished", target.display())
        }
        _ => format!("{} has vanished", path.display()),
    }
}
