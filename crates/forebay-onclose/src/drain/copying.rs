//! Copies one version to its destinations.
//! Assumes that the file can change during the copy, which then does not count. Never removes a file of the
//! job.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use forebay_host::close_watch::{Closed, is_closed};
use forebay_host::files::{self, Kind, Status, parent_of};
use forebay_host::messages::Messages;
use forebay_host::{clock, filesystem};
use forebay_mover::{
    CopyEvent, Failure, Journal, Options, Plan, Transfer, TransferKind, Verify, carry_out,
    has_checksum,
};
use parking_lot::Mutex;

use super::queue::{CopyOutcome, CreatedDirectory};
use super::speed::{MIN_SAMPLE_BYTES, Speed};
use crate::versions::Version;
use forebay_record::{TargetLog, WriteFailures};
use forebay_staging::Destination;

/// The maximum step of modification times: two ticks of a kernel at 100 Hz. A write after this time
/// always changes the modification time.
const TICK_MS: u128 = 20;

/// A copy of which times do not tell whether it is unchanged: the file system of the copy stores them less precisely, or
/// the source is in memory.
pub(super) struct TimelessCopy {
    /// The source when it was closed.
    pub(super) closed: Closed,
    target_status: Status,
    /// The checksum of the content, if the source is in memory.
    checksum: Option<u64>,
}

/// These copies, by their targets.
pub(super) type TimelessCopies = BTreeMap<PathBuf, TimelessCopy>;

impl TimelessCopy {
    /// Has neither file changed? Reads the source if its times do not tell and `should_continue` is given.
    pub(super) fn is_unchanged(
        &self,
        target: &Path,
        should_continue: Option<&dyn Fn() -> bool>,
    ) -> bool {
        let is_as = |path: &Path, then: &Status| {
            files::status_of_name(path)
                .is_ok_and(|now| now.is_same_content(then) && now.changed == then.changed)
        };
        let Closed { path, status, .. } = &self.closed;
        is_as(path, status)
            && is_as(target, &self.target_status)
            && match (self.checksum, should_continue) {
                (Some(checksum), Some(should_continue)) => {
                    has_checksum(path, checksum, should_continue).unwrap_or(false)
                }
                _ => true,
            }
    }
}

/// The settings of a copy.
pub(super) struct Copying<'a> {
    /// The log of target directories, written before files are copied, and the output for errors.
    pub(super) target_log: (&'a TargetLog, &'a dyn Messages),
    /// Copies that times do not show to be unchanged.
    pub(super) timeless: &'a Mutex<TimelessCopies>,
    /// Held while directories are created: a thread that finds a directory may rely on its name.
    pub(super) mkdir_lock: &'a Mutex<()>,
    /// Part of the temporary names, unique for each thread.
    pub(super) tag: String,
    pub(super) verify: Verify,
    pub(super) write_failures: &'a WriteFailures,
    /// The measurement of the speed; none if the rate is limited.
    pub(super) speed: Option<&'a Mutex<Speed>>,
    pub(super) on_bytes: &'a (dyn Fn(u64) + Sync),
    pub(super) cancelled: &'a (dyn Fn() -> bool + Sync),
}

