//! A new directory of few small files is filled under a temporary name and appears complete.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

use forebay_mover::{CopyEvent, CopySummary, Options, State, TransferKind};

use crate::fixture::{
    OpenJournal, StagingFixture, carry_out, killed, mode, names, obey_modes, transfer,
};

const FILES: usize = 20;

fn planned(fixture: &StagingFixture, transfers: &[(&str, &str)]) -> OpenJournal {
    let of = |(source, target): &(&str, &str)| {
        transfer(TransferKind::Directory, &fixture.path(source), &fixture.path(target))
    };
    let journal = fixture.journal();
    let transfers: Vec<_> = transfers.iter().map(of).collect();
    journal.plan(&transfers).expect("planned");
    journal
}

/// The partial directory in `out`.
fn staging_dir(fixture: &StagingFixture) -> PathBuf {
    let out = fixture.path("out");
    let staging_dir = names(&out).into_iter().find(|name| is_aside(name));
    out.join(staging_dir.expect("one is filled"))
}

fn moved(fixture: &StagingFixture, on: &(dyn Fn(CopyEvent) + Sync)) -> CopySummary {
    let journal = fixture.planned();
    carry_out(&journal, &Options::of("7"), on, &|| false).expect("carried out")
}

fn is_aside(name: &str) -> bool {
    name.starts_with(".forebay-7-") && name.ends_with(".dir.part")
}

#[test]
fn staged_directory_appears_complete_and_is_private_before() {
    // More files than fit into one batch, so that batches end within directories.
    let directories = ["a", "b", "c", "d", "e", "f"];
    let fixture = StagingFixture::filled(&directories.map(|name| (name, FILES)));
    symlink("0", fixture.path("in/a/to 0")).expect("linked");
    fs::set_permissions(fixture.path("in/a"), fs::Permissions::from_mode(0o1715)).expect("chmod");
    let asides = AtomicU64::new(0);
    let on = |did| {
        if !matches!(did, CopyEvent::Bytes(_)) {
            return;
        }
        for name in names(&fixture.path("out")) {
            let inside = fixture.path("out").join(&name);
            if is_aside(&name) {
                asides.fetch_add(1, Ordering::Relaxed);
                // Another thread can rename it meanwhile.
                let staging_dir = fs::metadata(inside).map(|found| found.permissions().mode());
                assert!(
                    staging_dir.is_ok_and(|mode| mode & 0o777 == 0o700)
                        || !fixture.path("out").join(&name).exists()
                );
            } else {
                assert!(names(&inside).len() >= FILES, "{name} is half");
            }
        }
    };
    let moved = moved(&fixture, &on);
    assert!(asides.into_inner() > 0);
    assert!(moved.counts.is_complete() && moved.files == 121, "{moved:?}");
    assert_eq!(names(&fixture.path("out")), directories);
    assert_eq!(names(&fixture.path("out/a")), names(&fixture.path("in/a")));
    assert_eq!(mode(&fixture.path("out/a")), 0o1715);
}

#[test]
fn small_large_and_nested_directories_are_filled_in_place() {
    // Hard links are made after all files are copied.
    let fixture =
        StagingFixture::filled(&[("few", 8), ("many", 33), ("deep", 9), ("deep/below", 0)]);
    fs::create_dir(fixture.path("in/linked")).expect("mkdir");
    for number in 0..9 {
        let name = fixture.path(&format!("in/linked/{number}"));
        fs::write(name, "content").expect("write");
    }
    fs::hard_link(fixture.path("in/linked/0"), fixture.path("in/linked/again")).expect("linked");
    let on = |did| {
        if matches!(did, CopyEvent::Bytes(_)) {
            let names = names(&fixture.path("out"));
            // Another thread can have renamed `linked`, which is then complete except for its hard link.
            let (linked, names): (Vec<_>, Vec<_>) =
                names.into_iter().filter(|name| !is_aside(name)).partition(|name| name == "linked");
            assert_eq!(names, ["deep", "few", "many"]);
            let is_whole = |name| self::names(&fixture.path("out").join(name)).len() >= 9;
            assert!(linked.into_iter().all(is_whole));
        }
    };
    let moved = moved(&fixture, &on);
    assert!(moved.counts.is_complete() && moved.files == 60, "{moved:?}");
}

