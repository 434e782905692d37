use super::*;

fn copy(inner: &str, is_directory: bool) -> Copy {
    Copy {
        direction: Direction::Out,
        inner: inner.into(),
        outer: Path::new("/pfs").join(inner.trim_start_matches('/')),
        is_directory,
        left_out: BTreeSet::new(),
    }
}

fn names(names: &[&str]) -> BTreeSet<PathBuf> {
    names.iter().map(PathBuf::from).collect()
}

fn counts(complete: u32, pending: u32, deferred: u32, failed: u32) -> Option<Counts> {
    Some(Counts { complete, pending, deferred, failed })
}

fn file(table: &RequestTable, inner: &str) -> Option<Counts> {
    table.counts(Path::new(inner), false)
}

fn tree(table: &RequestTable, inner: &str) -> Option<Counts> {
    table.counts(Path::new(inner), true)
}

#[test]
fn directory_counts_delivered_files_and_names_failed_ones() {
    let mut table = RequestTable::default();
    table.add(copy("/d", true), names(&["/d/a", "/d/b", "/d/e/c"]), false);
    assert_eq!(tree(&table, "/d"), counts(0, 3, 0, 0));
    let task = table.take().expect("queued");
    task.arrived.fetch_add(5, Ordering::Relaxed); // includes links
    assert_eq!(tree(&table, "/d"), counts(2, 1, 0, 0), "not before its end");
    assert!(table.is_busy(Path::new("/d/e/c"), false) && table.is_busy(Path::new("/d/e"), true));
    assert!(!table.is_busy(Path::new("/d/new"), false), "it is no part of it");
    let failed = FailedFiles::from([(PathBuf::from("/d/b"), 13)]);
    assert_eq!(table.finish(&task, failed), TaskOutcome::Failed);
    assert_eq!(tree(&table, "/d"), counts(2, 0, 0, 1));
    assert_eq!(
        (file(&table, "/d/b"), file(&table, "/d/a")),
        (counts(0, 0, 0, 1), counts(1, 0, 0, 0))
    );
    assert_eq!((file(&table, "/d/new"), file(&table, "/d")), (None, None));
    assert_eq!(table.failures(Path::new("/d")), [(PathBuf::from("/d/b"), 13)]);
    table.add(copy("/d/b", false), BTreeSet::new(), false);
    assert_eq!(table.failures(Path::new("/d")), [], "it was requested again");
    assert_eq!(file(&table, "/d/b"), counts(0, 1, 0, 0));
}

#[test]
fn names_with_a_common_prefix_are_not_below() {
    let mut table = RequestTable::default();
    for name in ["/d", "/d.x", "/d/a", "/d!"] {
        table.add(copy(name, false), BTreeSet::new(), true);
    }
    assert_eq!(tree(&table, "/d"), counts(0, 0, 2, 0));
}

#[test]
fn terminated_running_entry_is_dropped_when_its_worker_returns() {
    let mut table = RequestTable::default();
    let inner = Path::new("/f");
    table.add(copy("/f", false), BTreeSet::new(), false);
    let task = table.take().expect("queued");
    let meant = &table.select(inner, false)[0];
    assert!(!table.terminate(meant) && !table.terminate(meant));
    assert!(task.cancelled.load(Ordering::SeqCst) && table.is_busy(inner, false));
    let ended = table.finish(&task, FailedFiles::new());
    assert_eq!(ended, TaskOutcome::Dropped, "nobody wants it any more");
    assert!(table.terminate(meant) && file(&table, "/f").is_none());
}

#[test]
fn task_of_a_replaced_request_changes_nothing() {
    let mut table = RequestTable::default();
    table.add(copy("/f", false), BTreeSet::new(), false);
    let old = table.take().expect("queued");
    table.add(copy("/f", false), BTreeSet::new(), true);
    assert_eq!(table.finish(&old, FailedFiles::new()), TaskOutcome::Dropped);
    assert_eq!(file(&table, "/f"), counts(0, 0, 1, 0));
    assert!(table.take().is_none(), "it is for the job's end");
}

#[test]
fn revoked_waiting_entry_is_not_started() {
    let mut table = RequestTable::default();
    let mut inwards = copy("/in", false);
    inwards.direction = Direction::In;
    table.add(inwards, BTreeSet::new(), false);
    table.add(copy("/out", false), BTreeSet::new(), false);
    table.stop(|copy| copy.direction == Direction::Out);
    let next = table.take().expect("one");
    assert_eq!(next.copy.inner, Path::new("/out"));
    assert!(table.take().is_none());
    table.stop(|_| false);
    assert!(next.cancelled.load(Ordering::SeqCst));
}

fn part(table: &RequestTable, inner: &str, is_directory: bool) -> Selection {
    let meant = table.select(Path::new(inner), is_directory);
    let [meant] = <[Selection; 1]>::try_from(meant).expect("one thing is meant");
    meant
}

