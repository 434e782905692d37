//! The room of pools: what allocations have of it, and what a user may have.
//! Assumes that the caller of `room` holds a transaction that excludes other writers.
//! Counts what the state gives to allocations, and never looks at a file system.

use indicatif::HumanBytes;
use rusqlite::{OptionalExtension, Transaction, params};

use super::sessions::{COLUMNS, session_of};
use super::{Database, NewSession, Phase, Session};
use forebay_site::{Error, Pool};

/// Allocations that wait have nothing.
const USED: &str = "SELECT coalesce(sum(grains * granularity_bytes), 0) FROM session \
                    WHERE pool = ?1 AND state != 'waiting' AND (?2 IS NULL OR user_id = ?2)";

/// Whether an allocation gets room.
pub(super) enum Room {
    Free,
    /// The user's other allocations have it.
    UserLimitReached,
}

impl Database {
    /// The granules of a pool that allocations have. Those made with another granularity count by their bytes.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn used_granules(&self, pool: &Pool) -> Result<u64, Error> {
        let of = params![pool.name, None::<u32>];
        let bytes = self.read(|connection| connection.query_row(USED, of, |row| row.get(0)))?;
        Ok(pool.granules_of(bytes))
    }

    /// The granules of a pool that a new job can get.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn free_granules(&self, pool: &Pool) -> Result<u64, Error> {
        if self.drained()?.contains(&pool.name) {
            return Ok(0);
        }
        Ok(pool.quantity.saturating_sub(self.used_granules(pool)?))
    }

    /// Gives room to an allocation that waits, if there is room now. Returns the allocation as it is then; none if it is
    /// gone.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn take_room(&mut self, id: u64, pool: &Pool) -> Result<Option<Session>, Error> {
        self.change(|transaction| {
            let query = format!("SELECT {COLUMNS} FROM session WHERE id = ?");
            let mut found = transaction.query_row(&query, [id], session_of).optional()?;
            if let Some(waiting) = found.as_mut().filter(|found| found.phase == Phase::Waiting)
                && let Ok(Room::Free) = room(transaction, waiting.user, pool, waiting.granules)?
            {
                waiting.phase = Phase::Creating;
                let update = "UPDATE session SET state = ? WHERE id = ?";
                transaction.execute(update, params![waiting.phase, id])?;
            }
            Ok(Ok(found))
        })
    }
}

/// Whether there is room for so many granules. An error says why there is none, whatever other allocations of the user
/// end.
pub(super) fn room(
    transaction: &Transaction,
    user: u32,
    pool: &Pool,
    granules: u64,
) -> rusqlite::Result<Result<Room, Error>> {
    let is_drained = "SELECT count(*) FROM drained WHERE pool = ?";
    if granules > 0
        && transaction.query_row(is_drained, [&pool.name], |row| row.get::<_, i64>(0))? > 0
    {
        let error = Error::new(format!("the pool {} is being drained", pool.name));
        return Ok(Err(error.with_hint("wait, or use another pool")));
    }
    let used = |user: Option<u32>| -> rusqlite::Result<u64> {
        transaction.query_row(USED, params![pool.name, user], |row| row.get(0))
    };
    let free = pool.quantity.saturating_sub(pool.granules_of(used(None)?));
    if granules > free {
        let text = format!(
            "the pool {} has {free} of {} granules free, {granules} are wanted",
            pool.name, pool.quantity
        );
        return Ok(Err(
            Error::new(text).with_hint("ask for less, or wait until other jobs have ended")
        ));
    }
    if let Err(error) = pool.check_user_max(granules) {
        return Ok(Err(error));
    }
    let wanted = granules.saturating_mul(pool.granularity_bytes);
    let has = used(Some(user))?;
    let is_taken = |most: u64| wanted > 0 && has.saturating_add(wanted) > most;
    Ok(Ok(if pool.user_bytes_max.is_some_and(is_taken) {
        Room::UserLimitReached
    } else {
        Room::Free
    }))
}

/// Why a persistent allocation is not made.
pub(super) fn too_much(new: &NewSession) -> Error {
    let pool = new.pool;
    let (wanted, most) =
        (new.granules * pool.granularity_bytes, pool.user_bytes_max.unwrap_or_default());
    let text = format!(
        "{}: {} more of the pool {} are too much: you may have {}",
        new.token,
        HumanBytes(wanted),
        pool.name,
        HumanBytes(most)
    );
    Error::new(text).with_hint("ask for less, or wait until your other jobs have ended")
}