#[test]
fn directory_that_takes_the_name_meanwhile_is_filled_file_by_file() {
    let (fixture, once) = (StagingFixture::filled(&[("a", FILES)]), Once::new());
    let on = |did| {
        if matches!(did, CopyEvent::Bytes(_)) {
            once.call_once(|| {
                fs::create_dir(fixture.path("out/a")).expect("made");
                fs::write(fixture.path("out/a/other"), "precious").expect("written");
                fs::write(fixture.path("out/a/3"), "older").expect("written");
            });
        }
    };
    let moved = moved(&fixture, &on);
    assert!(moved.counts.is_complete() && moved.failures.is_empty());
    assert_eq!(names(&fixture.path("out")), ["a"]);
    assert_eq!(names(&fixture.path("out/a")).len(), FILES + 1);
    let read = |name| fs::read_to_string(fixture.path(name)).expect("read");
    assert_eq!((read("out/a/other"), read("out/a/3")), ("precious".into(), "content".into()));
}

#[test]
fn file_that_takes_the_name_meanwhile_is_kept_and_a_failure() {
    let (fixture, once) = (StagingFixture::filled(&[("a", FILES)]), Once::new());
    let on = |did| {
        if matches!(did, CopyEvent::Bytes(_)) {
            once.call_once(|| fs::write(fixture.path("out/a"), "precious").expect("written"));
        }
    };
    let moved = moved(&fixture, &on);
    assert_eq!(moved.failures.len(), FILES + 1, "{:?}", moved.failures);
    assert_eq!(names(&fixture.path("out")), ["a"]);
    let kept = fs::read_to_string(fixture.path("out/a")).expect("read");
    assert_eq!(kept, "precious");
    fs::remove_file(fixture.path("out/a")).expect("removed");
    let journal = fixture.journal();
    journal.retry().expect("ready");
    let done = carry_out(&journal, &Options::of("7"), &|_| {}, &|| false).expect("carried out");
    assert!(done.counts.is_complete());
    assert_eq!(names(&fixture.path("out/a")).len(), FILES);
}

#[test]
fn directory_whose_files_all_failed_arrives_empty() {
    let (fixture, once) = (StagingFixture::filled(&[("a", FILES), ("b", FILES)]), Once::new());
    let on = |did| {
        if matches!(did, CopyEvent::Bytes(_)) {
            once.call_once(|| {
                for name in names(&fixture.path("in/b")) {
                    fs::remove_file(fixture.path("in/b").join(name)).expect("removed");
                }
            });
        }
    };
    let one = Options { workers: 1, ..Options::of("7") };
    let moved = carry_out(&fixture.planned(), &one, &on, &|| false).expect("carried out");
    assert!(!moved.failures.is_empty() && moved.files + moved.failures.len() as u64 == 40);
    assert_eq!(names(&fixture.path("out")), ["a", "b"]);
}

#[test]
fn two_sources_for_one_directory_both_arrive() {
    let fixture = StagingFixture::filled(&[("in/a", FILES), ("other/a", 0)]);
    for number in 0..FILES {
        let name = fixture.path(&format!("in/other/a/more {number}"));
        fs::write(name, "content").expect("written");
    }
    let journal = planned(&fixture, &[("in/in", "out"), ("in/other", "out")]);
    let moved = carry_out(&journal, &Options::of("7"), &|_| {}, &|| false).expect("carried out");
    assert!(moved.counts.is_complete() && moved.failures.is_empty(), "{moved:?}");
    assert_eq!(names(&fixture.path("out")), ["a"]);
    assert_eq!(names(&fixture.path("out/a")).len(), 2 * FILES);
}

/// Simulates a kill after half of the files are copied.
fn half_killed(fixture: &StagingFixture) -> OpenJournal {
    let journal = fixture.planned();
    let copied = AtomicU64::new(0);
    let one = Options { workers: 1, ..Options::of("7") };
    killed(&journal, &one, &|did| {
        matches!(did, CopyEvent::Bytes(_)) && copied.fetch_add(1, Ordering::Relaxed) >= 10
    });
    assert!(names(&fixture.path("out")).iter().any(|name| is_aside(name)));
    journal
}

#[test]
fn continuation_after_a_kill_leaves_no_staging_directory() {
    let fixture = StagingFixture::filled(&[("a", FILES)]);
    let journal = half_killed(&fixture);
    let done = carry_out(&journal, &Options::of("7"), &|_| {}, &|| false).expect("carried out");
    assert!(done.counts.is_complete());
    assert_eq!(names(&fixture.path("out")), ["a"]);
    assert_eq!(names(&fixture.path("out/a")), names(&fixture.path("in/a")));
}

