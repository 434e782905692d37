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
    Some(Counts {
        complete,
        pending,
        deferred,
        failed,
    })
}

fn file(book: &Book, inner: &str) -> Option<Counts> {
    book.counts(Path::new(inner), false)
}

fn tree(book: &Book, inner: &str) -> Option<Counts> {
    book.counts(Path::new(inner), true)
}

#[test]
fn a_directory_counts_its_files_as_they_arrive_and_tells_which_did_not() {
    let mut book = Book::default();
    book.add(copy("/d", true), names(&["/d/a", "/d/b", "/d/e/c"]), false);
    assert_eq!(tree(&book, "/d"), counts(0, 3, 0, 0));
    let task = book.take().expect("queued");
    task.arrived.fetch_add(5, Ordering::Relaxed); // links among them
    assert_eq!(tree(&book, "/d"), counts(2, 1, 0, 0), "not before its end");
    assert!(book.is_busy(Path::new("/d/e/c"), false) && book.is_busy(Path::new("/d/e"), true));
    assert!(
        !book.is_busy(Path::new("/d/new"), false),
        "it is no part of it"
    );
    let failed = Failed::from([(PathBuf::from("/d/b"), 13)]);
    assert_eq!(book.ended(&task, failed), Ended::Failed);
    assert_eq!(tree(&book, "/d"), counts(2, 0, 0, 1));
    assert_eq!(
        (file(&book, "/d/b"), file(&book, "/d/a")),
        (counts(0, 0, 0, 1), counts(1, 0, 0, 0))
    );
    assert_eq!((file(&book, "/d/new"), file(&book, "/d")), (None, None));
    assert_eq!(
        book.failures(Path::new("/d")),
        [(PathBuf::from("/d/b"), 13)]
    );
    book.add(copy("/d/b", false), BTreeSet::new(), false);
    assert_eq!(book.failures(Path::new("/d")), [], "it was asked for anew");
    assert_eq!(file(&book, "/d/b"), counts(0, 1, 0, 0));
}

#[test]
fn names_that_only_begin_alike_are_not_below() {
    let mut book = Book::default();
    for name in ["/d", "/d.x", "/d/a", "/d!"] {
        book.add(copy(name, false), BTreeSet::new(), true);
    }
    assert_eq!(tree(&book, "/d"), counts(0, 0, 2, 0));
}

#[test]
fn what_is_terminated_in_a_workers_hands_is_forgotten_only_when_he_lets_go() {
    let mut book = Book::default();
    let inner = Path::new("/f");
    book.add(copy("/f", false), BTreeSet::new(), false);
    let task = book.take().expect("queued");
    let meant = &book.meant(inner, false)[0];
    assert!(!book.terminate(meant) && !book.terminate(meant));
    assert!(task.cancelled.load(Ordering::SeqCst) && book.is_busy(inner, false));
    let ended = book.ended(&task, Failed::new());
    assert_eq!(ended, Ended::Forgotten, "nobody wants it any more");
    assert!(book.terminate(meant) && file(&book, "/f").is_none());
}

#[test]
fn a_task_of_a_request_that_was_replaced_changes_nothing() {
    let mut book = Book::default();
    book.add(copy("/f", false), BTreeSet::new(), false);
    let old = book.take().expect("queued");
    book.add(copy("/f", false), BTreeSet::new(), true);
    assert_eq!(book.ended(&old, Failed::new()), Ended::Forgotten);
    assert_eq!(file(&book, "/f"), counts(0, 0, 1, 0));
    assert!(book.take().is_none(), "it is for the job's end");
}

#[test]
fn what_waits_and_is_not_wanted_is_not_begun() {
    let mut book = Book::default();
    let mut inwards = copy("/in", false);
    inwards.direction = Direction::In;
    book.add(inwards, BTreeSet::new(), false);
    book.add(copy("/out", false), BTreeSet::new(), false);
    book.stop(|copy| copy.direction == Direction::Out);
    let next = book.take().expect("one");
    assert_eq!(next.copy.inner, Path::new("/out"));
    assert!(book.take().is_none());
    book.stop(|_| false);
    assert!(next.cancelled.load(Ordering::SeqCst));
}

fn part(book: &Book, inner: &str, is_directory: bool) -> Meant {
    let meant = book.meant(Path::new(inner), is_directory);
    let [meant] = <[Meant; 1]>::try_from(meant).expect("one thing is meant");
    meant
}

#[test]
fn parts_of_a_directory_are_revoked_and_activated_alone() {
    let mut book = Book::default();
    book.add(copy("/d", true), names(&["/d/a", "/d/e/b", "/d/e/c"]), true);
    assert_eq!(tree(&book, "/d/e"), counts(0, 0, 2, 0));
    book.revoke(&part(&book, "/d/e/b", false));
    assert_eq!(
        (file(&book, "/d/e/b"), tree(&book, "/d")),
        (None, counts(0, 0, 2, 0))
    );
    assert_eq!(
        book.meant(Path::new("/d/e/b"), false),
        [],
        "it is no part any more"
    );
    let (meant, below) = book.deferred(Path::new("/d/e"), true).remove(0);
    assert_eq!(below.outer, Path::new("/pfs/d/e"));
    assert_eq!(below.left_out, names(&["/d/e/b"]), "that stays revoked");
    book.revoke(&meant);
    let (_, rest) = book.deferred(Path::new("/d"), true).remove(0);
    assert_eq!(rest.left_out, names(&["/d/e", "/d/e/b"]));
    assert_eq!(tree(&book, "/d"), counts(0, 0, 1, 0));
    let new = part(&book, "/d/new", false);
    assert_eq!(
        new,
        Meant::Part {
            tree: "/d".into(),
            inner: "/d/new".into()
        }
    );
}

#[test]
fn a_part_that_is_terminated_in_a_workers_hands_is_left_out_when_he_begins_again() {
    let mut book = Book::default();
    book.add(copy("/d", true), names(&["/d/a", "/d/b"]), false);
    let task = book.take().expect("queued");
    let meant = part(&book, "/d/b", false);
    assert!(!book.terminate(&meant) && task.cancelled.load(Ordering::SeqCst));
    assert_eq!(file(&book, "/d/b"), None);
    assert_eq!(
        book.ended(&task, Failed::from([("/d/a".into(), 125)])),
        Ended::Again
    );
    assert!(book.terminate(&meant), "nobody has it in hand");
    let again = book.take().expect("queued again");
    assert_eq!(again.copy.left_out, names(&["/d/b"]));
    assert_eq!(book.ended(&again, Failed::new()), Ended::Complete);
    assert_eq!(tree(&book, "/d"), counts(1, 0, 0, 0));
}

#[test]
fn a_part_that_failed_is_forgotten_and_what_arrived_is_not() {
    let mut book = Book::default();
    book.add(
        copy("/d", true),
        names(&["/d/e/a", "/d/e/b", "/d/c"]),
        false,
    );
    let task = book.take().expect("queued");
    let failed = Failed::from([("/d/e/a".into(), 13), ("/d/c".into(), 13)]);
    assert_eq!(book.ended(&task, failed), Ended::Failed);
    assert!(book.terminate(&part(&book, "/d/e", true)));
    assert_eq!(
        book.failures(Path::new("/d")),
        [(PathBuf::from("/d/c"), 13)]
    );
    assert_eq!(tree(&book, "/d"), counts(1, 0, 0, 1));
    assert_eq!(file(&book, "/d/e/b"), counts(1, 0, 0, 0));
}
