//! A new directory of few small files is filled under a temporary name and appears complete.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

use forebay_mover::{CopyEvent, CopySummary, Options, State, TransferKind};

use crate::place::{OpenJournal, Place, carry_out, killed, mode, names, obey_modes, transfer};

const FILES: usize = 20;

fn planned(place: &Place, transfers: &[(&str, &str)]) -> OpenJournal {
    let of = |(source, target): &(&str, &str)| {
        transfer(TransferKind::Directory, &place.path(source), &place.path(target))
    };
    let journal = place.journal();
    let transfers: Vec<_> = transfers.iter().map(of).collect();
    journal.plan(&transfers).expect("planned");
    journal
}

/// The partial directory in `out`.
fn staging_dir(place: &Place) -> PathBuf {
    let out = place.path("out");
    let staging_dir = names(&out).into_iter().find(|name| is_aside(name));
    out.join(staging_dir.expect("one is filled"))
}

fn moved(place: &Place, on: &(dyn Fn(CopyEvent) + Sync)) -> CopySummary {
    let journal = place.planned();
    carry_out(&journal, &Options::of("7"), on, &|| false).expect("carried out")
}

fn is_aside(name: &str) -> bool {
    name.starts_with(".forebay-7-") && name.ends_with(".dir.part")
}

#[test]
fn staged_directory_appears_complete_and_is_private_before() {
    // More files than fit into one batch, so that batches end within directories.
    let directories = ["a", "b", "c", "d", "e", "f"];
    let place = Place::filled(&directories.map(|name| (name, FILES)));
    symlink("0", place.path("in/a/to 0")).expect("linked");
    fs::set_permissions(place.path("in/a"), fs::Permissions::from_mode(0o1715)).expect("chmod");
    let asides = AtomicU64::new(0);
    let on = |did| {
        if !matches!(did, CopyEvent::Bytes(_)) {
            return;
        }
        for name in names(&place.path("out")) {
            let inside = place.path("out").join(&name);
            if is_aside(&name) {
                asides.fetch_add(1, Ordering::Relaxed);
                // Another thread can rename it meanwhile.
                let staging_dir = fs::metadata(inside).map(|found| found.permissions().mode());
                assert!(
                    staging_dir.is_ok_and(|mode| mode & 0o777 == 0o700)
                        || !place.path("out").join(&name).exists()
                );
            } else {
                assert!(names(&inside).len() >= FILES, "{name} is half");
            }
        }
    };
    let moved = moved(&place, &on);
    assert!(asides.into_inner() > 0);
    assert!(moved.counts.is_complete() && moved.files == 121, "{moved:?}");
    assert_eq!(names(&place.path("out")), directories);
    assert_eq!(names(&place.path("out/a")), names(&place.path("in/a")));
    assert_eq!(mode(&place.path("out/a")), 0o1715);
}

#[test]
fn small_large_and_nested_directories_are_filled_in_place() {
    // Hard links are made after all files are copied.
    let place = Place::filled(&[("few", 8), ("many", 33), ("deep", 9), ("deep/below", 0)]);
    fs::create_dir(place.path("in/linked")).expect("mkdir");
    for number in 0..9 {
        let name = place.path(&format!("in/linked/{number}"));
        fs::write(name, "content").expect("write");
    }
    fs::hard_link(place.path("in/linked/0"), place.path("in/linked/again")).expect("linked");
    let on = |did| {
        if matches!(did, CopyEvent::Bytes(_)) {
            let names = names(&place.path("out"));
            // Another thread can have renamed `linked`, which is then complete except for its hard link.
            let (linked, names): (Vec<_>, Vec<_>) =
                names.into_iter().filter(|name| !is_aside(name)).partition(|name| name == "linked");
            assert_eq!(names, ["deep", "few", "many"]);
            let is_whole = |name| self::names(&place.path("out").join(name)).len() >= 9;
            assert!(linked.into_iter().all(is_whole));
        }
    };
    let moved = moved(&place, &on);
    assert!(moved.counts.is_complete() && moved.files == 60, "{moved:?}");
}

