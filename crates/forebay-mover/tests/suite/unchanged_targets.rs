//! Trees that exist at the destination, completely or in part.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use forebay_host::users;
use forebay_mover::{CopyEvent, CopySummary, Journal, Options, Plan, State, TransferKind};

use crate::fixture::{OpenJournal, StagingFixture, carry_out, transfer};

fn options() -> Options {
    Options { workers: 2, piece_bytes: 1 << 20, ..Options::of("7") }
}

const FILES: u64 = 36;

/// A tree of three directories with twelve files each.
fn tree() -> StagingFixture {
    let fixture = StagingFixture::new();
    for directory in ["a", "a/b", "c"] {
        fs::create_dir_all(fixture.source(directory)).expect("mkdir");
        for number in 0..12 {
            let name = format!("{directory}/{number}");
            fs::write(fixture.source(&name), &name).expect("write");
        }
    }
    fixture
}

impl StagingFixture {
    fn source(&self, name: &str) -> PathBuf {
        self.path("in").join(name)
    }

    fn target(&self, name: &str) -> PathBuf {
        self.path("out").join(name)
    }

    fn planned_again(&self) -> OpenJournal {
        Journal::remove(&self.path("journal")).expect("removed");
        self.planned()
    }
}

/// The result of a run, and the number of copied bytes.
fn moved(journal: &OpenJournal, options: &Options) -> (CopySummary, u64) {
    let (copied, passed) = (AtomicU64::new(0), AtomicU64::new(0));
    let count = |did| match did {
        CopyEvent::Bytes(bytes) => drop(copied.fetch_add(bytes, Ordering::Relaxed)),
        CopyEvent::Skipped(bytes) => drop(passed.fetch_add(bytes, Ordering::Relaxed)),
        CopyEvent::Reread(_) | CopyEvent::File => {}
    };
    let moved = carry_out(journal, options, &count, &|| false).expect("carried out");
    let copied = copied.into_inner();
    assert_eq!(moved.failures, []);
    assert_eq!(copied + passed.into_inner(), moved.bytes, "progress adds up");
    (moved, copied)
}

fn inode(path: &Path) -> u64 {
    std::os::unix::fs::MetadataExt::ino(&fs::metadata(path).expect("there"))
}

#[test]
fn unchanged_target_found_by_the_scan_counts_after_its_sync() {
    let fixture = tree();
    let (first, _) = moved(&fixture.planned_again(), &options());
    assert_eq!((first.files, first.unchanged_files), (FILES, 0));
    let before = inode(&fixture.target("a/b/7"));
    let journal = fixture.planned_again();
    let counts = journal.counts().expect("counts");
    assert_eq!(counts.of(State::Copied).files, FILES);
    assert_eq!(counts.of(State::Placed).files, 0, "nobody has synced it");
    let (again, copied) = moved(&journal, &options());
    assert_eq!((again.files, again.unchanged_files), (FILES, FILES));
    assert_eq!((copied, again.bytes), (0, first.bytes));
    assert_eq!(again.counts, first.counts);
    assert_eq!(inode(&fixture.target("a/b/7")), before);
}

#[test]
fn staging_killed_after_its_plan_checks_targets_again() {
    let fixture = tree();
    moved(&fixture.planned_again(), &options());
    drop(fixture.planned_again());
    fs::remove_file(fixture.target("a/3")).expect("removed");
    fs::write(fixture.target("c/4"), "another").expect("written");
    let journal = fixture.journal();
    let (again, copied) = moved(&journal, &options());
    assert_eq!((again.files, again.unchanged_files), (FILES, FILES - 2));
    assert_eq!(copied, 2 * "a/3".len() as u64);
    assert!(again.counts.is_complete());
    assert_eq!(fs::read(fixture.target("c/4")).expect("read"), b"c/4");
    assert_eq!(fs::read(fixture.target("a/3")).expect("read"), b"a/3");
}

#[test]
fn target_removed_after_the_scan_is_copied() {
    let fixture = tree();
    moved(&fixture.planned_again(), &options());
    // Longer than a tick of the file system's clock: changes within one tick have the same time.
    std::thread::sleep(std::time::Duration::from_millis(50));
    let journal = fixture.planned_again();
    fs::remove_file(fixture.target("a/3")).expect("removed");
    let (again, copied) = moved(&journal, &options());
    assert_eq!((again.files, again.unchanged_files), (FILES, FILES - 1));
    assert_eq!(copied, "a/3".len() as u64);
    assert_eq!(fs::read(fixture.target("a/3")).expect("read"), b"a/3");
}

