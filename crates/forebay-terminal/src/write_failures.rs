//! Prints what is known of failed writes of a job.

use forebay_host::messages::counted;
use forebay_job::Outcome;
use forebay_mover::IncompleteFile;
use forebay_staging::StagingSummary;
use indicatif::HumanBytes;

use crate::messages::{print_error_line, print_hint, print_status, print_warning};

/// Files that a message names.
const SHOWN: usize = 5;

/// Prints which writes of a job failed, whether its store was full, and which staged files may be incomplete.
pub fn print_write_failures(outcome: &Outcome) {
    let store = outcome.store.as_ref();
    if outcome.store_full_unix_ms.is_some() {
        let capacity = store.map_or_else(String::new, |store| {
            format!(" (capacity {})", HumanBytes(store.capacity_bytes))
        });
        print_warning(&format!(
            "the burst buffer was full{capacity}: writes fail with ENOSPC then"
        ));
    }
    let failed = &outcome.failed_writes;
    for one in failed.iter().take(SHOWN) {
        let error = one.error.as_deref().unwrap_or_default();
        print_error_line(&format!("a write failed: {}: {error} in {}", one.path, one.call));
    }
    if failed.len() > SHOWN {
        print_error_line(&format!("a write failed: and in {} more files", failed.len() - SHOWN));
    }
    print_notes("stage in", outcome.stage_in.as_ref());
    print_incomplete(outcome.stage_out.as_ref());
    if outcome.store_full_unix_ms.is_some() || !failed.is_empty() {
        print_hint("give the jobdw line more capacity, or stage out while the job runs: --drain");
    }
}

/// Prints what of the files' metadata was not kept. `pass` is the name of the stage.
fn print_notes(pass: &str, staged: Option<&StagingSummary>) {
    for (text, count) in staged.map_or(&[][..], |staged| &staged.notes) {
        print_status(&format!("{pass}: note: {text}: {count} times"));
    }
}

/// Prints what a stage-out did not keep, and which staged files may be incomplete.
pub fn print_incomplete(staged: Option<&StagingSummary>) {
    print_notes("stage out", staged);
    let incomplete = staged.map_or(&[][..], |staged| &staged.incomplete);
    for IncompleteFile { source, destination, is_renamed, .. } in incomplete.iter().take(SHOWN) {
        let (source, destination) =
            (forebay_host::files::printable(source), forebay_host::files::printable(destination));
        print_error_line(&if *is_renamed {
            format!(
                "stage out: {source} may be incomplete: it is in {destination}, the file before it is unchanged"
            )
        } else {
            format!("stage out: {destination} may be incomplete")
        });
    }
    if incomplete.len() > SHOWN {
        let more = incomplete.len() - SHOWN;
        print_error_line(&format!(
            "stage out: and {} may be incomplete",
            counted(more as u64, "more file")
        ));
    }
}
