//! Plans pending requests of programs as part of a stage-out.
//! Assumes that the list is in the job's own allocation. Removes only partial files that have the job's tag.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use forebay_host::files;
use forebay_mover::{Failure, Plan, Transfer, TransferKind, remove_parts_in};

use crate::Roots;
use forebay_record::{PendingStageOut, load_pending};

/// Adds the pending requests of the list in `root` to a stage-out. Skips a request whose
/// source was removed, and notes it. A request fails if its persistent allocation is not reachable.
///
/// # Errors
/// If the journal cannot be written, or `on_planned` interrupted the planning.
pub(crate) fn plan_requests(
    plan: &Plan,
    root: &Path,
    roots: &Roots,
) -> Result<(), forebay_mover::Error> {
    let open = match load_pending(root) {
        Ok(open) => open,
        Err(error) => {
            let mut failure = Failure::new(root.to_owned(), error.to_string());
            failure.remedy = error.hint();
            return plan.journal.refuse(&failure);
        }
    };
    let persistent = roots.persistent.iter().map(|(_, root)| root.as_path());
    let there: Vec<_> =
        persistent.chain([root]).filter_map(|root| files::real_path(root).ok()).collect();
    let mut dropped: Vec<&Path> = Vec::new();
    for request in &open {
        if is_covered(request, &open) {
            continue;
        }
        if files::status(&request.inner).is_err_and(is_gone) {
            if there.iter().any(|root| request.inner.starts_with(root)) {
                dropped.push(&request.inner);
            } else {
                plan.journal.refuse(&Failure::new(request.inner.clone(), NOT_THERE.to_owned()))?;
            }
            continue;
        }
        let transfer = Transfer {
            what: match request.is_directory {
                true => TransferKind::Directory,
                // Recorded by an earlier version: into this directory.
                false if request.outer.as_os_str().as_bytes().ends_with(b"/") => TransferKind::File,
                false => TransferKind::FileToName,
            },
            source: request.inner.clone(),
            target: request.outer.clone(),
        };
        plan.journal.exclude(&transfer, &request.left_out)?;
        plan.add_or_record_failure(&transfer)?;
    }
    if let Some(first) = dropped.first() {
        let text = format!("{}: {DROPPED}", files::printable(first));
        plan.journal.add_note(&text, dropped.len() as u64, first)?;
    }
    Ok(())
}

const NOT_THERE: &str =
    "the persistent allocation in which it lies is not there; is its file system mounted?";

const DROPPED: &str =
    "removed or renamed after its stage-out was requested, so it is not staged out";

/// Removes partial files of requests of a killed job.
pub fn remove_parts(open: Vec<PendingStageOut>, tag: &str) -> forebay_host::Result<()> {
    let begin = format!("{tag}-");
    for request in open {
        let directory = match request.is_directory {
            true => Some(request.outer.as_path()),
            false => request.outer.parent(),
        };
        // A missing directory has no partial files; staging reports one that cannot be listed.
        if let Some(directory) = directory {
            remove_parts_in(directory, &begin, request.is_directory)?;
        }
    }
    Ok(())
}

#[allow(clippy::needless_pass_by_value)] // for is_err_and
fn is_gone(error: forebay_host::Error) -> bool {
    error.is_not_found()
}

/// True if a pending request for a directory copies it to the same destination.
fn is_covered(request: &PendingStageOut, open: &[PendingStageOut]) -> bool {
    open.iter().filter(|other| other.is_directory).any(|tree| {
        let rest = request.inner.strip_prefix(&tree.inner);
        let is_left_out = || request.inner.ancestors().any(|above| tree.left_out.contains(above));
        *tree != *request
            && rest.is_ok_and(|rest| tree.outer.join(rest) == request.outer)
            && !is_left_out()
    })
}