impl Copying<'_> {
    /// Copies a closed version if it still exists. Adds the directories created on the way to
    /// `made`, parents first.
    pub(super) fn copy(
        &self,
        version: &Version,
        ways: Vec<Destination>,
        made: &mut Vec<CreatedDirectory>,
    ) -> CopyOutcome {
        let closed = &version.closed;
        wait_for_clock_tick(closed.status.modified);
        if self.write_failures.incomplete_now().has(&closed.status) {
            let reason = "a write of it failed or the store is full; it is left to the stage-out";
            return CopyOutcome::Failed(Failure::new(closed.path.clone(), reason.to_owned()));
        }
        for way in ways {
            match self.copy_to(closed, &way, made) {
                Ok(()) => {}
                Err(failure) => {
                    return match is_unchanged(closed) {
                        // The close of the newer version queues it.
                        Ok(false) => CopyOutcome::Changed,
                        _ if (self.cancelled)() => CopyOutcome::Stopped,
                        _ => CopyOutcome::Failed(failure),
                    };
                }
            }
        }
        CopyOutcome::Done
    }

    fn copy_to(
        &self,
        closed: &Closed,
        way: &Destination,
        made: &mut Vec<CreatedDirectory>,
    ) -> Result<(), Failure> {
        let source = &closed.path;
        let refused = |reason: String| Failure::new(source.clone(), reason);
        let told = |error: forebay_mover::Error| refused(error.to_string());
        if let Some(why) = forebay_mover::refused_link(parent_of(&way.target)) {
            return Err(refused(why));
        }
        let parents = self.mkdir_lock.lock();
        make_parents(way, made).map_err(|error| refused(error.to_string()))?;
        drop(parents);
        let (target_log, messages) = self.target_log;
        let directory = parent_of(&way.target);
        if let Err(error) = target_log.append(directory) {
            messages.explain(&format!("drain: {error}"));
        }
        let journal = Journal::in_memory().map_err(told)?;
        let transfer = Transfer {
            what: TransferKind::FileToName,
            source: source.clone(),
            target: way.target.clone(),
        };
        let plan = Plan::begin(&journal, &|_| true).map_err(told)?;
        let findings = plan.add(&transfer).and_then(|()| plan.end()).map_err(told)?;
        // The plan reads the status of the source again, and the copy succeeds only if that status
        // has not changed. So the status must be that of the closed version.
        if !is_unchanged(closed).map_err(|error| refused(error.to_string()))? {
            return Err(refused("it was opened for writing again".to_owned()));
        }
        let options = Options {
            workers: 1,
            piece_bytes: u64::MAX,
            verify: match self.verify {
                // The checksum shows later whether the source is unchanged.
                Verify::Off if is_in_memory(closed) => Verify::Copy,
                verify => verify,
            },
            as_planned: true,
            ..Options::of(&self.tag)
        };
        let is_sample = |_: &_| closed.status.size_bytes >= MIN_SAMPLE_BYTES;
        let speed = self.speed.filter(is_sample);
        let on = |did: CopyEvent| {
            if let (CopyEvent::Bytes(bytes), Some(speed)) = (did, speed) {
                speed.lock().add(bytes);
            }
            if let CopyEvent::Bytes(bytes) | CopyEvent::Reread(bytes) = did {
                (self.on_bytes)(bytes);
            }
        };
        speed.inspect(|speed| speed.lock().begin(clock::now()));
        let moved = carry_out(&journal, findings, &options, &on, self.cancelled);
        speed.inspect(|speed| speed.lock().end(clock::now()));
        let moved = moved.map_err(told)?;
        match moved.failures.into_iter().next() {
            Some(failure) => Err(failure),
            None => {
                self.note_timeless(closed, way, &journal);
                Ok(())
            }
        }
    }

    /// Times are not rounded: versions that differ by less than the precision of the file system
    /// would be equal. Instead, remembers the status of the copy. Of files in memory also the checksum, which spares the
    /// stage-out a look into the copy; without one, it compares both.
    fn note_timeless(&self, closed: &Closed, way: &Destination, journal: &Journal) {
        let Ok(target_status) = files::status_of_name(&way.target) else {
            return; // it was removed, which stage-out notices
        };
        let is_in_memory = is_in_memory(closed);
        let checksum = journal.checksum(&way.target).ok().flatten().filter(|_| is_in_memory);
        let is_imprecise = target_status.modified != closed.status.modified;
        let is_wanted = if is_in_memory { checksum.is_some() } else { is_imprecise };
        if target_status.kind == Kind::File && is_wanted {
            let copy = TimelessCopy { closed: closed.clone(), target_status, checksum };
            self.timeless.lock().insert(way.target.clone(), copy);
        }
    }
}

fn is_in_memory(closed: &Closed) -> bool {
    filesystem::is_in_memory(&closed.path).unwrap_or(true)
}

/// Is the file unchanged and not open for writing?
fn is_unchanged(closed: &Closed) -> forebay_host::Result<bool> {
    let status = is_closed(&closed.path)?;
    Ok(status.is_some_and(|status| status.is_same_content(&closed.status)))
}

