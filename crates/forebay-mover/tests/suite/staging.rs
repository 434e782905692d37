//! Staging of real trees.

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use forebay_mover::{CopyEvent, CopySummary, Journal, Options, State, TransferKind, Verify};

use crate::fixture::{OpenJournal, carry_out, killed, moved, names, transfer};

fn options() -> Options {
    Options { workers: 3, piece_bytes: 1 << 20, verify: Verify::End, ..Options::of("7") }
}

/// A journal in a temporary directory, removed with it.
struct Kept {
    journal: OpenJournal,
    _directory: tempfile::TempDir,
}

/// A journal of transfers, each with kind, source and target.
fn plan_of(transfers: &[(TransferKind, &Path, &Path)]) -> Kept {
    let directory = tempfile::tempdir().expect("tempdir");
    let journal =
        OpenJournal::from(Journal::open(&directory.path().join("journal")).expect("made"));
    let transfers: Vec<_> = transfers.iter().map(|&(w, s, t)| transfer(w, s, t)).collect();
    journal.plan(&transfers).expect("planned");
    Kept { journal, _directory: directory }
}

fn done(kept: &Kept) -> CopySummary {
    moved(&kept.journal, &options())
}

fn stage(what: TransferKind, source: &Path, target: &Path) -> CopySummary {
    done(&plan_of(&[(what, source, target)]))
}

fn bytes(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i * 31 % 251) as u8).collect()
}

#[test]
fn tree_is_copied_with_content_modes_times_and_links() {
    let scratch = tempfile::tempdir().expect("tempdir");
    let (source, target) = (scratch.path().join("a b"), scratch.path().join("x/y/out"));
    fs::create_dir_all(source.join("deep/er")).expect("mkdir");
    fs::create_dir(source.join("empty")).expect("mkdir");
    fs::write(source.join("run.sh"), "#!/bin/sh\n").expect("write");
    fs::set_permissions(source.join("run.sh"), fs::Permissions::from_mode(0o751)).expect("chmod");
    fs::write(source.join("deep/er/nothing"), "").expect("write");
    let large = bytes(5 * (1 << 20) + 13); // six pieces, the last of 13 bytes
    fs::write(source.join("deep/large"), &large).expect("write");
    symlink("large", source.join("deep/link")).expect("link");
    symlink("/no/such", source.join("broken")).expect("link");
    fs::set_permissions(source.join("deep/er"), fs::Permissions::from_mode(0o555)).expect("chmod");

    let moved = stage(TransferKind::Directory, &source, &target);
    assert_eq!(moved.failures, []);
    assert_eq!((moved.files, moved.bytes), (5, large.len() as u64 + 10));
    assert_eq!(names(&target), ["broken", "deep", "empty", "run.sh"]);
    assert_eq!(fs::read(target.join("deep/large")).expect("read"), large);
    assert_eq!(names(&target.join("deep/er")), ["nothing"]);
    assert_eq!(fs::read_link(target.join("deep/link")).expect("link"), Path::new("large"));
    assert_eq!(fs::read_link(target.join("broken")).expect("link"), Path::new("/no/such"));
    for name in ["run.sh", "deep", "deep/er", "deep/large", "deep/er/nothing"] {
        let (a, b) = (source.join(name), target.join(name));
        let (a, b) = (a.metadata().expect("stat"), b.metadata().expect("stat"));
        assert_eq!(a.mode(), b.mode(), "mode of {name}");
        assert_eq!((a.mtime(), a.mtime_nsec()), (b.mtime(), b.mtime_nsec()), "time of {name}");
    }
}

#[test]
fn second_staging_replaces_files_and_keeps_others() {
    let scratch = tempfile::tempdir().expect("tempdir");
    let (source, target) = (scratch.path().join("in"), scratch.path().join("out"));
    fs::create_dir(&source).expect("mkdir");
    fs::create_dir(&target).expect("mkdir");
    fs::write(source.join("same"), "new").expect("write");
    fs::write(target.join("same"), "older and longer").expect("write");
    fs::write(target.join("kept"), "kept").expect("write");
    symlink("kept", target.join("link")).expect("link");
    symlink("same", source.join("link")).expect("link");
    assert_eq!(stage(TransferKind::Directory, &source, &target).failures, []);
    assert_eq!(names(&target), ["kept", "link", "same"]);
    assert_eq!(fs::read(target.join("same")).expect("read"), b"new");
    assert_eq!(fs::read_link(target.join("link")).expect("link"), Path::new("same"));
}