#[test]
fn parts_of_a_directory_are_revoked_and_activated_separately() {
    let mut table = RequestTable::default();
    table.add(copy("/d", true), names(&["/d/a", "/d/e/b", "/d/e/c"]), true);
    assert_eq!(tree(&table, "/d/e"), counts(0, 0, 2, 0));
    table.revoke(&part(&table, "/d/e/b", false));
    assert_eq!((file(&table, "/d/e/b"), tree(&table, "/d")), (None, counts(0, 0, 2, 0)));
    assert_eq!(table.select(Path::new("/d/e/b"), false), [], "it is no part any more");
    let (meant, below) = table.deferred(Path::new("/d/e"), true).remove(0);
    assert_eq!(below.outer, Path::new("/pfs/d/e"));
    assert_eq!(below.left_out, names(&["/d/e/b"]), "that stays revoked");
    table.revoke(&meant);
    let (_, rest) = table.deferred(Path::new("/d"), true).remove(0);
    assert_eq!(rest.left_out, names(&["/d/e", "/d/e/b"]));
    assert_eq!(tree(&table, "/d"), counts(0, 0, 1, 0));
    let new = part(&table, "/d/new", false);
    assert_eq!(new, Selection::Part { tree: "/d".into(), inner: "/d/new".into() });
}

#[test]
fn part_terminated_during_its_copy_is_skipped_by_the_next_attempt() {
    let mut table = RequestTable::default();
    table.add(copy("/d", true), names(&["/d/a", "/d/b"]), false);
    let task = table.take().expect("queued");
    let meant = part(&table, "/d/b", false);
    assert!(!table.terminate(&meant) && task.cancelled.load(Ordering::SeqCst));
    assert_eq!(file(&table, "/d/b"), None);
    assert_eq!(
        table.finish(&task, FailedFiles::from([("/d/a".into(), 125)])),
        TaskOutcome::Requeued
    );
    assert!(table.terminate(&meant), "nobody has it in hand");
    let again = table.take().expect("queued again");
    assert_eq!(again.copy.left_out, names(&["/d/b"]));
    assert_eq!(table.finish(&again, FailedFiles::new()), TaskOutcome::Complete);
    assert_eq!(tree(&table, "/d"), counts(1, 0, 0, 0));
}

#[test]
fn failed_part_is_dropped_and_delivered_ones_are_kept() {
    let mut table = RequestTable::default();
    table.add(copy("/d", true), names(&["/d/e/a", "/d/e/b", "/d/c"]), false);
    let task = table.take().expect("queued");
    let failed = FailedFiles::from([("/d/e/a".into(), 13), ("/d/c".into(), 13)]);
    assert_eq!(table.finish(&task, failed), TaskOutcome::Failed);
    assert!(table.terminate(&part(&table, "/d/e", true)));
    assert_eq!(table.failures(Path::new("/d")), [(PathBuf::from("/d/c"), 13)]);
    assert_eq!(tree(&table, "/d"), counts(1, 0, 0, 1));
    assert_eq!(file(&table, "/d/e/b"), counts(1, 0, 0, 0));
}

#[test]
fn directory_that_failed_reports_each_of_its_files_as_failed() {
    let mut table = RequestTable::default();
    table.add(copy("/d", true), names(&["/d/a", "/d/e/b", "/d/e/c"]), false);
    let task = table.take().expect("queued");
    let failed = FailedFiles::from([("/d/e".into(), 13)]);
    assert_eq!(table.finish(&task, failed), TaskOutcome::Failed);
    assert_eq!(
        (tree(&table, "/d"), tree(&table, "/d/e")),
        (counts(1, 0, 0, 2), counts(0, 0, 0, 2))
    );
    assert_eq!(file(&table, "/d/e/b"), counts(0, 0, 0, 1));
    assert_eq!(table.undelivered(Path::new("/d/a")), [("/d".into(), true)], "all is tried again");
}

#[test]
fn failed_file_waits_although_its_directory_is_requested() {
    let mut table = RequestTable::default();
    table.add(copy("/d/a", false), BTreeSet::new(), false);
    table.record_writer("/pfs/x".into(), Path::new("/d/a"));
    let task = table.take().expect("queued");
    assert_eq!(table.writer_of(Path::new("/pfs/x")), Some(Path::new("/d/a")));
    table.finish(&task, FailedFiles::from([("/d/a".into(), 13)]));
    table.add(copy("/d", true), names(&["/d/a", "/d/b"]), false);
    let task = table.take().expect("queued");
    table.finish(&task, FailedFiles::new());
    assert_eq!(tree(&table, "/d"), counts(1, 0, 0, 1));
    assert_eq!(table.undelivered(Path::new("/d")), [("/d/a".into(), false)]);
    table.add(copy("/d/a", false), BTreeSet::new(), false);
    assert_eq!(table.writer_of(Path::new("/pfs/x")), None, "it has another destination");
}
