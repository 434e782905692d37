//! A bit of a journal flips while no process has it open: nothing is missing without an error, and nothing is written
//! elsewhere.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use forebay_mover::{Error, Journal, Options};

use crate::fixture::{OpenJournal, StagingFixture, carry_out, killed, names};

/// Flips that are tried, spread evenly over the file.
const FLIPS: usize = 150;

fn options() -> Options {
    Options { workers: 1, durable: false, ..Options::of("7") }
}

/// The files of a tree and what they hold.
fn contents(top: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for name in names(top) {
        let path = top.join(name);
        if path.is_dir() {
            found.extend(contents(&path));
        } else {
            found.insert(path.clone(), fs::read(&path).expect("read"));
        }
    }
    found
}

/// Staging that was killed half way, whose journal was then closed in order.
fn killed_half_way() -> StagingFixture {
    let fixture = StagingFixture::filled(&[("", 5), ("a", 20), ("a/b", 20), ("c", 5)]);
    let journal = fixture.planned();
    let copied = std::sync::atomic::AtomicU64::new(0);
    killed(&journal, &options(), &|_| {
        copied.fetch_add(1, std::sync::atomic::Ordering::Relaxed) > 15
    });
    fixture
}

/// Continues as another process does.
fn retry(journal: &Path) -> Result<bool, Error> {
    let journal = OpenJournal::from(Journal::open_existing(journal)?);
    journal.retry()?;
    let moved = carry_out(&journal, &options(), &|_| {}, &|| false)?;
    Ok(moved.failures.is_empty() && moved.counts.missing().files == 0)
}

#[test]
fn flipped_bit_is_found_or_changes_nothing() {
    let fixture = killed_half_way();
    let journal = fixture.path("journal");
    let sound = fs::read(&journal).expect("read");
    let wanted: BTreeMap<_, _> = contents(&fixture.path("in"))
        .into_iter()
        .map(|(path, content)| {
            (
                fixture.path("out").join(path.strip_prefix(fixture.path("in")).expect("below")),
                content,
            )
        })
        .collect();
    let mut refused = 0;
    for flip in 0..FLIPS {
        let bit = flip * sound.len() * 8 / FLIPS + flip % 8;
        let mut damaged = sound.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        fs::remove_dir_all(fixture.path("out")).ok();
        Journal::remove(&journal).expect("removed");
        fs::write(&journal, &damaged).expect("write");
        match retry(&journal) {
            Ok(true) => assert_eq!(contents(&fixture.path("out")), wanted, "bit {bit}"),
            Ok(false) => {}
            Err(_) => refused += 1,
        }
        let beside: Vec<_> = names(&fixture.path(""))
            .into_iter()
            .filter(|name| !name.starts_with("journal"))
            .collect();
        assert!(
            beside.iter().all(|name| ["in", "out"].contains(&name.as_str())),
            "bit {bit}: {beside:?}"
        );
    }
    assert!(refused > 0, "{refused}");
}

#[test]
fn journal_that_is_sound_is_continued() {
    let fixture = killed_half_way();
    assert!(retry(&fixture.path("journal")).expect("continued"));
    assert_eq!(contents(&fixture.path("out")).len(), 50);
}