#[test]
fn file_is_copied_to_a_name_or_into_a_directory() {
    let scratch = tempfile::tempdir().expect("tempdir");
    let source = scratch.path().join("deck");
    fs::write(&source, "w\n").expect("write");
    fs::create_dir(scratch.path().join("there")).expect("mkdir");
    for (target, arrives) in [("a/b/new", "a/b/new"), ("d/", "d/deck"), ("there", "there/deck")] {
        let target = scratch.path().join(target);
        assert_eq!(stage(TransferKind::File, &source, &target).failures, [], "{arrives}");
        assert_eq!(fs::read(scratch.path().join(arrives)).expect("read"), b"w\n");
    }
}

#[test]
fn source_of_another_kind_is_refused() {
    let kept = plan_of(&[]);
    for (what, source, expected) in [
        (TransferKind::File, "/no/such", "the source /no/such does not exist"),
        (TransferKind::Directory, "/no/such", "the source /no/such does not exist"),
        (TransferKind::File, "/etc", "the source /etc is not a file"),
        (TransferKind::Directory, "/etc/passwd", "the source /etc/passwd is not a directory"),
    ] {
        let refused =
            kept.journal.plan(&[transfer(what, Path::new(source), Path::new("/tmp/never"))]);
        assert_eq!(refused.expect_err(expected).to_string(), expected);
    }
    assert_eq!(kept.journal.counts().expect("counted").all().files, 0);
}

#[test]
fn uncopyable_source_is_listed_and_the_rest_arrives() {
    let scratch = tempfile::tempdir().expect("tempdir");
    let (source, target) = (scratch.path().join("in"), scratch.path().join("out"));
    fs::create_dir_all(source.join("sub")).expect("mkdir");
    fs::write(source.join("good"), "good").expect("write");
    fs::write(source.join("sub/x"), "x").expect("write");
    let _socket = std::os::unix::net::UnixListener::bind(source.join("socket")).expect("bind");
    fs::create_dir(&target).expect("mkdir");
    fs::write(target.join("sub"), "in the way").expect("write");
    let moved = stage(TransferKind::Directory, &source, &target);
    let failed: Vec<_> = moved.failures.iter().map(|f| f.path.clone()).collect();
    assert_eq!(failed, [source.join("socket"), source.join("sub/x"), target.join("sub")]);
    assert!(moved.failures[0].reason.contains("fifo, socket or device"));
    assert!(moved.failures[2].reason.contains("in the way"));
    assert_eq!(names(&target), ["good", "sub"]);
}

#[test]
fn stopped_copy_leaves_nothing() {
    let scratch = tempfile::tempdir().expect("tempdir");
    let (source, target) = (scratch.path().join("in"), scratch.path().join("out"));
    fs::create_dir(&source).expect("mkdir");
    for name in ["a", "b"] {
        fs::write(source.join(name), bytes(8 << 20)).expect("write");
    }
    let plan = plan_of(&[(TransferKind::Directory, &source, &target)]);
    let asked = AtomicUsize::new(0);
    let stop = || asked.fetch_add(1, Ordering::Relaxed) >= 3;
    let moved = carry_out(&plan.journal, &options(), &|_| {}, &stop).expect("carried out");
    assert!(moved.is_stopped && moved.counts.open().files + moved.files == 2);
    let [stopped] = &moved.failures[..] else {
        panic!("{moved:?}");
    };
    assert!(stopped.reason.starts_with("staging was stopped: "), "{moved:?}");
    assert_eq!(names(&target).len() as u64, moved.files);
}