#[test]
fn staging_directory_of_a_killed_staging_is_removed() {
    let fixture = StagingFixture::filled(&[("a", FILES)]);
    let journal = half_killed(&fixture);
    assert_eq!(forebay_mover::remove_partial_files(&journal, "another").expect("looked"), 0);
    forebay_mover::discard_partial(&journal, "7").expect("taken away");
    assert!(names(&fixture.path("out")).is_empty());
    let counts = journal.counts().expect("counts");
    assert_eq!(counts.of(State::Planned).files, FILES as u64);
    let done = carry_out(&journal, &Options::of("7"), &|_| {}, &|| false).expect("carried out");
    assert!(done.counts.is_complete());
    assert_eq!(names(&fixture.path("out/a")), names(&fixture.path("in/a")));
}

/// The remaining files are renamed one by one. A missing file must not count as copied with its directory.
#[test]
fn staging_directory_that_vanishes_is_not_delivered() {
    for whole in [true, false] {
        let (fixture, count) = (StagingFixture::filled(&[("a", FILES)]), AtomicU64::new(0));
        let on = |did| {
            if matches!(did, CopyEvent::Bytes(_)) && count.fetch_add(1, Ordering::Relaxed) == 8 {
                let staging_dir = staging_dir(&fixture);
                let first = names(&staging_dir).remove(0);
                match whole {
                    true => fs::remove_dir_all(&staging_dir).expect("purged"),
                    false => fs::remove_file(staging_dir.join(first)).expect("purged"),
                }
            }
        };
        let moved = moved(&fixture, &on);
        assert!(!moved.failures.is_empty() && !moved.counts.is_complete());
        assert_eq!(names(&fixture.path("out")), ["a"]);
        let there = names(&fixture.path("out/a")).len();
        assert_eq!(there as u64, moved.files);
        assert_eq!(there + moved.failures.len(), FILES);
        let journal = fixture.journal();
        journal.retry().expect("ready");
        let done = carry_out(&journal, &Options::of("7"), &|_| {}, &|| false).expect("carried out");
        assert!(done.counts.is_complete());
        assert_eq!(names(&fixture.path("out/a")), names(&fixture.path("in/a")));
    }
}

#[test]
fn directory_of_two_transfers_is_created_at_once_and_private() {
    let fixture = StagingFixture::filled(&[("in/a", FILES), ("in/b", FILES), ("other", 1)]);
    let of = |what, source, target| transfer(what, &fixture.path(source), &fixture.path(target));
    let transfers = [
        of(TransferKind::Directory, "in/in", "out"),
        of(TransferKind::FileToName, "in/in/a/1", "out/a/one more"),
        of(TransferKind::Directory, "in/other", "out/b/other"),
    ];
    let journal = fixture.journal();
    journal.plan(&transfers).expect("planned");
    let on = |did| {
        if matches!(did, CopyEvent::Bytes(_)) {
            assert_eq!(mode(&fixture.path("out/b")), 0o700);
        }
    };
    let moved = carry_out(&journal, &Options::of("7"), &on, &|| false).expect("carried out");
    assert!(moved.counts.is_complete() && moved.files == 42, "{moved:?}");
    assert_eq!(names(&fixture.path("out/a")).len(), FILES + 1);
}

#[test]
fn leftovers_of_a_failed_staging_directory_are_removed() {
    let fixture = StagingFixture::filled(&[("a", FILES)]);
    let journal = half_killed(&fixture);
    // Simulates a kill after the directory failed and before its files failed.
    let sqlite = rusqlite::Connection::open(fixture.path("journal")).expect("opened");
    let set =
        "DROP TRIGGER directory_changed; UPDATE directory SET state = 5 WHERE target LIKE '%/a'";
    sqlite.execute_batch(set).expect("set");
    forebay_mover::discard_partial(&journal, "7").expect("taken away");
    assert!(names(&fixture.path("out")).is_empty());
}

#[test]
fn plan_can_be_carried_out_by_another_process() {
    let fixture = StagingFixture::filled(&[("a", FILES)]);
    drop(fixture.planned());
    let journal = fixture.journal();
    let on = |did| assert!(!matches!(did, CopyEvent::Bytes(_)) || !fixture.path("out/a").exists());
    let moved = carry_out(&journal, &Options::of("7"), &on, &|| false).expect("carried out");
    assert!(moved.counts.is_complete());
    assert_eq!(names(&fixture.path("out")), ["a"]);
}

