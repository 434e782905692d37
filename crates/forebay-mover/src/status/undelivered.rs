//! Planned files that are missing at their destination. Compares names, sizes and times only.
//! Assumes that sources and destinations have the same paths here as in the run. Never reports a source that is gone,
//! unless a failure of it is recorded.

use std::path::{Path, PathBuf};

use forebay_host::files;
use forebay_host::files::{Kind, Status};

use crate::error::Error;
use crate::journal::columns::{FAILED, path_at, path_of};
use crate::journal::database::Journal;
use crate::model::item::Item;
use crate::model::state::State;
use crate::model::version::{MemoryDevices, is_same, modified_ns};

/// Rows per query.
const ROWS: usize = 4096;

/// A requested file that is missing at its destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undelivered {
    /// Its source; the destination, if that is the cause and the source is not known.
    pub source: PathBuf,
    /// Its destination; `None` if the source could not be examined.
    pub target: Option<PathBuf>,
    /// Its size in bytes, if known.
    pub bytes: u64,
    /// Why it is missing, if known.
    pub reason: Option<String>,
    /// No staging can copy it: it does not exist, is a fifo, socket or device, or was rejected permanently.
    pub is_unrecoverable: bool,
}

/// Calls `each` for every file or link whose destination is missing or differs in size or
/// modification time, whatever the journal says. Then calls it for all other failures. For
/// files marked delivered, the destination may keep the time in whole seconds. Sources that no
/// longer exist are not missing. Ends early when `should_continue` returns false.
pub fn undelivered(
    journal: &Journal,
    should_continue: &dyn Fn() -> bool,
    mut each: impl FnMut(Undelivered),
) -> Result<(), Error> {
    files_missing(journal, should_continue, &mut each)?;
    let mut others = others_missing(journal)?.into_iter();
    others.by_ref().take_while(|_| should_continue()).for_each(each);
    Ok(())
}

fn files_missing(
    journal: &Journal,
    should_continue: &dyn Fn() -> bool,
    each: &mut dyn FnMut(Undelivered),
) -> Result<(), Error> {
    let memory = MemoryDevices::default();
    let mut last = 0;
    loop {
        let items = journal.all_after(last, ROWS)?;
        let Some(item) = items.last() else {
            return Ok(());
        };
        last = item.id;
        for item in items {
            if !should_continue() {
                return Ok(());
            }
            let looked = if item.is_named {
                files::status(&item.source)
            } else {
                files::status_of_name(&item.source)
            };
            // In memory, an equal status is no proof that a failed copy was not needed.
            let may_differ = |found| item.state == State::Failed && memory.has(&item.source, found);
            let (bytes, reason) = match looked {
                Err(error) if error.is_not_found() => continue,
                Err(error) => (item.size_bytes, Some(error.to_string())),
                Ok(found) if is_delivered(&item, &found) && !may_differ(&found) => continue,
                Ok(found) if item.state == State::Failed => {
                    (found.size_bytes, reason(journal, item.id)?)
                }
                Ok(found) => (found.size_bytes, None),
            };
            each(Undelivered {
                source: item.source,
                target: Some(item.target),
                bytes,
                reason,
                is_unrecoverable: false,
            });
        }
    }
}

pub(crate) fn reason(journal: &Journal, entry: i64) -> Result<Option<String>, Error> {
    journal.with(|connection| {
        let mut select = connection.prepare_cached("SELECT reason FROM entry WHERE id = ?")?;
        select.query_row([entry], |row| row.get(0))
    })
}

/// Failures of directories, transfers and rejected sources.
fn others_missing(journal: &Journal) -> Result<Vec<Undelivered>, Error> {
    journal.with(|connection| {
        let mut select = connection.prepare(&format!(
            "SELECT source, target, reason, 0 FROM directory WHERE state = {FAILED} \
             UNION ALL SELECT source, target, reason, 0 FROM transfer WHERE reason IS NOT NULL \
             UNION ALL SELECT source, NULL, reason, is_for_good FROM refusal ORDER BY 1",
        ))?;
        let rows = select.query_map([], |row| {
            let source = path_at(row, 0)?;
            let target: Option<Vec<u8>> = row.get(1)?;
            let looked = files::status_of_name(&source);
            let is_for_good: bool = row.get(3)?;
            let is_file = |found: &&Status| found.kind == Kind::File;
            Ok(Undelivered {
                target: target.map(|target| path_of(&target)),
                bytes: looked.as_ref().ok().filter(is_file).map_or(0, |found| found.size_bytes),
                reason: row.get(2)?,
                is_unrecoverable: match looked {
                    Ok(found) => is_for_good || found.kind == Kind::Other,
                    Err(error) => is_for_good || error.is_not_found(),
                },
                source,
            })
        })?;
        rows.collect()
    })
}

