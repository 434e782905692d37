//! The promises of the journal: staging continues after a restart, and nothing is lost or copied twice.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use forebay_mover::{
    CopyEvent, Error, Journal, Options, Plan, State, Transfer, TransferKind, Verify, WriteMode,
    remove_partial_files,
};

use crate::fixture::{
    OpenJournal, StagingFixture, carry_out, killed, moved, names, obey_modes, transfer,
};

const PIECE_BYTES: u64 = 1 << 20;

fn options() -> Options {
    Options { workers: 2, piece_bytes: PIECE_BYTES, durable: false, ..Options::of("7") }
}

impl StagingFixture {
    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path("in").join(name);
        fs::write(&path, content).expect("write");
        path
    }

    fn file(&self, name: &str) -> Transfer {
        let (source, target) = (self.path("in").join(name), self.path("out").join(name));
        transfer(TransferKind::File, &source, &target)
    }

    fn out(&self, name: &str) -> Vec<u8> {
        fs::read(self.path("out").join(name)).expect("read")
    }

    fn parts(&self) -> usize {
        let names = names(&self.path("out"));
        names.iter().filter(|name| name.ends_with(".part")).count()
    }
}

fn one() -> Options {
    Options { workers: 1, ..options() }
}

/// Runs the journal in one thread and simulates a kill once this many bytes are copied.
fn killed_after(journal: &OpenJournal, bytes_max: u64) {
    let copied = AtomicU64::new(0);
    killed(journal, &one(), &|did| match did {
        CopyEvent::Bytes(bytes) => copied.fetch_add(bytes, Ordering::Relaxed) >= bytes_max,
        _ => false,
    });
}

/// Bytes copied in a run, without holes and unchanged data.
fn copied_bytes(journal: &OpenJournal, options: &Options) -> u64 {
    let copied = AtomicU64::new(0);
    let count = |did| {
        if let CopyEvent::Bytes(bytes) = did {
            copied.fetch_add(bytes, Ordering::Relaxed);
        }
    };
    carry_out(journal, options, &count, &|| false).expect("carried out");
    copied.into_inner()
}

#[test]
fn delivered_files_are_skipped_and_changed_ones_copied() {
    let fixture = StagingFixture::new();
    fixture.write("same", "same");
    let changed = fixture.write("changed", "old");
    assert_eq!(moved(&fixture.planned(), &options()).files, 2);
    // A second plan has no open files. A new journal finds all files unchanged.
    assert_eq!(fixture.planned().counts().expect("counts").open().files, 0);
    Journal::remove(&fixture.path("journal")).expect("removed");
    let again = moved(&fixture.planned(), &options());
    assert_eq!((again.files, again.unchanged_files), (2, 2));
    fs::write(&changed, "new").expect("write");
    let journal = fixture.planned();
    assert_eq!(journal.counts().expect("counts").open().files, 1);
    let again = moved(&journal, &options());
    assert_eq!((again.files, again.unchanged_files), (1, 0));
    assert_eq!(fixture.out("changed"), b"new");
}

#[test]
fn contents_are_compared_on_request() {
    let fixture = StagingFixture::new();
    let source = fixture.write("x", "right");
    moved(&fixture.planned(), &options());
    let target = fixture.path("out/x");
    fs::write(&target, "wrong").expect("write");
    let modified = source.metadata().expect("stat").modified().expect("time");
    fs::File::options()
        .write(true)
        .open(&target)
        .expect("open")
        .set_modified(modified)
        .expect("aged");
    Journal::remove(&fixture.path("journal")).expect("removed");
    moved(&fixture.planned(), &options());
    assert_eq!(fixture.out("x"), b"wrong", "as long and as old: taken for the same");
    Journal::remove(&fixture.path("journal")).expect("removed");
    let with_checksum = Options { checksum: true, ..options() };
    moved(&fixture.planned(), &with_checksum);
    assert_eq!(fixture.out("x"), b"right");
}