#[test]
fn file_changed_during_the_copy_is_a_failure() {
    let scratch = tempfile::tempdir().expect("tempdir");
    for (name, length_after) in [("touched", 4 << 20), ("cut", 1000)] {
        let (source, target) = (scratch.path().join(name), scratch.path().join("out"));
        fs::write(&source, bytes(4 << 20)).expect("write");
        // An old time, so that a change shows even with a coarse file system clock.
        let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1000);
        let file = fs::File::options().write(true).open(&source).expect("open");
        file.set_modified(old).expect("aged");
        let plan = plan_of(&[(TransferKind::File, &source, &target)]);
        let changes = AtomicU64::new(0);
        let meddle = |did| {
            if !matches!(did, CopyEvent::Bytes(_)) {
                return;
            }
            // Change size or time on each try: otherwise the second copy would succeed.
            let change = changes.fetch_add(1, Ordering::Relaxed);
            let file = fs::File::options().write(true).open(&source).expect("open");
            file.set_len(length_after - change).expect("cut");
            file.write_at(b"!", 0).expect("write");
        };
        let moved = carry_out(&plan.journal, &options(), &meddle, &|| false).expect("carried out");
        assert_eq!(moved.failures.len(), 1, "{name}");
        assert!(moved.failures[0].reason.contains("while it was copied"), "{moved:?}");
        assert!(!target.exists(), "{name}");
    }
}

#[test]
fn progress_adds_up_to_the_bytes_copied() {
    let scratch = tempfile::tempdir().expect("tempdir");
    let source = scratch.path().join("in");
    fs::write(&source, bytes(3 * (1 << 20) + 1)).expect("write");
    let plan = plan_of(&[(TransferKind::File, &source, &scratch.path().join("out"))]);
    let seen = AtomicU64::new(0);
    let count = |did| {
        if let CopyEvent::Bytes(bytes) = did {
            seen.fetch_add(bytes, Ordering::Relaxed);
        }
    };
    let moved = carry_out(&plan.journal, &options(), &count, &|| false).expect("carried out");
    assert_eq!((moved.files, moved.bytes), (1, 3 * (1 << 20) + 1));
    assert_eq!(seen.load(Ordering::Relaxed), moved.bytes);
}

#[test]
fn two_sources_for_one_target_are_an_error() {
    let scratch = tempfile::tempdir().expect("tempdir");
    let [a, b] = ["a", "b"].map(|name| scratch.path().join(name).join("log"));
    for source in [&a, &b] {
        fs::create_dir(source.parent().expect("parent")).expect("mkdir");
        fs::write(source, if source == &a { "a" } else { "b" }).expect("write");
    }
    let target = scratch.path().join("out/");
    let moved =
        done(&plan_of(&[(TransferKind::File, &a, &target), (TransferKind::File, &b, &target)]));
    assert_eq!(fs::read(scratch.path().join("out/log")).expect("read"), b"a");
    assert_eq!(moved.failures.len(), 1);
    assert_eq!(moved.failures[0].path, scratch.path().join("b/log"));
    assert!(moved.failures[0].reason.contains("goes already"), "{moved:?}");
}

#[test]
fn file_is_copied_into_a_directory_of_the_same_plan() {
    let scratch = tempfile::tempdir().expect("tempdir");
    fs::create_dir(scratch.path().join("in")).expect("mkdir");
    fs::write(scratch.path().join("extra"), "x").expect("write");
    let [directory, file, target] = ["in", "extra", "out"].map(|name| scratch.path().join(name));
    let moved = done(&plan_of(&[
        (TransferKind::Directory, &directory, &target),
        (TransferKind::File, &file, &target),
    ]));
    assert_eq!(moved.failures, []);
    assert_eq!(fs::read(scratch.path().join("out/extra")).expect("read"), b"x");
}

#[test]
fn link_that_cannot_be_renamed_leaves_no_temporary_name() {
    let scratch = tempfile::tempdir().expect("tempdir");
    let (source, target) = (scratch.path().join("in"), scratch.path().join("out"));
    fs::create_dir(&source).expect("mkdir");
    symlink("somewhere", source.join("l")).expect("link");
    fs::create_dir_all(target.join("l")).expect("mkdir");
    let moved = stage(TransferKind::Directory, &source, &target);
    assert_eq!(moved.failures.len(), 1, "{moved:?}");
    assert_eq!(names(&target), ["l"]);
}

#[test]
fn file_longer_than_its_size_is_a_failure() {
    let scratch = tempfile::tempdir().expect("tempdir");
    let moved = stage(TransferKind::File, Path::new("/proc/cpuinfo"), &scratch.path().join("out"));
    assert_eq!(moved.failures.len(), 1);
    assert!(moved.failures[0].reason.contains("more than its size says"), "{moved:?}");
}