#[test]
fn staging_directory_does_not_exceed_the_path_limit() {
    let fixture = StagingFixture::filled(&[]);
    let mut long = "in".to_owned();
    while fixture.path(&long).as_os_str().len() < 3800 {
        long.push_str("/0123456789");
    }
    let directory = fixture.path(&long).join("a");
    fs::create_dir_all(&directory).expect("made");
    for number in 0..FILES {
        let name = format!("{number:0250}");
        fs::write(directory.join(name), "content").expect("written");
    }
    let moved = moved(&fixture, &|_| {});
    assert!(moved.counts.is_complete() && moved.files == FILES as u64, "{moved:?}");
}

#[test]
fn directory_made_unwritable_by_another_staging_is_reopened() {
    obey_modes();
    let (fixture, once) = (StagingFixture::filled(&[("a", FILES)]), Once::new());
    let closed = fs::Permissions::from_mode(0o555);
    fs::set_permissions(fixture.path("in/a"), closed.clone()).expect("chmod");
    let on = |did| {
        if matches!(did, CopyEvent::Bytes(_)) {
            once.call_once(|| {
                fs::create_dir(fixture.path("out/a")).expect("made");
                fs::write(fixture.path("out/a/0"), "content").expect("written");
                fs::set_permissions(fixture.path("out/a"), closed.clone()).expect("chmod");
            });
        }
    };
    let moved = moved(&fixture, &on);
    assert!(moved.counts.is_complete(), "{:?}", moved.failures);
    assert_eq!(names(&fixture.path("out/a")), names(&fixture.path("in/a")));
    assert_eq!(mode(&fixture.path("out/a")), 0o555);
}

/// Simulates a power failure that undid the last journal commits and kept the directory.
#[test]
fn unknown_staging_directory_is_removed() {
    let fixture = StagingFixture::filled(&[("a", FILES)]);
    let journal = half_killed(&fixture);
    let sqlite = rusqlite::Connection::open(fixture.path("journal")).expect("opened");
    let set = "DROP TRIGGER entry_changed; DROP TRIGGER directory_changed; \
               UPDATE entry SET state = 0; UPDATE directory SET state = 0, is_made = 0";
    sqlite.execute_batch(set).expect("set");
    let done = carry_out(&journal, &Options::of("7"), &|_| {}, &|| false).expect("carried out");
    assert!(done.counts.is_complete());
    assert_eq!(names(&fixture.path("out")), ["a"]);
    assert_eq!(names(&fixture.path("out/a")), names(&fixture.path("in/a")));
    // Simulates a kill after the files were renamed, before the partial directory was removed.
    fs::create_dir(fixture.path("out/.forebay-7-2.dir.part")).expect("made");
    let set = "UPDATE directory SET state = 1, is_made = 1 WHERE id = 2";
    sqlite.execute_batch(set).expect("set");
    let done = carry_out(&journal, &Options::of("7"), &|_| {}, &|| false).expect("carried out");
    assert!(done.counts.is_complete());
    assert_eq!(names(&fixture.path("out")), ["a"]);
}

#[test]
fn no_staging_directory_next_to_a_named_directory() {
    let fixture = StagingFixture::filled(&[("a", FILES), ("one", 1)]);
    let journal = planned(&fixture, &[("in/one", "out/one"), ("in/a", "out/a")]);
    let on = |did| {
        if matches!(did, CopyEvent::Bytes(_)) {
            assert_eq!(names(&fixture.path("out")), ["a", "one"]);
        }
    };
    let moved = carry_out(&journal, &Options::of("7"), &on, &|| false).expect("carried out");
    assert!(moved.counts.is_complete() && moved.files == 21, "{moved:?}");
}

/// One file vanishes and a foreign one appears: the number of names is unchanged.
#[test]
fn equal_number_of_names_is_not_enough() {
    let (fixture, count) = (StagingFixture::filled(&[("a", FILES)]), AtomicU64::new(0));
    let on = |did| {
        if matches!(did, CopyEvent::Bytes(_)) && count.fetch_add(1, Ordering::Relaxed) == 8 {
            let staging_dir = staging_dir(&fixture);
            fs::rename(staging_dir.join(&names(&staging_dir)[0]), staging_dir.join("another"))
                .expect("renamed");
        }
    };
    let moved = moved(&fixture, &on);
    assert_eq!((moved.failures.len(), moved.files as usize), (1, FILES - 1));
    assert_eq!(names(&fixture.path("out")), ["a"]);
    assert_eq!(names(&fixture.path("out/a")).len(), FILES - 1);
}