#[test]
fn mode_is_repaired_where_the_content_is_equal() {
    let fixture = StagingFixture::new();
    fixture.write("x", "x");
    moved(&fixture.planned(), &options());
    let target = fixture.path("out/x");
    fs::set_permissions(&target, fs::Permissions::from_mode(0o600)).expect("chmod");
    Journal::remove(&fixture.path("journal")).expect("removed");
    assert_eq!(moved(&fixture.planned(), &options()).unchanged_files, 1);
    assert_eq!(target.metadata().expect("stat").mode() & 0o777, 0o644);
}

#[test]
fn one_file_is_delivered_again_and_again_into_an_open_journal() {
    let fixture = StagingFixture::new();
    let journal = fixture.journal();
    let added = |transfer: &Transfer| Plan::extend(&journal, &|_| true)?.add(transfer);
    for version in ["one", "two, longer", "3"] {
        fixture.write("checkpoint", version);
        added(&fixture.file("checkpoint")).expect("added");
        assert_eq!(moved(&journal, &options()).files, 1);
        assert_eq!(fixture.out("checkpoint"), version.as_bytes());
        // No change: nothing to copy.
        added(&fixture.file("checkpoint")).expect("added");
        assert_eq!(moved(&journal, &options()).files, 0);
    }
}

#[test]
fn pieces_of_a_killed_staging_are_not_copied_again() {
    let fixture = StagingFixture::new();
    let content: Vec<u8> = (0..5 * PIECE_BYTES + 13).map(|i| (i * 31 % 251) as u8).collect();
    fixture.write("large", &content);
    // Simulates a kill after the third piece: the journal and the partial file remain.
    let journal = fixture.planned();
    killed_after(&journal, 3 * PIECE_BYTES);
    drop(journal);
    assert_eq!(fixture.parts(), 1);
    let journal = fixture.journal();
    assert_eq!(journal.counts().expect("counts").of(State::Copying).files, 1);
    assert_eq!(copied_bytes(&journal, &one()), 2 * PIECE_BYTES + 13);
    assert_eq!((fixture.out("large"), fixture.parts()), (content, 0));
}

#[test]
fn pieces_are_kept_if_the_partial_file_has_the_mode_of_its_source() {
    obey_modes();
    let fixture = StagingFixture::new();
    let content = vec![7; 3 * PIECE_BYTES as usize];
    fixture.write("large", &content);
    let closed = fs::Permissions::from_mode(0o444);
    fs::set_permissions(fixture.path("in/large"), closed.clone()).expect("closed");
    let journal = fixture.planned();
    killed_after(&journal, 2 * PIECE_BYTES);
    let names = fs::read_dir(fixture.path("out")).expect("listed");
    let mut parts = names.map(|name| name.expect("entry").path());
    fs::set_permissions(parts.next().expect("a part"), closed).expect("closed");
    assert_eq!(copied_bytes(&journal, &one()), PIECE_BYTES);
    assert_eq!((fixture.out("large"), fixture.parts()), (content, 0));
    let mode = fs::metadata(fixture.path("out/large")).expect("there").permissions().mode();
    assert_eq!(mode & 0o7777, 0o444);
}

#[test]
fn pieces_of_a_source_that_changed_meanwhile_are_copied_again() {
    let fixture = StagingFixture::new();
    fixture.write("large", vec![1; 3 * PIECE_BYTES as usize]);
    let journal = fixture.planned();
    killed_after(&journal, PIECE_BYTES);
    fixture.write("large", vec![2; 3 * PIECE_BYTES as usize]);
    assert_eq!(copied_bytes(&journal, &one()), 3 * PIECE_BYTES);
    assert_eq!(fixture.out("large"), vec![2; 3 * PIECE_BYTES as usize]);
}