/// Creates the directories of the source with their modes; `finish_directories` sets times. Until a
/// directory has its mode, only the owner has access. If that fails, `finish_directories` sets the mode.
fn make_parents(way: &Destination, made: &mut Vec<CreatedDirectory>) -> forebay_host::Result<()> {
    const OPEN_TO_US: u32 = 0o700;
    let Some((top, source)) = &way.below else {
        return Ok(()); // the mover creates the parents of a single file
    };
    let last = parent_of(&way.target);
    if is_directory(last) {
        return Ok(());
    }
    files::sync_names(&files::make_directories(parent_of(top), 0o777)?)?;
    let below: Vec<_> = last.ancestors().take_while(|a| a.starts_with(top)).collect();
    for directory in below.into_iter().rev() {
        match files::make_directory(directory, OPEN_TO_US) {
            Ok(()) => {}
            Err(error) if error.already_exists() && is_directory(directory) => continue,
            Err(error) => return Err(error),
        }
        let source = source.join(directory.strip_prefix(top).unwrap_or(directory));
        let target = directory.to_owned();
        let of = source.clone();
        made.push(CreatedDirectory { target, source });
        files::set_mode_of_name(directory, files::status(&of)?.mode | OPEN_TO_US)?;
        files::sync_directory(parent_of(directory))?;
    }
    Ok(())
}

fn is_directory(path: &Path) -> bool {
    files::status(path).is_ok_and(|found| found.kind == Kind::Directory)
}

/// Gives created directories the mode and times of their sources, children before parents. Skips what replaced one.
pub(super) fn finish_directories(made: &mut [CreatedDirectory]) -> Result<(), forebay_host::Error> {
    made.sort_by(|a, b| a.target.cmp(&b.target));
    for CreatedDirectory { target, source } in made.iter().rev() {
        let is_there =
            files::status_of_name(target).is_ok_and(|found| found.kind == Kind::Directory);
        if let (Ok(status), true) = (files::status(source), is_there) {
            files::set_mode_of_name(target, status.mode)?;
            files::set_times(target, &status)?;
        }
    }
    Ok(())
}

fn wait_for_clock_tick((seconds, nanoseconds): (i64, i64)) {
    let (Ok(seconds), Ok(nanoseconds)) = (u128::try_from(seconds), u128::try_from(nanoseconds))
    else {
        return; // before 1970: set by a program
    };
    let modified_ms = seconds * 1000 + nanoseconds / 1_000_000;
    let age_ms = clock::unix_milliseconds().checked_sub(modified_ms);
    // A time in the future was set by a program and needs no wait.
    if let Some(left) = age_ms.and_then(|age| TICK_MS.checked_sub(age)) {
        clock::sleep(Duration::from_millis(u64::try_from(left).unwrap_or(0)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forebay_staging::destination_in;

    #[test]
    fn directory_with_a_pending_mode_is_private_until_the_end() {
        let scratch = tempfile::tempdir().expect("tempdir");
        let (to, from) = (scratch.path().join("to"), scratch.path().join("from"));
        files::make_directories(&from, 0o755).expect("made");
        files::set_mode(&from, 0o755).expect("set");
        let way = destination_in(&to, &from, Path::new("d/file"));
        let mode = |name: &str| files::status(&to.join(name)).expect("there").mode & 0o777;
        let mut made = Vec::new();
        make_parents(&way, &mut made).expect_err("there is no from/d");
        let names: Vec<_> = made.iter().map(|made| made.target.clone()).collect();
        assert_eq!(names, [to.clone(), to.join("d")]);
        assert_eq!((mode(""), mode("d")), (0o755, 0o700));
        files::make_directory(&from.join("d"), 0o750).expect("made");
        files::set_mode(&from.join("d"), 0o750).expect("set");
        make_parents(&way, &mut made).expect("it is there");
        finish_directories(&mut made).expect("finished");
        assert_eq!((made.len(), mode("d")), (2, 0o750));
    }

    #[test]
    fn link_that_replaces_a_created_directory_is_not_followed() {
        let scratch = tempfile::tempdir().expect("tempdir");
        let at = |name: &str| scratch.path().join(name);
        for (name, mode) in [("from", 0o755), ("other", 0o700)] {
            files::make_directory(&at(name), 0o700).expect("made");
            files::set_mode(&at(name), mode).expect("set");
        }
        files::make_link(&at("other"), &at("to")).expect("linked");
        let mut made = [CreatedDirectory { target: at("to"), source: at("from") }];
        finish_directories(&mut made).expect("skipped");
        assert_eq!(files::status(&at("other")).expect("there").mode, 0o700);
    }
}