#[test]
fn directory_that_takes_the_name_meanwhile_is_filled_file_by_file() {
    let (place, once) = (Place::filled(&[("a", FILES)]), Once::new());
    let on = |did| {
        if matches!(did, CopyEvent::Bytes(_)) {
            once.call_once(|| {
                fs::create_dir(place.path("out/a")).expect("made");
                fs::write(place.path("out/a/other"), "precious").expect("written");
                fs::write(place.path("out/a/3"), "older").expect("written");
            });
        }
    };
    let moved = moved(&place, &on);
    assert!(moved.counts.is_complete() && moved.failures.is_empty());
    assert_eq!(names(&place.path("out")), ["a"]);
    assert_eq!(names(&place.path("out/a")).len(), FILES + 1);
    let read = |name| fs::read_to_string(place.path(name)).expect("read");
    assert_eq!((read("out/a/other"), read("out/a/3")), ("precious".into(), "content".into()));
}

#[test]
fn file_that_takes_the_name_meanwhile_is_kept_and_a_failure() {
    let (place, once) = (Place::filled(&[("a", FILES)]), Once::new());
    let on = |did| {
        if matches!(did, CopyEvent::Bytes(_)) {
            once.call_once(|| fs::write(place.path("out/a"), "precious").expect("written"));
        }
    };
    let moved = moved(&place, &on);
    assert_eq!(moved.failures.len(), FILES + 1, "{:?}", moved.failures);
    assert_eq!(names(&place.path("out")), ["a"]);
    let kept = fs::read_to_string(place.path("out/a")).expect("read");
    assert_eq!(kept, "precious");
    fs::remove_file(place.path("out/a")).expect("removed");
    let journal = place.journal();
    journal.retry().expect("ready");
    let done = carry_out(&journal, &Options::of("7"), &|_| {}, &|| false).expect("carried out");
    assert!(done.counts.is_complete());
    assert_eq!(names(&place.path("out/a")).len(), FILES);
}

#[test]
fn directory_whose_files_all_failed_arrives_empty() {
    let (place, once) = (Place::filled(&[("a", FILES), ("b", FILES)]), Once::new());
    let on = |did| {
        if matches!(did, CopyEvent::Bytes(_)) {
            once.call_once(|| {
                for name in names(&place.path("in/b")) {
                    fs::remove_file(place.path("in/b").join(name)).expect("removed");
                }
            });
        }
    };
    let one = Options { workers: 1, ..Options::of("7") };
    let moved = carry_out(&place.planned(), &one, &on, &|| false).expect("carried out");
    assert!(!moved.failures.is_empty() && moved.files + moved.failures.len() as u64 == 40);
    assert_eq!(names(&place.path("out")), ["a", "b"]);
}

#[test]
fn two_sources_for_one_directory_both_arrive() {
    let place = Place::filled(&[("in/a", FILES), ("other/a", 0)]);
    for number in 0..FILES {
        let name = place.path(&format!("in/other/a/more {number}"));
        fs::write(name, "content").expect("written");
    }
    let journal = planned(&place, &[("in/in", "out"), ("in/other", "out")]);
    let moved = carry_out(&journal, &Options::of("7"), &|_| {}, &|| false).expect("carried out");
    assert!(moved.counts.is_complete() && moved.failures.is_empty(), "{moved:?}");
    assert_eq!(names(&place.path("out")), ["a"]);
    assert_eq!(names(&place.path("out/a")).len(), 2 * FILES);
}

/// Simulates a kill after half of the files are copied.
fn half_killed(place: &Place) -> OpenJournal {
    let journal = place.planned();
    let copied = AtomicU64::new(0);
    let one = Options { workers: 1, ..Options::of("7") };
    killed(&journal, &one, &|did| {
        matches!(did, CopyEvent::Bytes(_)) && copied.fetch_add(1, Ordering::Relaxed) >= 10
    });
    assert!(names(&place.path("out")).iter().any(|name| is_aside(name)));
    journal
}

#[test]
fn continuation_after_a_kill_leaves_no_staging_directory() {
    let place = Place::filled(&[("a", FILES)]);
    let journal = half_killed(&place);
    let done = carry_out(&journal, &Options::of("7"), &|_| {}, &|| false).expect("carried out");
    assert!(done.counts.is_complete());
    assert_eq!(names(&place.path("out")), ["a"]);
    assert_eq!(names(&place.path("out/a")), names(&place.path("in/a")));
}