#[test]
fn existing_directory_keeps_its_mode() {
    let scratch = tempfile::tempdir().expect("tempdir");
    let (source, target) = (scratch.path().join("in"), scratch.path().join("out"));
    fs::create_dir(&source).expect("mkdir");
    fs::write(source.join("x"), "x").expect("write");
    fs::create_dir(&target).expect("mkdir");
    fs::set_permissions(&target, fs::Permissions::from_mode(0o710)).expect("chmod");
    assert_eq!(stage(TransferKind::Directory, &source, &target).failures, []);
    assert_eq!(target.metadata().expect("stat").mode() & 0o7777, 0o710);
}

#[test]
fn two_names_of_one_directory_are_one_target() {
    let scratch = tempfile::tempdir().expect("tempdir");
    fs::create_dir(scratch.path().join("real")).expect("mkdir");
    symlink("real", scratch.path().join("link")).expect("link");
    let [a, b] = ["a", "b"].map(|name| scratch.path().join(name));
    for source in [&a, &b] {
        fs::create_dir(source).expect("mkdir");
        fs::write(source.join("f"), "f").expect("write");
    }
    let [real, link] = ["real/deep", "link/deep"].map(|name| scratch.path().join(name));
    let plan =
        plan_of(&[(TransferKind::Directory, &a, &real), (TransferKind::Directory, &b, &link)]);
    let failures = plan.journal.failures(10).expect("listed");
    assert_eq!(failures.len(), 1);
    assert!(failures[0].reason.contains("goes already"));
}

#[test]
fn counts_match_the_journal_after_any_change() {
    // What is in memory is compared again with each plan.
    let scratch = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("tempdir");
    let source = scratch.path().join("in");
    fs::create_dir(&source).expect("made");
    let target = scratch.path().join("out");
    let add = |name| fs::write(source.join(name), "four").expect("written");
    add("x");
    let kept = plan_of(&[(TransferKind::Directory, &source, &target)]);
    let placed_and_open = || {
        let counts = kept.journal.counts().expect("counted");
        assert_eq!(counts, kept.journal.counts().expect("counted again"));
        (counts.of(State::Placed).files, counts.open().files)
    };
    assert_eq!(placed_and_open(), (0, 1));
    let other = Journal::open_existing(kept.journal.path()).expect("opened");
    moved(&other.into(), &options());
    assert_eq!(placed_and_open(), (1, 0), "another process has staged it");
    add("y");
    let transfer = transfer(TransferKind::Directory, &source, &target);
    kept.journal.plan(&[transfer]).expect("planned");
    assert_eq!(placed_and_open(), (1, 1), "we have planned more");
}

#[test]
fn unverified_file_of_a_killed_staging_is_not_taken_for_verified() {
    let scratch = tempfile::tempdir().expect("tempdir");
    let (source, target) = (scratch.path().join("in"), scratch.path().join("out"));
    fs::create_dir(&source).expect("made");
    fs::write(source.join("x"), "right").expect("written");
    let kept = plan_of(&[(TransferKind::Directory, &source, &target)]);
    killed(&kept.journal, &options(), &|did| matches!(did, CopyEvent::Reread(_)));
    let part = target.join(&names(&target)[0]);
    let times = fs::metadata(&part).and_then(|found| found.modified());
    fs::write(&part, "wrong").expect("damaged");
    let file = fs::File::options().write(true).open(&part).expect("opened");
    file.set_modified(times.expect("times")).expect("as before");
    assert_eq!(done(&kept).failures, []);
    assert_eq!(fs::read(target.join("x")).expect("read"), b"right");
}

#[test]
fn pieces_without_checksums_are_copied_again_by_verification() {
    let scratch = tempfile::tempdir().expect("tempdir");
    let (source, target) = (scratch.path().join("in"), scratch.path().join("out"));
    let content = bytes(5 << 20);
    fs::write(&source, &content).expect("written");
    let kept = plan_of(&[(TransferKind::File, &source, &target)]);
    let without = Options { workers: 1, verify: Verify::Off, ..options() };
    let copied = AtomicU64::new(0);
    killed(&kept.journal, &without, &|did| match did {
        CopyEvent::Bytes(bytes) => copied.fetch_add(bytes, Ordering::Relaxed) >= 3 << 20,
        _ => false,
    });
    assert_eq!(done(&kept).failures, []);
    assert_eq!(fs::read(&target).expect("read"), content);
}
