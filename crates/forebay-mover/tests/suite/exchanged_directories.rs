//! Another user renames directories of the destination while a staging copies into them.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::atomic::{AtomicBool, Ordering};

use forebay_mover::{CopyEvent, CopySummary, Options};

use crate::place::{Place, carry_out, mode};

/// One thread, which copies a file in pieces if it has more than 1 MiB.
fn options() -> Options {
    Options { workers: 1, piece_bytes: 1 << 20, ..Options::of("7") }
}

/// A source, and a destination in which everybody may rename.
fn shared(directories: &[(&str, usize)]) -> Place {
    let place = Place::filled(directories);
    fs::create_dir(place.path("elsewhere")).expect("made");
    fs::create_dir(place.path("out")).expect("made");
    fs::set_permissions(place.path("out"), fs::Permissions::from_mode(0o777)).expect("chmod");
    place
}

/// Stages, and exchanges `out/a` for a link to `elsewhere` when the first bytes are copied.
fn stage_and_exchange(place: &Place, options: &Options) -> CopySummary {
    let is_done = AtomicBool::new(false);
    let on = |event| {
        if matches!(event, CopyEvent::Bytes(_)) && !is_done.swap(true, Ordering::Relaxed) {
            fs::rename(place.path("out/a"), place.path("out/taken")).expect("renamed");
            symlink(place.path("elsewhere"), place.path("out/a")).expect("linked");
        }
    };
    carry_out(&place.planned(), options, &on, &|| false).expect("carried out")
}

fn assert_nothing_elsewhere(place: &Place, done: &CopySummary) {
    let names = fs::read_dir(place.path("elsewhere")).expect("listed");
    let names: Vec<_> = names.map(|one| one.expect("entry").file_name()).collect();
    assert!(names.is_empty(), "{names:?}");
    assert_eq!(mode(&place.path("elsewhere")), 0o750);
    let is_named = |reason: &str| reason.contains("was exchanged while it was staged");
    assert!(done.failures.iter().any(|one| is_named(&one.reason)), "{:?}", done.failures.first());
    assert!(!done.counts.is_complete());
}

#[test]
fn exchanged_directory_gets_no_file_and_no_mode() {
    let place = shared(&[("a", 300)]);
    fs::set_permissions(place.path("elsewhere"), fs::Permissions::from_mode(0o750)).expect("chmod");
    symlink("nowhere", place.path("in/a/link")).expect("linked");
    fs::hard_link(place.path("in/a/1"), place.path("in/a/other name")).expect("linked");
    let done = stage_and_exchange(&place, &options());
    assert_nothing_elsewhere(&place, &done);
}

#[test]
fn exchanged_directory_gets_no_large_file() {
    let place = shared(&[("a", 3)]);
    fs::set_permissions(place.path("elsewhere"), fs::Permissions::from_mode(0o750)).expect("chmod");
    for name in ["large", "larger"] {
        fs::write(place.path("in/a").join(name), vec![1; (2 << 20) + 7]).expect("written");
    }
    let done = stage_and_exchange(&place, &options());
    assert_nothing_elsewhere(&place, &done);
}

#[test]
fn link_that_was_there_before_is_followed() {
    let place = shared(&[("a/deep", 20), ("a", 2)]);
    symlink(place.path("elsewhere"), place.path("out/a")).expect("linked");
    let done = carry_out(&place.planned(), &options(), &|_| {}, &|| false).expect("carried out");
    assert!(done.counts.is_complete(), "{:?}", done.failures.first());
    assert!(place.path("elsewhere/deep/19").exists() && place.path("elsewhere/1").exists());
}