#[test]
fn cancel_leaves_no_partial_file_and_retry_continues() {
    let fixture = StagingFixture::new();
    for name in ["a", "b", "c"] {
        fixture.write(name, vec![7; 4 * PIECE_BYTES as usize]);
    }
    let journal = fixture.planned();
    // Cancel as another process would. The limit makes the copy slow enough for that.
    let other = fixture.journal();
    let slow = Options { bytes_per_s_max: Some(1 << 20), ..options() };
    let cancel = |_| other.cancel().expect("cancelled");
    let stopped = carry_out(&journal, &slow, &cancel, &|| false).expect("carried out");
    assert!(stopped.is_stopped && stopped.files < 3, "{stopped:?}");
    assert_eq!(fixture.parts(), 0);
    let reason = &stopped.failures[0].reason;
    assert!(reason.starts_with("staging was stopped: "), "{reason}");
    journal.retry().expect("retried");
    let done = moved(&journal, &options());
    assert!(!done.is_stopped && done.counts.is_complete());
    assert_eq!(done.counts.of(State::Placed).files, 3);
}

#[test]
fn failure_is_reported_with_a_remedy_and_retried() {
    let fixture = StagingFixture::new();
    fixture.write("x", "x");
    fs::create_dir_all(fixture.path("out/x")).expect("mkdir");
    let journal = fixture.planned();
    let first = moved(&journal, &options());
    assert_eq!(first.failures.len(), 1);
    assert!(first.failures[0].reason.contains("a directory stands at its place"));
    assert!(first.failures[0].remedy.is_some());
    assert_eq!(first.counts.of(State::Failed).files, 1);
    fs::remove_dir(fixture.path("out/x")).expect("rmdir");
    journal.retry().expect("retried");
    assert!(moved(&journal, &options()).counts.is_complete());
    assert_eq!(fixture.out("x"), b"x");
}

#[test]
fn source_created_later_is_found_by_retry() {
    let fixture = StagingFixture::new();
    let journal = fixture.journal();
    let plan = Plan::begin(&journal, &|_| true).expect("begun");
    plan.add_or_record_failure(&fixture.file("late")).expect("noted");
    journal.end(plan).expect("planned");
    let first = moved(&journal, &options());
    assert!(!first.counts.is_complete() && first.failures[0].reason.contains("does not exist"));
    fixture.write("late", "here");
    journal.retry().expect("retried");
    assert!(moved(&journal, &options()).counts.is_complete());
    assert_eq!(fixture.out("late"), b"here");
}

#[test]
fn interrupted_plan_is_made_again() {
    let fixture = StagingFixture::new();
    fixture.write("x", "x");
    let journal = fixture.journal();
    let interrupted = Plan::begin(&journal, &|_| false).expect("begun").add(&fixture.tree());
    assert!(matches!(interrupted, Err(Error::PlanInterrupted(_))));
    let refused = carry_out(&journal, &options(), &|_| {}, &|| false);
    assert!(matches!(refused, Err(Error::PlanInterrupted(_))));
    journal.retry().expect("retried");
    assert_eq!(moved(&journal, &options()).files, 1);
}

#[test]
fn damaged_journal_is_an_error_and_never_recreated() {
    let fixture = StagingFixture::new();
    for number in 0..300 {
        fixture.write(&format!("file {number}"), "x");
    }
    drop(fixture.planned());
    let path = fixture.path("journal");
    let whole = fs::read(&path).expect("read");
    let mut torn = whole.clone();
    torn[4096..3 * 4096].fill(0x5a);
    for damaged in [&torn[..], &whole[..whole.len() / 2], b"", b"not a database at all", &[0; 8192]]
    {
        fs::write(&path, damaged).expect("write");
        let error = Journal::open(&path).expect_err("it is damaged");
        assert!(matches!(error, Error::Damaged { .. }), "{} bytes: {error}", damaged.len());
        let hint = error.hint().expect("a remedy");
        assert!(hint.contains("journal") && hint.contains("stage again"), "{hint}");
    }
}

#[test]
fn two_processes_do_not_carry_out_one_journal() {
    let fixture = StagingFixture::new();
    fixture.write("x", "x");
    let journal = fixture.planned();
    let in_hand = journal.lock().expect("ours");
    let second = fixture.journal();
    assert!(second.is_running().expect("looked"));
    assert!(matches!(carry_out(&second, &options(), &|_| {}, &|| false), Err(Error::Locked(_))));
    drop(in_hand);
    assert_eq!(moved(&second, &options()).files, 1);
}

