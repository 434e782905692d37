//! Another user renames directories of the destination while a staging copies into them.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::atomic::{AtomicBool, Ordering};

use forebay_mover::{CopyEvent, CopySummary, Options};

use crate::fixture::{StagingFixture, carry_out, mode};

/// One thread, which copies a file in pieces if it has more than 1 MiB.
fn options() -> Options {
    Options { workers: 1, piece_bytes: 1 << 20, ..Options::of("7") }
}

/// A source, and a destination in which everybody may rename.
fn shared(directories: &[(&str, usize)]) -> StagingFixture {
    let fixture = StagingFixture::filled(directories);
    fs::create_dir(fixture.path("elsewhere")).expect("made");
    fs::create_dir(fixture.path("out")).expect("made");
    fs::set_permissions(fixture.path("out"), fs::Permissions::from_mode(0o777)).expect("chmod");
    fixture
}

/// Stages, and exchanges `out/a` for a link to `elsewhere` when the first bytes are copied.
fn stage_and_exchange(fixture: &StagingFixture, options: &Options) -> CopySummary {
    let is_done = AtomicBool::new(false);
    let on = |event| {
        if matches!(event, CopyEvent::Bytes(_)) && !is_done.swap(true, Ordering::Relaxed) {
            fs::rename(fixture.path("out/a"), fixture.path("out/taken")).expect("renamed");
            symlink(fixture.path("elsewhere"), fixture.path("out/a")).expect("linked");
        }
    };
    carry_out(&fixture.planned(), options, &on, &|| false).expect("carried out")
}

fn assert_nothing_elsewhere(fixture: &StagingFixture, done: &CopySummary) {
    let names = fs::read_dir(fixture.path("elsewhere")).expect("listed");
    let names: Vec<_> = names.map(|one| one.expect("entry").file_name()).collect();
    assert!(names.is_empty(), "{names:?}");
    assert_eq!(mode(&fixture.path("elsewhere")), 0o750);
    let is_named = |reason: &str| reason.contains("was exchanged while it was staged");
    assert!(done.failures.iter().any(|one| is_named(&one.reason)), "{:?}", done.failures.first());
    assert!(!done.counts.is_complete());
}

#[test]
fn exchanged_directory_gets_no_file_and_no_mode() {
    let fixture = shared(&[("a", 300)]);
    fs::set_permissions(fixture.path("elsewhere"), fs::Permissions::from_mode(0o750))
        .expect("chmod");
    symlink("nowhere", fixture.path("in/a/link")).expect("linked");
    fs::hard_link(fixture.path("in/a/1"), fixture.path("in/a/other name")).expect("linked");
    let done = stage_and_exchange(&fixture, &options());
    assert_nothing_elsewhere(&fixture, &done);
}

#[test]
fn exchanged_directory_gets_no_large_file() {
    let fixture = shared(&[("a", 3)]);
    fs::set_permissions(fixture.path("elsewhere"), fs::Permissions::from_mode(0o750))
        .expect("chmod");
    for name in ["large", "larger"] {
        fs::write(fixture.path("in/a").join(name), vec![1; (2 << 20) + 7]).expect("written");
    }
    let done = stage_and_exchange(&fixture, &options());
    assert_nothing_elsewhere(&fixture, &done);
}

#[test]
fn link_that_was_there_before_is_followed() {
    let fixture = shared(&[("a/deep", 20), ("a", 2)]);
    symlink(fixture.path("elsewhere"), fixture.path("out/a")).expect("linked");
    let done = carry_out(&fixture.planned(), &options(), &|_| {}, &|| false).expect("carried out");
    assert!(done.counts.is_complete(), "{:?}", done.failures.first());
    assert!(fixture.path("elsewhere/deep/19").exists() && fixture.path("elsewhere/1").exists());
}