#[test]
fn unchanged_file_at_a_rejected_destination_is_not_staged() {
    let fixture = tree();
    moved(&fixture.planned_again(), &options());
    Journal::remove(&fixture.path("journal")).expect("removed");
    let journal = fixture.journal();
    let plan = Plan::begin(&journal, &|_| true).expect("begun");
    plan.add(&fixture.tree()).expect("added");
    plan.reject_destinations("no", &|path| path.ends_with("c")).expect("refused");
    journal.end(plan).expect("planned");
    let moved = carry_out(&journal, &options(), &|_| (), &|| false).expect("carried out");
    assert_eq!((moved.unchanged_files, moved.failures.len()), (FILES - 12, 1));
}

#[test]
fn target_renamed_after_the_scan_is_copied() {
    for (name, left) in [("", 0), ("a", 12), ("a/b", 24)] {
        for is_made_anew in [false, true] {
            let fixture = tree();
            moved(&fixture.planned_again(), &options());
            let journal = fixture.planned_again();
            let away = fixture.path("away");
            fs::rename(fixture.target(name), away).expect("renamed");
            if is_made_anew {
                fs::create_dir(fixture.target(name)).expect("made");
            }
            let (again, _) = moved(&journal, &options());
            assert_eq!((again.files, again.unchanged_files), (FILES, left));
            for directory in ["a", "a/b", "c"] {
                for number in 0..12 {
                    let name = format!("{directory}/{number}");
                    let found = fs::read_to_string(fixture.target(&name)).expect("read");
                    assert_eq!(found, name);
                }
            }
        }
    }
}

#[test]
fn different_targets_are_copied_and_the_rest_kept() {
    let fixture = tree();
    fs::write(fixture.source("empty"), "").expect("written");
    fs::hard_link(fixture.source("a/1"), fixture.source("a/again")).expect("linked");
    symlink("a/1", fixture.source("link")).expect("linked");
    moved(&fixture.planned_again(), &options());
    fs::write(fixture.source("a/2"), "longer than before").expect("written");
    fs::create_dir(fixture.source("c/new")).expect("mkdir");
    fs::write(fixture.source("c/new/file"), "new").expect("written");
    let closed = fs::Permissions::from_mode(0o400);
    fs::set_permissions(fixture.source("a/b/5"), closed).expect("closed");
    fs::remove_file(fixture.target("c/6")).expect("removed");
    fs::remove_file(fixture.target("link")).expect("removed");
    fs::remove_dir_all(fixture.target("a/b")).expect("removed");
    let (again, copied) = moved(&fixture.planned_again(), &options());
    let expected = "longer than before".len() + "new".len() + "c/6".len();
    let below: usize = (0..12).map(|number| format!("a/b/{number}").len()).sum();
    assert_eq!(copied, (expected + below) as u64);
    assert!(again.counts.is_complete());
    for (name, content) in [("a/2", "longer than before"), ("c/new/file", "new"), ("c/6", "c/6")] {
        assert_eq!(fs::read_to_string(fixture.target(name)).expect("read"), content);
    }
    let mode = |path: PathBuf| fs::metadata(path).expect("there").permissions().mode() & 0o7777;
    assert_eq!(mode(fixture.target("a/b/5")), 0o400);
    assert_eq!(inode(&fixture.target("a/1")), inode(&fixture.target("a/again")));
    assert!(fixture.target("link").is_symlink());
}

#[test]
fn modes_are_kept_in_new_and_existing_directories() {
    let modes = [0o400, 0o600, 0o644, 0o666, 0o755, 0o4755, 0o2750, 0o000];
    let name = |mode: u32| format!("c/mode {mode:o}");
    let fixture = tree();
    for round in ["new", "there"] {
        for mode in modes {
            let path = fixture.source(&name(mode));
            fs::remove_file(&path).ok(); // left by the previous round
            fs::write(&path, round).expect("written");
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("set");
        }
        if !users::is_root() {
            fs::remove_file(fixture.source(&name(0))).expect("removed"); // only root can read it
        }
        moved(&fixture.planned_again(), &options());
        for mode in modes.into_iter().filter(|mode| *mode != 0 || users::is_root()) {
            let found = fs::metadata(fixture.target(&name(mode))).expect("there");
            assert_eq!(found.permissions().mode() & 0o7777, mode, "{round} {mode:o}");
        }
    }
}

