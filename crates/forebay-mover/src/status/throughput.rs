//! The rate of a staging, which other processes compute from the journal.
//! Assumes the clock since the start of the machine. Another machine or PID namespace gets no rate.

use std::path::Path;
use std::time::Duration;

use forebay_host::clock;
use forebay_host::process::Identity;

use crate::error::Error;

use crate::journal::columns::COPYING;
use crate::journal::database::Journal;
use crate::journal::file_names::IN_MEMORY;
use crate::journal::lock::pid_namespace_key;
use crate::model::counts::Counts;
use crate::model::state::State;
use crate::status::staging_state::StagingState;

/// Minimum duration for computing a rate.
const TIME_MIN: Duration = Duration::from_millis(500);

/// The rate of a staging.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Throughput {
    /// Copied bytes, including those of files without a final name.
    pub copied_bytes: u64,
    /// Average since the start or restart of the run; `None` if it does not run or has no rate yet.
    pub bytes_per_s: Option<u64>,
    /// Seconds until the rest is copied at this rate.
    pub remaining_s: Option<u64>,
}

/// Computes the rate of a staging from its state.
pub fn throughput(journal: &Journal, account: &StagingState) -> Result<Throughput, Error> {
    let counts = &account.counts;
    let copied_bytes = copied_bytes(journal, counts)?;
    let mut throughput = Throughput { copied_bytes, bytes_per_s: None, remaining_s: None };
    let Some(began) = journal.meta::<String>("began")? else {
        return Ok(throughput);
    };
    let mut words = began.splitn(5, ' ');
    let pid = words.next().and_then(|word| word.parse().ok());
    let mut number = || words.next().and_then(|word| word.parse().ok());
    let (Some(pid), Some(started_ticks)) = (pid, number()) else {
        return Ok(throughput);
    };
    let (Some(began_ms), Some(before)) = (number(), number()) else {
        return Ok(throughput);
    };
    // After a restart, the record can be of a dead process: the new one has not begun to copy.
    let is_theirs =
        words.next() == Some(&pid_namespace_key()?) && Identity { pid, started_ticks }.is_alive();
    let time = clock::since_boot().checked_sub(Duration::from_millis(began_ms));
    let moved = copied_bytes.saturating_sub(before);
    let Some(time) = time.filter(|time| *time >= TIME_MIN && moved > 0) else {
        return Ok(throughput);
    };
    if has_uncounted(journal, moved)? {
        return Ok(throughput);
    }
    if account.is_running && is_theirs {
        let rate = u128::from(moved) * 1000 / time.as_millis();
        let rate = u64::try_from(rate).unwrap_or(u64::MAX).max(1);
        let all_that_comes = counts.of(State::Placed).bytes + counts.open().bytes;
        throughput.bytes_per_s = Some(rate);
        throughput.remaining_s = Some(all_that_comes.saturating_sub(copied_bytes).div_ceil(rate));
    }
    Ok(throughput)
}

/// Records the start of the copy.
pub(crate) fn mark_start(journal: &Journal, counts: &Counts) -> Result<(), Error> {
    if journal.path() == Path::new(IN_MEMORY) {
        return Ok(()); // no other process can read it
    }
    let Identity { pid, started_ticks } = Identity::ours()?;
    let (now, copied_bytes) = (clock::since_boot().as_millis(), copied_bytes(journal, counts)?);
    let space = pid_namespace_key()?;
    let began = format!("{pid} {started_ticks} {now} {copied_bytes} {space}");
    journal.set_meta("began", began)
}

pub(crate) fn copied_bytes(journal: &Journal, counts: &Counts) -> Result<u64, Error> {
    let whole = [State::Copied, State::Verified, State::Placed];
    let whole: u64 = whole.map(|state| counts.of(state).bytes).iter().sum();
    let Some(piece_bytes) = piece_bytes(journal)? else {
        return Ok(whole);
    };
    let pieces: u64 = journal.with(|connection| {
        let mut sum = connection.prepare_cached(&format!(
            "SELECT coalesce(sum(max(0, min(?1, e.size_bytes - p.number * ?1))), 0) \
             FROM piece p JOIN entry e ON e.id = p.entry WHERE e.state = {COPYING}",
        ))?;
        sum.query_row([piece_bytes], |row| row.get(0))
    })?;
    Ok(whole + pieces)
}

/// Is a large file in progress whose first piece is larger than all bytes copied so far? The
/// journal records a piece only once it is complete.
fn has_uncounted(journal: &Journal, moved_bytes: u64) -> Result<bool, Error> {
    let Some(piece_bytes) = piece_bytes(journal)? else {
        return Ok(false);
    };
    if moved_bytes >= piece_bytes.cast_unsigned() {
        return Ok(false);
    }
    journal.with(|connection| {
        let query = format!(
            "SELECT EXISTS (SELECT 1 FROM entry WHERE state = {COPYING} AND size_bytes > ?)"
        );
        connection.query_row(&query, [piece_bytes], |row| row.get(0))
    })
}

/// The size of pieces, second word of the value `pieces`.
pub(crate) fn piece_bytes(journal: &Journal) -> Result<Option<i64>, Error> {
    let cut = journal.meta::<String>("pieces")?.unwrap_or_default();
    Ok(cut.split(' ').nth(1).and_then(|word| word.parse().ok()))
}