#[test]
fn holes_hard_links_nanoseconds_and_strange_names_are_kept() {
    let fixture = StagingFixture::new();
    let strange = fixture.path("in").join(OsStr::from_bytes(b"\xff\xfe name\n"));
    fs::write(&strange, "strange").expect("write");
    let sparse = fs::File::create(fixture.path("in/sparse")).expect("made");
    sparse.write_at(b"begin", 0).expect("write");
    sparse.write_at(b"middle", 3 * PIECE_BYTES).expect("write");
    sparse.set_len(8 * PIECE_BYTES).expect("grown");
    let first = fixture.write("first", "linked");
    fs::hard_link(&first, fixture.path("in/second")).expect("link");
    let time = std::time::UNIX_EPOCH + std::time::Duration::new(1_000_000_001, 123_456_789);
    fs::File::options().write(true).open(&first).expect("open").set_modified(time).expect("aged");
    for placing in [WriteMode::AtomicRename, WriteMode::InPlace] {
        fs::remove_dir_all(fixture.path("out")).ok();
        Journal::remove(&fixture.path("journal")).expect("removed");
        let options = Options { placing, verify: Verify::End, ..options() };
        let done = moved(&fixture.planned(), &options);
        assert!(done.failures.is_empty() && done.files == 4, "{done:?}");
        assert_eq!(
            fs::read(fixture.path("out").join(strange.file_name().expect("name"))).expect("read"),
            b"strange"
        );
        let status = |name: &str| fs::metadata(fixture.path("out").join(name)).expect("stat");
        assert_eq!(fixture.out("sparse"), fs::read(fixture.path("in/sparse")).expect("read"));
        assert!(
            status("sparse").blocks() * 512 < 2 * PIECE_BYTES,
            "{} blocks",
            status("sparse").blocks()
        );
        assert_eq!(status("first").ino(), status("second").ino());
        assert_eq!(
            (status("first").mtime(), status("first").mtime_nsec()),
            (1_000_000_001, 123_456_789)
        );
        // A second staging finds everything unchanged.
        Journal::remove(&fixture.path("journal")).expect("removed");
        assert_eq!(copied_bytes(&fixture.planned(), &options), 0);
    }
}

#[test]
fn partial_hard_link_is_found_by_clean_up() {
    let fixture = StagingFixture::new();
    let first = fixture.write("first", "linked");
    fs::hard_link(&first, fixture.path("in/second")).expect("link");
    fs::create_dir(fixture.path("out")).expect("mkdir");
    let (journal, second) = (fixture.planned(), fixture.journal());
    let removed = AtomicUsize::new(0);
    let is_linking = || second.counts().expect("counted").of(State::Placed).files == 1;
    let clean_up = || {
        if is_linking() {
            // As a kill before the rename leaves it.
            let parts = [1, 2].map(|id| fixture.path(&format!("out/.forebay-7-{id}.part")));
            parts.iter().for_each(|part| fs::write(part, "").expect("write"));
            let found = remove_partial_files(&second, "7").expect("removed");
            removed.fetch_max(found, Ordering::Relaxed);
            parts.iter().for_each(|part| drop(fs::remove_file(part)));
        }
        false
    };
    let done = carry_out(&journal, &one(), &|_| {}, &clean_up).expect("carried out");
    assert!(done.failures.is_empty(), "{done:?}");
    assert_eq!((removed.into_inner(), fixture.out("second")), (1, b"linked".to_vec()));
}

#[test]
fn tree_of_a_hundred_levels_arrives() {
    let fixture = StagingFixture::new();
    let deep = (0..100).fold(fixture.path("in"), |path, number| path.join(number.to_string()));
    fs::create_dir_all(&deep).expect("mkdir");
    fs::write(deep.join("x"), "deep").expect("write");
    assert!(moved(&fixture.planned(), &options()).counts.is_complete());
    let arrived = deep.strip_prefix(fixture.path("in")).expect("below");
    assert_eq!(fs::read(fixture.path("out").join(arrived).join("x")).expect("read"), b"deep");
}

