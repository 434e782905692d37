//! A stopped staging ends soon, reports the remaining files, and continues after a restart.

use std::cell::Cell;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use forebay_mover::{CopyEvent, Error, Options, Plan, State};

use crate::fixture::{StagingFixture, carry_out, killed, mode, moved};

const FILES: usize = 40;

fn options() -> Options {
    Options::of("7")
}

/// Options with one thread.
fn one() -> Options {
    Options { workers: 1, piece_bytes: 1 << 20, ..options() }
}

#[test]
fn directories_not_created_are_not_delivered() {
    let fixture = StagingFixture::filled(&[("a/b", 0), ("c", 0)]);
    let mode = fs::Permissions::from_mode(0o750);
    fs::set_permissions(fixture.path("in/a"), mode).expect("chmod");
    let journal = fixture.planned();
    let stopped = carry_out(&journal, &options(), &|_| {}, &|| true).expect("carried out");
    assert!(stopped.is_stopped && !stopped.counts.is_complete());
    assert_eq!(stopped.counts.open_directories, 4);
    let reason = &stopped.failures[0].reason;
    assert_eq!(reason, "staging was stopped: directories not finished: 4");
    let done = moved(&journal, &options());
    assert!(done.counts.is_complete() && done.failures.is_empty());
    let made = fs::metadata(fixture.path("out/a")).expect("made");
    assert_eq!(made.permissions().mode() & 0o777, 0o750);
    assert!(fixture.path("out/a/b").is_dir() && fixture.path("out/c").is_dir());
}

/// The plan is made again, so the directories are reopened.
#[test]
fn stopped_check_of_delivered_files_is_not_taken_for_complete() {
    let fixture = StagingFixture::filled(&[("a", FILES)]);
    let journal = fixture.planned();
    let done = moved(&journal, &options());
    assert!(done.counts.is_complete());
    drop(journal);
    fs::remove_file(fixture.path("out/a/0")).expect("removed");
    let journal = fixture.journal();
    journal.plan(&[fixture.tree()]).expect("planned again");
    assert!(journal.counts().expect("counts").open_directories > 0);
    let stopped = carry_out(&journal, &options(), &|_| {}, &|| true);
    assert!(matches!(stopped, Err(Error::RecheckInterrupted(_))));
    let done = moved(&journal, &options());
    assert!(done.counts.is_complete() && fixture.path("out/a/0").exists());
}

#[test]
fn planning_stops_when_the_journal_is_cancelled() {
    let fixture = StagingFixture::filled(&[("a", FILES)]);
    let (journal, other) = (fixture.journal(), fixture.journal());
    let plan = Plan::begin(&journal, &|_| true).expect("begun");
    other.cancel().expect("cancelled");
    let planned = plan.add(&fixture.tree());
    assert!(matches!(planned, Err(Error::PlanInterrupted(_))));
    journal.retry().expect("retried");
    let done = moved(&journal, &options());
    assert!(done.counts.is_complete() && done.files == FILES as u64);
}

#[test]
fn check_of_destinations_can_be_stopped() {
    let fixture = StagingFixture::filled(&[("a", FILES)]);
    let journal = fixture.journal();
    let goes_on = Cell::new(true);
    let on_planned = |_| goes_on.get();
    let plan = Plan::begin(&journal, &on_planned).expect("begun");
    plan.add(&fixture.tree()).expect("added");
    goes_on.set(false);
    let stopped = plan.reject_destinations("odd", &|_| true);
    assert!(matches!(stopped, Err(Error::PlanInterrupted(_))));
    assert_eq!(journal.counts().expect("counts").all().files, FILES as u64);
}

/// After a failed scan, a scan that is stopped does not count as complete.
#[test]
fn stopped_retry_is_repeated() {
    let fixture = StagingFixture::filled(&[("a", FILES)]);
    fs::rename(fixture.path("in"), fixture.path("away")).expect("moved");
    let journal = fixture.journal();
    let plan = Plan::begin(&journal, &|_| true).expect("begun");
    plan.add_or_record_failure(&fixture.tree()).expect("noted");
    journal.end(plan).expect("planned");
    fs::rename(fixture.path("away"), fixture.path("in")).expect("moved");
    let stopped = forebay_mover::retry(&journal, &|_| false);
    assert!(matches!(stopped, Err(Error::PlanInterrupted(_))));
    let refused = carry_out(&journal, &options(), &|_| {}, &|| false);
    assert!(matches!(refused, Err(Error::PlanInterrupted(_))));
    journal.retry().expect("retried");
    let done = moved(&journal, &options());
    assert!(done.counts.is_complete() && done.files == FILES as u64);
}