/// Replaces the content, but not the status that a staging compares, as a write through a mapping does in memory.
fn write_unseen(path: &Path, content: &[u8]) {
    let modified = fs::metadata(path).and_then(|found| found.modified()).expect("there");
    let mut file = fs::OpenOptions::new().write(true).open(path).expect("opened");
    file.write_all(content).expect("written");
    file.set_modified(modified).expect("set");
}

#[test]
fn file_in_memory_that_changed_without_a_new_time_is_copied() {
    for is_source in [true, false] {
        let memory = tempfile::tempdir_in("/dev/shm").expect("tempdir");
        let fixture = StagingFixture::new();
        let (on_disk, in_memory) = (fixture.path("in"), memory.path().join("tree"));
        let (from, to) = if is_source { (&in_memory, &on_disk) } else { (&on_disk, &in_memory) };
        fs::create_dir_all(from).expect("made");
        let large = vec![b'a'; 3 << 20];
        fs::write(from.join("small"), "old").expect("written");
        fs::write(from.join("large"), &large).expect("written");
        let transfer = transfer(TransferKind::Directory, from, to);
        let again = |journal: &OpenJournal| {
            journal.plan(std::slice::from_ref(&transfer)).expect("planned");
            moved(journal, &options()).0.unchanged_files
        };
        assert_eq!(again(&fixture.journal()), 0);
        for keeps_journal in [false, true] {
            let journal = fixture.journal();
            if !keeps_journal {
                Journal::remove(&fixture.path("journal")).expect("removed");
            }
            let journal = if keeps_journal { journal } else { fixture.journal() };
            let changed = if is_source { from } else { to };
            if !keeps_journal || is_source {
                let content = if keeps_journal { "newer" } else { "other" };
                write_unseen(&changed.join("small"), &content.as_bytes()[..3]);
                write_unseen(&changed.join("large"), b"b");
                again(&journal);
            }
            for name in ["small", "large"] {
                let read = |top: &Path| fs::read(top.join(name)).expect("there");
                assert!(read(from) == read(to), "{name} {is_source} {keeps_journal}");
            }
        }
    }
}

#[test]
fn piece_of_a_file_in_memory_is_copied_again_after_a_stop() {
    let memory = tempfile::tempdir_in("/dev/shm").expect("tempdir");
    let fixture = StagingFixture::new();
    let source = memory.path().join("large");
    fs::write(&source, vec![b'a'; 4 << 20]).expect("written");
    let journal = fixture.journal();
    let target = fixture.path("out/large");
    journal.plan(&[transfer(TransferKind::FileToName, &source, &target)]).expect("planned");
    let failing = Options { workers: 1, ..options() };
    let copied = AtomicU64::new(0);
    let count = |did| {
        if let CopyEvent::Bytes(bytes) = did {
            copied.fetch_add(bytes, Ordering::Relaxed);
        }
    };
    // A kill leaves the pieces: the journal of this process is copied while the second piece is under way.
    let kept = fixture.path("kept");
    let stopped = || {
        let is_begun = copied.load(Ordering::Relaxed) > 1 << 20;
        if is_begun && !kept.exists() {
            fs::create_dir(&kept).expect("made");
            for entry in fs::read_dir(fixture.path("out")).expect("listed") {
                let entry = entry.expect("listed");
                fs::copy(entry.path(), kept.join(entry.file_name())).expect("kept");
            }
            for name in ["journal", "journal-wal"] {
                fs::copy(fixture.path(name), kept.join(name)).ok();
            }
        }
        is_begun
    };
    carry_out(&journal, &failing, &count, &stopped).expect("carried out");
    drop(journal);
    Journal::remove(&fixture.path("journal")).expect("removed");
    for entry in fs::read_dir(&kept).expect("listed") {
        let name = entry.expect("listed").file_name();
        let is_journal = name.to_string_lossy().starts_with("journal");
        let to = if is_journal { fixture.path("") } else { fixture.path("out") };
        fs::rename(kept.join(&name), to.join(&name)).expect("put back");
    }
    write_unseen(&source, b"b");
    moved(&fixture.journal(), &options());
    assert!(fs::read(&source).expect("read") == fs::read(&target).expect("read"));
}