pub(crate) fn is_delivered(item: &Item, wanted: &Status) -> bool {
    let (source, target) = (&item.source, &item.target);
    match files::status_of_name(target) {
        Ok(found) if found.kind != wanted.kind => false,
        Ok(found) if found.kind == Kind::Link => {
            files::read_link(target).ok() == files::read_link(source).ok()
        }
        Ok(found) => is_copy(item, &found, wanted) && !is_same_file(source, target, &found, wanted),
        Err(_) => false,
    }
}

/// Same size and time. For a placed file, the destination may keep whole seconds only.
fn is_copy(item: &Item, found: &Status, wanted: &Status) -> bool {
    let is_placed = item.state == State::Placed && item.modified_ns == modified_ns(wanted);
    is_same(found, wanted)
        || (is_placed
            && found.size_bytes == wanted.size_bytes
            && found.modified == (wanted.modified.0, 0))
}

/// Are both paths the same file, through a link to the source? Another hard link to the same file
/// counts as a copy.
pub(crate) fn is_same_file(source: &Path, target: &Path, found: &Status, wanted: &Status) -> bool {
    (found.device, found.inode) == (wanted.device, wanted.inode)
        && matches!((files::real_path(source), files::real_path(target)), (Ok(a), Ok(b)) if a == b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Plan, Transfer, TransferKind};

    /// A source and a destination.
    fn sides() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let scratch = tempfile::tempdir().expect("tempdir");
        let (from, to) = (scratch.path().join("from"), scratch.path().join("to"));
        for directory in [&from, &to] {
            files::make_directories(directory, 0o700).expect("made");
        }
        (scratch, from, to)
    }

    fn write(path: &Path, text: &str) {
        let fresh = path.with_extension("fresh");
        files::write_atomically(path, &fresh, text.as_bytes()).expect("written");
    }

    #[test]
    fn missing_or_different_target_is_undelivered() {
        let (_scratch, from, to) = sides();
        write(&from.join("a"), "one");
        write(&from.join("b"), "three");
        files::make_link(Path::new("nowhere"), &from.join("c")).expect("linked");
        let journal = Journal::in_memory().expect("made");
        let (what, source) = (TransferKind::Directory, from.clone());
        let target = to.clone();
        let transfer = Transfer { what, source, target };
        let plan = Plan::begin(&journal, &|_| true).expect("begun");
        plan.add(&transfer).and_then(|()| plan.end()).expect("planned");
        let missing = || {
            let mut found = Vec::new();
            let looked = undelivered(&journal, &|| true, |one| found.push((one.source, one.bytes)));
            looked.expect("read");
            found.sort();
            found
        };
        let at = |name: &str, bytes| (from.join(name), bytes);
        assert_eq!(missing(), [at("a", 3), at("b", 5), at("c", 7)]);
        write(&to.join("a"), "one");
        let status = files::status(&from.join("a")).expect("there");
        files::set_times(&to.join("a"), &status).expect("set");
        write(&to.join("b"), "other"); // same size, other time
        let mut status = files::status(&from.join("b")).expect("there");
        status.modified.0 += 5;
        files::set_times(&to.join("b"), &status).expect("set");
        files::make_link(Path::new("nowhere"), &to.join("c")).expect("linked");
        assert_eq!(missing(), [at("b", 5)]);
        files::remove_file(&from.join("b")).expect("removed");
        assert_eq!(missing(), []);
    }

    #[test]
    fn unreadable_or_unnameable_target_is_undelivered_with_its_reason() {
        let (_scratch, from, to) = sides();
        write(&from.join("file"), "four");
        files::make_link(Path::new("file"), &from.join("named")).expect("linked");
        write(&to.join("named"), "four");
        let status = files::status(&from.join("file")).expect("there");
        files::set_times(&to.join("named"), &status).expect("set");
        let journal = Journal::in_memory().expect("made");
        let plan = Plan::begin(&journal, &|_| true).expect("begun");
        for (name, what) in [
            ("named", TransferKind::File),
            ("absent", TransferKind::File),
            ("file", TransferKind::Directory),
        ] {
            let (source, target) = (from.join(name), to.join(name));
            let transfer = Transfer { what, source, target };
            plan.add_or_record_failure(&transfer).expect("noted");
        }
        let refused = crate::Failure::new(from.join("refused"), "odd".to_owned());
        journal.refuse(&refused).expect("kept");
        plan.end().expect("planned");
        let missing = |limit: usize| {
            let found = std::cell::RefCell::new(Vec::new());
            let should_continue = || found.borrow().len() < limit;
            let looked = undelivered(&journal, &should_continue, |one| {
                let name = one.source.file_name().map(|name| name.to_string_lossy().into_owned());
                let told = (
                    name.unwrap_or_default(),
                    one.target.is_some(),
                    one.bytes,
                    one.is_unrecoverable,
                );
                assert!(one.reason.is_some(), "{told:?}");
                found.borrow_mut().push(told);
            });
            looked.expect("read");
            found.into_inner()
        };
        let absent = ("absent".to_owned(), true, 0, true);
        let file = ("file".to_owned(), true, 4, false);
        let refused = ("refused".to_owned(), false, 0, true);
        assert_eq!(missing(9), [absent.clone(), file, refused]);
        assert_eq!(missing(1), [absent]);
    }

    #[test]
    fn delivered_target_can_match_to_the_second_only() {
        let scratch = tempfile::tempdir().expect("tempdir");
        let (source, target) = (scratch.path().join("a"), scratch.path().join("b"));
        for path in [&source, &target] {
            write(path, "one");
        }
        let mut status = files::status(&source).expect("there");
        let mut set = |path: &Path, modified| {
            status.modified = modified;
            files::set_times(path, &status).expect("set");
        };
        set(&source, (1_700_000_000, 250_000_000));
        set(&target, (1_700_000_000, 0));
        let journal = Journal::in_memory().expect("made");
        let transfer =
            Transfer { what: TransferKind::File, source: source.clone(), target: target.clone() };
        let plan = Plan::begin(&journal, &|_| true).expect("begun");
        plan.add(&transfer).and_then(|()| plan.end()).expect("planned");
        let missing = || {
            let mut count = 0;
            let looked = undelivered(&journal, &|| true, |_| count += 1);
            looked.expect("read");
            count
        };
        assert_eq!(missing(), 1, "nobody says that it was placed");
        let now = files::status(&source).expect("there");
        let delivered = std::iter::once((target.as_path(), &now));
        assert_eq!(journal.mark_delivered(delivered).expect("written").files, 1);
        assert_eq!(missing(), 0);
        set(&target, (1_700_000_000, 500_000_000));
        assert_eq!(missing(), 1);
        set(&target, (1_700_000_000, 0));
        set(&source, (1_700_000_000, 750_000_000));
        assert_eq!(missing(), 1, "another version within the second");
    }

    #[test]
    fn permanently_rejected_target_is_unrecoverable_although_it_exists() {
        let scratch = tempfile::tempdir().expect("tempdir");
        let at = |name: &str| scratch.path().join(name);
        for name in ["a", "b", "c"] {
            write(&at(name), "one");
        }
        files::make_directories(&at("to"), 0o700).expect("made");
        files::make_directories(&at("inside"), 0o700).expect("made");
        let journal = Journal::in_memory().expect("made");
        let plan = Plan::begin(&journal, &|_| true).expect("begun");
        for (from, to) in [("a", "to/x"), ("b", "to/x"), ("c", "inside/x")] {
            let transfer = Transfer { what: TransferKind::File, source: at(from), target: at(to) };
            plan.add_or_record_failure(&transfer).expect("noted");
        }
        plan.reject_destinations("odd", &|place| place.ends_with("inside")).expect("refused");
        let other = crate::Failure::new(at("c"), "closed".to_owned());
        journal.refuse(&other).expect("kept");
        plan.end().expect("planned");
        let mut found = Vec::new();
        let looked =
            undelivered(&journal, &|| true, |one| found.push((one.source, one.is_unrecoverable)));
        looked.expect("read");
        found.sort();
        let expected = [("a", false), ("b", true), ("c", false), ("inside", true)];
        assert_eq!(found, expected.map(|(name, hopeless)| (at(name), hopeless)));
    }
}