#[test]
fn staging_directory_of_a_killed_staging_is_removed() {
    let place = Place::filled(&[("a", FILES)]);
    let journal = half_killed(&place);
    assert_eq!(forebay_mover::remove_partial_files(&journal, "another").expect("looked"), 0);
    forebay_mover::discard_partial(&journal, "7").expect("taken away");
    assert!(names(&place.path("out")).is_empty());
    let counts = journal.counts().expect("counts");
    assert_eq!(counts.of(State::Planned).files, FILES as u64);
    let done = carry_out(&journal, &Options::of("7"), &|_| {}, &|| false).expect("carried out");
    assert!(done.counts.is_complete());
    assert_eq!(names(&place.path("out/a")), names(&place.path("in/a")));
}

/// The remaining files are renamed one by one. A missing file must not count as copied with its directory.
#[test]
fn staging_directory_that_vanishes_is_not_delivered() {
    for whole in [true, false] {
        let (place, count) = (Place::filled(&[("a", FILES)]), AtomicU64::new(0));
        let on = |did| {
            if matches!(did, CopyEvent::Bytes(_)) && count.fetch_add(1, Ordering::Relaxed) == 8 {
                let staging_dir = staging_dir(&place);
                let first = names(&staging_dir).remove(0);
                match whole {
                    true => fs::remove_dir_all(&staging_dir).expect("purged"),
                    false => fs::remove_file(staging_dir.join(first)).expect("purged"),
                }
            }
        };
        let moved = moved(&place, &on);
        assert!(!moved.failures.is_empty() && !moved.counts.is_complete());
        assert_eq!(names(&place.path("out")), ["a"]);
        let there = names(&place.path("out/a")).len();
        assert_eq!(there as u64, moved.files);
        assert_eq!(there + moved.failures.len(), FILES);
        let journal = place.journal();
        journal.retry().expect("ready");
        let done = carry_out(&journal, &Options::of("7"), &|_| {}, &|| false).expect("carried out");
        assert!(done.counts.is_complete());
        assert_eq!(names(&place.path("out/a")), names(&place.path("in/a")));
    }
}

#[test]
fn directory_of_two_transfers_is_created_at_once_and_private() {
    let place = Place::filled(&[("in/a", FILES), ("in/b", FILES), ("other", 1)]);
    let of = |what, source, target| transfer(what, &place.path(source), &place.path(target));
    let transfers = [
        of(TransferKind::Directory, "in/in", "out"),
        of(TransferKind::FileToName, "in/in/a/1", "out/a/one more"),
        of(TransferKind::Directory, "in/other", "out/b/other"),
    ];
    let journal = place.journal();
    journal.plan(&transfers).expect("planned");
    let on = |did| {
        if matches!(did, CopyEvent::Bytes(_)) {
            assert_eq!(mode(&place.path("out/b")), 0o700);
        }
    };
    let moved = carry_out(&journal, &Options::of("7"), &on, &|| false).expect("carried out");
    assert!(moved.counts.is_complete() && moved.files == 42, "{moved:?}");
    assert_eq!(names(&place.path("out/a")).len(), FILES + 1);
}

#[test]
fn leftovers_of_a_failed_staging_directory_are_removed() {
    let place = Place::filled(&[("a", FILES)]);
    let journal = half_killed(&place);
    // Simulates a kill after the directory failed and before its files failed.
    let sqlite = rusqlite::Connection::open(place.path("journal")).expect("opened");
    let set =
        "DROP TRIGGER directory_changed; UPDATE directory SET state = 5 WHERE target LIKE '%/a'";
    sqlite.execute_batch(set).expect("set");
    forebay_mover::discard_partial(&journal, "7").expect("taken away");
    assert!(names(&place.path("out")).is_empty());
}

#[test]
fn plan_can_be_carried_out_by_another_process() {
    let place = Place::filled(&[("a", FILES)]);
    drop(place.planned());
    let journal = place.journal();
    let on = |did| assert!(!matches!(did, CopyEvent::Bytes(_)) || !place.path("out/a").exists());
    let moved = carry_out(&journal, &Options::of("7"), &on, &|| false).expect("carried out");
    assert!(moved.counts.is_complete());
    assert_eq!(names(&place.path("out")), ["a"]);
}