#[test]
fn stopped_check_does_not_report_all_targets_present() {
    let fixture = StagingFixture::filled(&[("a", FILES)]);
    let journal = fixture.planned();
    moved(&journal, &options());
    fs::remove_dir_all(fixture.path("out")).expect("purged");
    let stopped = carry_out(&journal, &options(), &|_| {}, &|| true);
    assert!(matches!(stopped, Err(Error::RecheckInterrupted(_))));
    let done = moved(&journal, &options());
    assert!(done.counts.is_complete() && done.files == FILES as u64);
    assert!(fixture.path("out/a/0").is_file());
}

#[test]
fn partial_files_of_a_killed_staging_are_removed_if_none_runs() {
    let fixture = StagingFixture::filled(&[("a", FILES)]);
    let large = vec![1; 3 << 20];
    fs::write(fixture.path("in/large"), &large).expect("written");
    let (journal, other) = (fixture.journal(), fixture.journal());
    journal.plan(&[fixture.tree()]).expect("planned");
    killed(&journal, &one(), &|did| did == CopyEvent::Bytes(1 << 20));
    let parts = || {
        let names = fs::read_dir(fixture.path("out")).expect("listed");
        let mut names = names.map(|name| name.expect("entry").file_name().into_encoded_bytes());
        names.any(|name| name.ends_with(b".part"))
    };
    assert!(parts());
    let running = other.lock().expect("taken");
    let refused = forebay_mover::discard_partial(&journal, "7");
    assert!(matches!(refused, Err(Error::Locked(_))), "{refused:?}");
    assert!(parts());
    drop(running);
    forebay_mover::discard_partial(&journal, "7").expect("taken away");
    let counts = journal.counts().expect("counts");
    assert!(!parts() && counts.of(State::Planned).files > 0);
    assert_eq!(counts.of(State::Planned), counts.missing());
    let done = moved(&journal, &options());
    assert!(done.counts.is_complete());
    assert_eq!(fs::read(fixture.path("out/large")).expect("read"), large);
}

#[test]
fn directories_of_a_killed_staging_are_kept_for_its_continuation() {
    let fixture = StagingFixture::filled(&[("a", 1)]);
    let journal = fixture.planned();
    killed(&journal, &one(), &|did| did == CopyEvent::File);
    assert_eq!(mode(&fixture.path("out/a")), 0o700);
    // A process that removes leftovers may not see the source, if that is in a job's view.
    fs::rename(fixture.path("in"), fixture.path("away")).expect("renamed");
    forebay_mover::discard_partial(&journal, "7").expect("taken away");
    let counts = journal.counts().expect("counts");
    assert!(journal.failures(9).expect("asked").is_empty() && !counts.is_complete());
    fs::rename(fixture.path("away"), fixture.path("in")).expect("renamed");
    let done = moved(&journal, &options());
    assert!(done.counts.is_complete());
    assert_eq!(mode(&fixture.path("out/a")), mode(&fixture.path("in/a")));
}

#[test]
fn unremovable_partial_file_does_not_keep_others() {
    let fixture = StagingFixture::filled(&[("a", 2)]);
    let journal = fixture.planned();
    killed(&journal, &one(), &|did| matches!(did, CopyEvent::Bytes(_)));
    let part = |id| fixture.path(&format!("out/a/.forebay-7-{id}.part"));
    fs::remove_file(part(1)).ok();
    fs::create_dir(part(1)).expect("made"); // removing it as a file fails
    fs::write(part(2), "half").expect("written");
    forebay_mover::discard_partial(&journal, "7").expect("taken away");
    assert!(part(1).is_dir() && !part(2).exists());
    let notes = journal.notes().expect("asked");
    assert_eq!((notes.len(), notes[0].1), (1, 1), "{notes:?}");
    assert!(
        notes[0].0.starts_with("what was half done could not be removed") && notes[0].2 == part(1)
    );
}

#[test]
fn missing_directories_are_found_by_the_check() {
    let fixture = StagingFixture::filled(&[("a/b", 0)]);
    let journal = fixture.planned();
    moved(&journal, &options());
    fs::remove_dir_all(fixture.path("out")).expect("purged");
    let stopped = carry_out(&journal, &options(), &|_| {}, &|| true);
    assert!(matches!(stopped, Err(Error::RecheckInterrupted(_))));
    let done = moved(&journal, &options());
    assert!(done.counts.is_complete() && fixture.path("out/a/b").is_dir());
}
