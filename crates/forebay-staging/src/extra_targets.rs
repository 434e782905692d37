//! Plans drains to directories that no stage_out line names, as part of a stage-out.
//! Takes regular files only: no links and no empty directories. With `newest`, too, plans all matching files.

use std::path::{Path, PathBuf};

use forebay_directive::{AccessMode, Stage};
use forebay_host::files::{self, Kind};
use forebay_mover::{Failure, Plan, Transfer, TransferKind};
use forebay_store::Allocation;

use crate::destination::destinations_of;
use crate::patterns::Patterns;
use forebay_record::DrainTarget;

/// Regular files below a directory, and errors of unlistable directories. Ignores vanished entries.
pub fn files_below(top: &Path) -> (Vec<PathBuf>, Vec<forebay_host::Error>) {
    let (mut found, mut closed) = (Vec::new(), Vec::new());
    let mut open = vec![top.to_owned()];
    while let Some(directory) = open.pop() {
        let kinds = files::kinds_in(&directory);
        match kinds {
            Err(error) if !error.is_not_found() => closed.push(error),
            _ => {
                for (name, kind) in kinds.unwrap_or_default() {
                    let path = directory.join(name);
                    match kind {
                        Kind::Directory => open.push(path),
                        Kind::File => found.push(path),
                        Kind::Link | Kind::Other => {}
                    }
                }
            }
        }
    }
    (found, closed)
}

/// Adds the drains to directories that no stage_out line names to a stage-out.
///
/// # Errors
/// If the journal cannot be written, or `on_planned` interrupted the planning.
pub(crate) fn plan_extra_targets(
    plan: &Plan,
    elsewhere: &[DrainTarget],
    stages: &[Stage],
    allocation: &Allocation,
) -> Result<(), forebay_mover::Error> {
    let striped = allocation.namespace(AccessMode::Striped.directory());
    for DrainTarget { directory, patterns, to, .. } in elsewhere {
        let patterns = (!patterns.is_empty()).then(|| Patterns::parse(&patterns.join(",")));
        let patterns = match patterns.transpose() {
            Ok(patterns) => patterns,
            Err(reason) => {
                plan.journal.refuse(&Failure::new(to.clone(), reason))?;
                continue;
            }
        };
        let below = |path: &PathBuf| path.strip_prefix(directory).unwrap_or(path).to_owned();
        let (mut found, closed) = files_below(directory);
        for error in closed {
            plan.journal.refuse(&Failure::new(error.path.clone(), error.to_string()))?;
        }
        found
            .retain(|path| patterns.as_ref().is_none_or(|patterns| patterns.are_for(&below(path))));
        for source in found {
            let target = to.join(below(&source));
            let inner = source.strip_prefix(&striped).ok();
            let staged = inner.map(|inner| destinations_of(stages, &striped, inner));
            if staged.is_some_and(|ways| ways.iter().any(|way| way.target == target)) {
                continue; // a stage_out line has the same destination
            }
            let what = TransferKind::FileToName;
            let transfer = Transfer { what, source, target };
            plan.add_or_record_failure(&transfer)?;
        }
    }
    Ok(())
}