#[test]
fn tree_is_not_staged_into_itself() {
    let fixture = StagingFixture::new();
    let inside = Transfer { target: fixture.path("in/deeper"), ..fixture.tree() };
    assert!(matches!(fixture.journal().plan(&[inside]), Err(Error::IntoItself { .. })));
}

#[test]
fn looping_or_replaced_source_is_reported() {
    let fixture = StagingFixture::new();
    let source = fixture.write("x", "x");
    let journal = fixture.planned();
    fs::remove_file(&source).expect("removed");
    fs::create_dir(&source).expect("mkdir");
    let failed = moved(&journal, &options());
    assert!(failed.failures[0].reason.contains("not a file any more"), "{failed:?}");
    let looping = fixture.path("loop");
    std::os::unix::fs::symlink(&looping, &looping).expect("link");
    let transfer =
        Transfer { what: TransferKind::File, source: looping, target: fixture.path("out/") };
    assert!(fixture.journal().plan(&[transfer]).is_err());
}

#[test]
fn rate_limit_holds_over_time() {
    let fixture = StagingFixture::new();
    fixture.write("x", vec![1; 2 << 20]);
    let began = std::time::Instant::now();
    let slow = Options { bytes_per_s_max: Some(4 << 20), ..options() };
    assert!(moved(&fixture.planned(), &slow).counts.is_complete());
    // The limit makes 2 MiB at 4 MiB per second take this long on any machine.
    assert!(began.elapsed().as_secs_f64() > 0.4, "{:?}", began.elapsed());
}

#[test]
fn partial_file_names_are_stable() {
    let fixture = StagingFixture::new();
    fixture.write("x", vec![1; 3 * PIECE_BYTES as usize]);
    let journal = fixture.planned();
    killed(&journal, &one(), &|_| true);
    assert_eq!(fixture.parts(), 1);
    assert_eq!(forebay_mover::remove_partial_files(&journal, "another").expect("looked"), 0);
    assert_eq!(forebay_mover::remove_partial_files(&journal, "7").expect("removed"), 1);
    assert_eq!(fixture.parts(), 0);
    assert!(!Path::new(&fixture.path("out/x")).exists());
}

#[test]
fn delivered_file_removed_since_is_copied_again() {
    let fixture = StagingFixture::new();
    fixture.write("a", "one");
    fixture.write("b", "two");
    let journal = fixture.planned();
    assert_eq!(moved(&journal, &options()).files, 2);
    fs::remove_file(fixture.path("out").join("a")).expect("removed");
    drop(journal);
    let journal = fixture.planned();
    assert_eq!(moved(&journal, &options()).failures, vec![]);
    assert_eq!(fixture.out("a"), b"one");
}

#[test]
fn target_link_to_the_source_is_not_delivered() {
    let fixture = StagingFixture::new();
    fs::create_dir(fixture.path("in").join("run")).expect("mkdir");
    fixture.write("run/a", "precious");
    fs::create_dir(fixture.path("out")).expect("mkdir");
    symlink(fixture.path("in").join("run"), fixture.path("out").join("run")).expect("link");
    let journal = fixture.planned();
    let moved = moved(&journal, &options());
    assert_eq!((moved.files, moved.failures.len()), (0, 1));
    assert!(moved.failures[0].reason.contains("leads back"), "{moved:?}");
    assert!(!moved.counts.is_complete());
    let mut missing = 0;
    forebay_mover::undelivered(&journal, &|| true, |_| missing += 1).expect("read");
    assert_eq!(missing, 1, "and it is told as not safe");
}

#[test]
fn trailing_slash_does_not_change_the_destination() {
    let fixture = StagingFixture::new();
    fixture.write("a", "one");
    let slash = |name: &str| fixture.path(&format!("{name}/"));
    let tree = Transfer { source: slash("in"), target: slash("out"), ..fixture.tree() };
    let journal = fixture.journal();
    journal.plan(&[tree, fixture.file("a")]).expect("planned");
    let moved = moved(&journal, &options());
    assert_eq!((moved.files, moved.failures), (1, vec![]));
}