#[test]
fn staging_directory_does_not_exceed_the_path_limit() {
    let place = Place::filled(&[]);
    let mut long = "in".to_owned();
    while place.path(&long).as_os_str().len() < 3800 {
        long.push_str("/0123456789");
    }
    let directory = place.path(&long).join("a");
    fs::create_dir_all(&directory).expect("made");
    for number in 0..FILES {
        let name = format!("{number:0250}");
        fs::write(directory.join(name), "content").expect("written");
    }
    let moved = moved(&place, &|_| {});
    assert!(moved.counts.is_complete() && moved.files == FILES as u64, "{moved:?}");
}

#[test]
fn directory_made_unwritable_by_another_staging_is_reopened() {
    obey_modes();
    let (place, once) = (Place::filled(&[("a", FILES)]), Once::new());
    let closed = fs::Permissions::from_mode(0o555);
    fs::set_permissions(place.path("in/a"), closed.clone()).expect("chmod");
    let on = |did| {
        if matches!(did, CopyEvent::Bytes(_)) {
            once.call_once(|| {
                fs::create_dir(place.path("out/a")).expect("made");
                fs::write(place.path("out/a/0"), "content").expect("written");
                fs::set_permissions(place.path("out/a"), closed.clone()).expect("chmod");
            });
        }
    };
    let moved = moved(&place, &on);
    assert!(moved.counts.is_complete(), "{:?}", moved.failures);
    assert_eq!(names(&place.path("out/a")), names(&place.path("in/a")));
    assert_eq!(mode(&place.path("out/a")), 0o555);
}

/// Simulates a power failure that undid the last journal commits and kept the directory.
#[test]
fn unknown_staging_directory_is_removed() {
    let place = Place::filled(&[("a", FILES)]);
    let journal = half_killed(&place);
    let sqlite = rusqlite::Connection::open(place.path("journal")).expect("opened");
    let set = "DROP TRIGGER entry_changed; DROP TRIGGER directory_changed; \
               UPDATE entry SET state = 0; UPDATE directory SET state = 0, is_made = 0";
    sqlite.execute_batch(set).expect("set");
    let done = carry_out(&journal, &Options::of("7"), &|_| {}, &|| false).expect("carried out");
    assert!(done.counts.is_complete());
    assert_eq!(names(&place.path("out")), ["a"]);
    assert_eq!(names(&place.path("out/a")), names(&place.path("in/a")));
    // Simulates a kill after the files were renamed, before the partial directory was removed.
    fs::create_dir(place.path("out/.forebay-7-2.dir.part")).expect("made");
    let set = "UPDATE directory SET state = 1, is_made = 1 WHERE id = 2";
    sqlite.execute_batch(set).expect("set");
    let done = carry_out(&journal, &Options::of("7"), &|_| {}, &|| false).expect("carried out");
    assert!(done.counts.is_complete());
    assert_eq!(names(&place.path("out")), ["a"]);
}

#[test]
fn no_staging_directory_next_to_a_named_directory() {
    let place = Place::filled(&[("a", FILES), ("one", 1)]);
    let journal = planned(&place, &[("in/one", "out/one"), ("in/a", "out/a")]);
    let on = |did| {
        if matches!(did, CopyEvent::Bytes(_)) {
            assert_eq!(names(&place.path("out")), ["a", "one"]);
        }
    };
    let moved = carry_out(&journal, &Options::of("7"), &on, &|| false).expect("carried out");
    assert!(moved.counts.is_complete() && moved.files == 21, "{moved:?}");
}

/// One file vanishes and a foreign one appears: the number of names is unchanged.
#[test]
fn equal_number_of_names_is_not_enough() {
    let (place, count) = (Place::filled(&[("a", FILES)]), AtomicU64::new(0));
    let on = |did| {
        if matches!(did, CopyEvent::Bytes(_)) && count.fetch_add(1, Ordering::Relaxed) == 8 {
            let staging_dir = staging_dir(&place);
            fs::rename(staging_dir.join(&names(&staging_dir)[0]), staging_dir.join("another"))
                .expect("renamed");
        }
    };
    let moved = moved(&place, &on);
    assert_eq!((moved.failures.len(), moved.files as usize), (1, FILES - 1));
    assert_eq!(names(&place.path("out")), ["a"]);
    assert_eq!(names(&place.path("out/a")).len(), FILES - 1);
}
