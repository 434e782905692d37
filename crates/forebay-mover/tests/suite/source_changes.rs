//! Sources that change during the copy, and files that exist at the destination.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use forebay_mover::{CopyEvent, Journal, Options, TransferKind};

use crate::fixture::{OpenJournal, carry_out, transfer};

const PIECE_BYTES: u64 = 1 << 20;

fn options() -> Options {
    Options { workers: 1, piece_bytes: PIECE_BYTES, durable: false, ..Options::of("7") }
}

fn age(path: &Path, time: SystemTime) {
    let file = fs::File::options().write(true).open(path).expect("open");
    file.set_modified(time).expect("aged");
}

fn journal(source: &Path, target: &Path) -> OpenJournal {
    let journal = OpenJournal::from(Journal::in_memory().expect("journal"));
    let transfer = transfer(TransferKind::File, source, target);
    journal.plan(&[transfer]).expect("planned");
    journal
}

#[test]
fn source_changed_and_restored_during_the_copy_is_copied_again() {
    // In one block and in pieces; with the time set back to the original and to long before.
    for size in [1000, 3 * PIECE_BYTES] {
        for back in [Duration::ZERO, Duration::from_secs(1_000_000_000)] {
            let scratch = tempfile::tempdir().expect("tempdir");
            let (source, target) = (scratch.path().join("x"), scratch.path().join("y"));
            let size = usize::try_from(size).expect("small");
            fs::write(&source, vec![1; size]).expect("write");
            let began = fs::metadata(&source).and_then(|found| found.modified()).expect("time");
            let seen = AtomicU64::new(0);
            let change = |did| {
                if matches!(did, CopyEvent::Bytes(_)) && seen.fetch_add(1, Ordering::Relaxed) == 0 {
                    fs::write(&source, vec![2; size]).expect("write");
                    age(&source, began - back);
                }
            };
            let journal = journal(&source, &target);
            let moved = carry_out(&journal, &options(), &change, &|| false).expect("carried out");
            assert!(moved.failures.is_empty(), "{:?}", moved.failures);
            assert_eq!(fs::read(&target).expect("read"), vec![2; size]);
        }
    }
}

#[test]
fn unplanned_version_is_not_copied_where_the_planned_one_is_required() {
    let only = Options { as_planned: true, ..options() };
    for size in [1000, 3 * PIECE_BYTES] {
        let scratch = tempfile::tempdir().expect("tempdir");
        let (source, target) = (scratch.path().join("x"), scratch.path().join("y"));
        let size = usize::try_from(size).expect("small");
        let write = |bytes| fs::write(&source, bytes).expect("write");
        write(vec![1; size]);
        let planned = journal(&source, &target);
        write(vec![2; size + 1]);
        let moved = carry_out(&planned, &only, &|_| (), &|| false).expect("carried out");
        assert_eq!((moved.files, moved.failures.len()), (0, 1));

        let planned = journal(&source, &target);
        let seen = AtomicU64::new(0);
        let change = |did| {
            if matches!(did, CopyEvent::Bytes(_)) && seen.fetch_add(1, Ordering::Relaxed) == 0 {
                write(vec![3; size + 2]);
            }
        };
        let moved = carry_out(&planned, &only, &change, &|| false).expect("carried out");
        assert_eq!((moved.files, moved.failures.len()), (0, 1));
        let names = fs::read_dir(scratch.path()).expect("list").count();
        assert_eq!(names, 1, "nothing but the source");
    }
}

#[test]
fn planned_version_is_copied_after_changes_of_mode_or_links() {
    let only = Options { as_planned: true, ..options() };
    for size in [1000, 3 * PIECE_BYTES] {
        let scratch = tempfile::tempdir().expect("tempdir");
        let (source, target) = (scratch.path().join("x"), scratch.path().join("y"));
        let content = vec![1; usize::try_from(size).expect("small")];
        fs::write(&source, &content).expect("write");
        let journal = journal(&source, &target);
        let seen = AtomicU64::new(0);
        let change = |did| {
            if matches!(did, CopyEvent::Bytes(_)) && seen.fetch_add(1, Ordering::Relaxed) == 0 {
                let closed = fs::Permissions::from_mode(0o400);
                fs::set_permissions(&source, closed).expect("closed");
                fs::hard_link(&source, scratch.path().join("z")).expect("linked");
            }
        };
        let moved = carry_out(&journal, &only, &change, &|| false).expect("carried out");
        assert_eq!((moved.files, moved.failures), (1, vec![]));
        assert_eq!(fs::read(&target).expect("read"), content);
        let mode = fs::metadata(&target).expect("there").permissions().mode();
        assert_eq!(mode & 0o7777, 0o400);
    }
}

#[test]
fn source_that_keeps_changing_is_reported_and_leaves_nothing() {
    let scratch = tempfile::tempdir().expect("tempdir");
    let (source, target) = (scratch.path().join("x"), scratch.path().join("y"));
    fs::write(&source, "x").expect("write");
    let seconds = AtomicU64::new(0);
    let touch = |did| {
        if matches!(did, CopyEvent::Bytes(_)) {
            let later = Duration::from_secs(seconds.fetch_add(1, Ordering::Relaxed));
            age(&source, SystemTime::UNIX_EPOCH + later);
        }
    };
    let journal = journal(&source, &target);
    let moved = carry_out(&journal, &options(), &touch, &|| false).expect("carried out");
    assert!(moved.failures[0].reason.contains("changed while"));
    assert_eq!(fs::read_dir(scratch.path()).expect("listed").count(), 1);
}
