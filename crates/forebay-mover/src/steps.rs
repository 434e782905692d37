//! What the engine reads from the journal and writes into it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use forebay_host::files::{self, Status};
use rusqlite::types::Value;
use rusqlite::{OptionalExtension, Row, TransactionBehavior, params};

use crate::item::{Item, Reason, modified_ns};
use crate::journal::{State, path_at};
use crate::planning::{bytes, number};
use crate::{Error, Journal};

/// A step that a file has done.
pub(crate) struct Step {
    pub(crate) id: i64,
    pub(crate) state: State,
    pub(crate) checksum: Option<u64>,
}

impl Step {
    /// Is it the same step of the next entry? Many of those are one step for SQLite.
    fn is_followed_alike(&self, next: &Self) -> bool {
        self.id.checked_add(1) == Some(next.id)
            && self.state == next.state
            && self.checksum.is_none()
            && next.checksum.is_none()
    }
}

/// A directory that is to be made or finished.
pub(crate) struct Directory {
    pub(crate) id: i64,
    pub(crate) source: PathBuf,
    pub(crate) target: PathBuf,
    /// We have made it, or were about to.
    pub(crate) is_begun: bool,
}

/// A file that is to become another name of one that has arrived.
pub(crate) struct HardLink {
    pub(crate) item: Item,
    /// Where the first one stands.
    pub(crate) first: PathBuf,
    pub(crate) first_has_arrived: bool,
}

const ITEM: &str = "e.id, e.directory, e.kind, d.source, coalesce(e.source_name, e.name), d.target, e.name, \
                    e.size_bytes, e.state, d.is_of_tree, e.modified_ns, e.checksum";

fn item(row: &Row) -> rusqlite::Result<Item> {
    let state: i64 = row.get(8)?;
    Ok(Item {
        id: row.get(0)?,
        directory: row.get(1)?,
        kind: row.get(2)?,
        source: path_at(row, 3)?.join(path_at(row, 4)?),
        target: path_at(row, 5)?.join(path_at(row, 6)?),
        size_bytes: row.get::<_, i64>(7)?.cast_unsigned(),
        state: State::ALL
            .into_iter()
            .find(|known| *known as i64 == state)
            .unwrap_or(State::Planned),
        is_named: !row.get::<_, bool>(9)?,
        modified_ns: row.get(10)?,
        checksum: row.get::<_, Option<i64>>(11)?.map(i64::cast_unsigned),
        filled: None,
    })
}

impl Journal {
    /// The next files and links behind this number that are to be moved.
    pub(crate) fn items_after(&self, id: i64, limit: usize) -> Result<Vec<Item>, Error> {
        self.with(|connection| {
            let mut statement = connection.prepare_cached(&format!(
                "SELECT {ITEM} FROM entry e JOIN directory d ON d.id = e.directory \
                 WHERE e.id > ? AND e.state < 4 AND e.link_of IS NULL ORDER BY e.id LIMIT ?"
            ))?;
            statement.query_map(params![id, limit], item)?.collect()
        })
    }

    /// What had arrived and is not there any more, as a file system that is purged has it, is to be moved again.
    /// Directories in which something is to arrive are to be finished once more. False if it was stopped before all
    /// was looked at.
    pub(crate) fn forget_what_is_gone(&self, is_stopped: &dyn Fn() -> bool) -> Result<bool, Error> {
        let mut last = 0;
        loop {
            let items = self.all_after(last, 4096)?;
            let Some(item) = items.last() else {
                return Ok(
                    self.forget_directories_that_are_gone(is_stopped)? && self.reopen_filled()?
                );
            };
            last = item.id;
            let looked_at = items.iter().take_while(|_| !is_stopped());
            let is_gone = |item: &&Item| {
                item.state == State::Placed
                    && files::status_of_name(&item.target).is_err_and(|error| error.is_absent())
            };
            let gone: Vec<i64> = looked_at.filter(is_gone).map(|item| item.id).collect();
            self.with(|connection| {
                let mut set = connection
                    .prepare_cached("UPDATE entry SET state = 0 WHERE id = ? OR link_of = ?")?;
                for id in gone {
                    set.execute([id, id])?;
                }
                Ok(())
            })?;
            if is_stopped() {
                return Ok(false);
            }
        }
    }

    fn reopen_filled(&self) -> Result<bool, Error> {
        self.with(|connection| {
            let set = "UPDATE directory SET state = 1 WHERE is_made AND state = 4 \
                       AND id IN (SELECT directory FROM entry WHERE state < 4)";
            connection.execute(set, []).map(|_| true)
        })
    }

    /// Those that hold these, and that we have made, are to be finished once more: returns the ones that were.
    pub(crate) fn reopen_parents(
        &self,
        directories: &[Directory],
    ) -> Result<Vec<(i64, PathBuf)>, Error> {
        let parents = |one: &Directory| {
            let parent = |path: &Path| path.parent().map(|path| bytes(path).to_vec());
            Some((parent(&one.source)?, parent(&one.target)?))
        };
        let parents: BTreeSet<_> = directories.iter().filter_map(parents).collect();
        self.with(|connection| {
            let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let mut reopened = Vec::new();
            for (source, target) in parents {
                let mut set = change.prepare_cached(
                    "UPDATE directory SET state = 1 WHERE source = ? AND target = ? AND is_made AND state = 4 \
                     RETURNING id, target",
                )?;
                let row = |row: &Row| Ok((row.get(0)?, path_at(row, 1)?));
                reopened.extend(set.query_row(params![source, target], row).optional()?);
            }
            change.commit()?;
            Ok(reopened)
        })
    }

    /// None: it is not to be staged any more.
    pub(crate) fn target_of_directory(&self, id: i64) -> Result<Option<PathBuf>, Error> {
        self.with(|connection| {
            let mut select =
                connection.prepare_cached("SELECT target FROM directory WHERE id = ?")?;
            select.query_row([id], |row| path_at(row, 0)).optional()
        })
    }

    /// The next files and links behind this number, whatever became of them.
    pub(crate) fn all_after(&self, id: i64, limit: usize) -> Result<Vec<Item>, Error> {
        self.with(|connection| {
            let mut statement = connection.prepare_cached(&format!(
                "SELECT {ITEM} FROM entry e JOIN directory d ON d.id = e.directory WHERE e.id > ? \
                 ORDER BY e.id LIMIT ?"
            ))?;
            statement.query_map(params![id, limit], item)?.collect()
        })
    }

    /// The next ones that are further names of others.
    pub(crate) fn hard_links_after(&self, id: i64, limit: usize) -> Result<Vec<HardLink>, Error> {
        self.with(|connection| {
            let mut statement = connection.prepare_cached(&format!(
                "SELECT {ITEM}, fd.target, f.name, f.state FROM entry e JOIN directory d ON d.id = e.directory \
                 JOIN entry f ON f.id = e.link_of JOIN directory fd ON fd.id = f.directory \
                 WHERE e.id > ? AND e.state < 4 ORDER BY e.id LIMIT ?"
            ))?;
            let rows = statement.query_map(params![id, limit], |row| {
                Ok(HardLink {
                    item: item(row)?,
                    first: path_at(row, 12)?.join(path_at(row, 13)?),
                    first_has_arrived: row.get::<_, i64>(14)? == State::Placed as i64,
                })
            })?;
            rows.collect()
        })
    }

    /// Files that may have a temporary name: number and target.
    pub(crate) fn targets_in_hand(&self) -> Result<Vec<(i64, PathBuf)>, Error> {
        self.with(|connection| {
            let mut statement = connection.prepare(
                "SELECT e.id, d.target, e.name FROM entry e JOIN directory d ON d.id = e.directory \
                 WHERE e.state BETWEEN 1 AND 3",
            )?;
            let rows = statement.query_map([], |row| {
                Ok((row.get(0)?, path_at(row, 1)?.join(path_at(row, 2)?)))
            })?;
            rows.collect()
        })
    }

    /// Files of one directory that may have a temporary name: number and name.
    pub(crate) fn names_in_hand(&self, directory: i64) -> Result<Vec<(i64, PathBuf)>, Error> {
        self.with(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT id, name FROM entry WHERE place = (SELECT place FROM directory WHERE id = ?1) \
                 AND directory = ?1 AND state BETWEEN 1 AND 3",
            )?;
            let rows = statement.query_map([directory], |row| Ok((row.get(0)?, path_at(row, 1)?)))?;
            rows.collect()
        })
    }

    /// Nothing is in hand any more: what was begun is as if it were not.
    pub(crate) fn put_down(&self) -> Result<(), Error> {
        self.with(|connection| {
            connection.execute_batch(
                "BEGIN IMMEDIATE; UPDATE entry SET state = 0 WHERE state BETWEEN 1 AND 3; DELETE FROM piece; COMMIT;",
            )
        })
    }

    /// The next directories of trees that were not looked at, parents first.
    pub(crate) fn directories_after(&self, id: i64, limit: usize) -> Result<Vec<Directory>, Error> {
        let query = "SELECT id, source, target, state = 1 FROM directory \
                     WHERE id > ? AND state < 2 AND is_of_tree ORDER BY id LIMIT ?";
        self.directories(query, id, limit)
    }

    /// The next directories of trees that were there or finished.
    pub(crate) fn directories_placed_after(
        &self,
        id: i64,
        limit: usize,
    ) -> Result<Vec<Directory>, Error> {
        let query = "SELECT id, source, target, 0 FROM directory \
                     WHERE id > ? AND state = 4 AND is_of_tree ORDER BY id LIMIT ?";
        self.directories(query, id, limit)
    }

    /// Are there directories of trees that were not even looked at?
    pub(crate) fn has_unmade_directories(&self) -> Result<bool, Error> {
        self.with(|connection| {
            let query = "SELECT EXISTS (SELECT 1 FROM directory WHERE state = 0 AND is_of_tree)";
            connection.query_row(query, [], |row| row.get(0))
        })
    }

    /// The directories before this one that we have made and not finished, children first.
    pub(crate) fn directories_made_before(
        &self,
        id: i64,
        limit: usize,
    ) -> Result<Vec<Directory>, Error> {
        let query = "SELECT id, source, target, state = 1 FROM directory WHERE id < ? AND state = 1 ORDER BY id DESC LIMIT ?";
        self.directories(query, id, limit)
    }

    fn directories(&self, query: &str, id: i64, limit: usize) -> Result<Vec<Directory>, Error> {
        self.with(|connection| {
            let mut statement = connection.prepare_cached(query)?;
            let rows = statement.query_map(params![id, limit], |row| {
                Ok(Directory {
                    id: row.get(0)?,
                    source: path_at(row, 1)?,
                    target: path_at(row, 2)?,
                    is_begun: row.get(3)?,
                })
            })?;
            rows.collect()
        })
    }

    /// All steps at once.
    pub(crate) fn done(&self, steps: &[Step]) -> Result<(), Error> {
        if steps.is_empty() {
            return Ok(());
        }
        self.with(|connection| {
            let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            {
                let mut set = change.prepare_cached(
                    "UPDATE entry SET state = ?3, checksum = coalesce(?4, checksum) WHERE id BETWEEN ?1 AND ?2",
                )?;
                for alike in steps.chunk_by(Step::is_followed_alike) {
                    let (first, last) = (&alike[0], &alike[alike.len() - 1]);
                    let checksum = first.checksum.map(number);
                    set.execute(params![first.id, last.id, first.state as i64, checksum])?;
                }
            }
            change.commit()
        })
    }

    /// What is planned was made by nobody yet, what is being copied is ours.
    pub(crate) fn directories_are(&self, ids: &[i64], state: State) -> Result<(), Error> {
        self.with(|connection| {
            let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            {
                let mut set = change.prepare_cached(
                    "UPDATE directory SET state = ?2, is_made = CASE WHEN ?2 < 2 THEN ?2 ELSE is_made END WHERE id = ?1",
                )?;
                for id in ids {
                    set.execute(params![id, state as i64])?;
                }
            }
            change.commit()
        })
    }

    pub(crate) fn has_failed(&self, id: i64, reason: &Reason) -> Result<(), Error> {
        self.fail_in("entry", id, reason)
    }

    pub(crate) fn directory_has_failed(&self, id: i64, reason: &Reason) -> Result<(), Error> {
        self.fail_in("directory", id, reason)
    }

    fn fail_in(&self, table: &str, id: i64, reason: &Reason) -> Result<(), Error> {
        self.with(|connection| {
            let mut set = connection.prepare_cached(&format!(
                "UPDATE {table} SET state = 5, reason = ?2, remedy = ?3, errno = ?4 WHERE id = ?1"
            ))?;
            set.execute(params![id, reason.text, reason.remedy, reason.errno])
                .map(drop)
        })
    }

    pub(crate) fn add_note(&self, text: &str, count: u64, example: &Path) -> Result<(), Error> {
        use std::os::unix::ffi::OsStrExt;
        self.with(|connection| {
            let set = "INSERT INTO note VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET count = count + excluded.count";
            let example = example.as_os_str().as_bytes();
            connection.execute(set, params![text, count, example]).map(drop)
        })
    }

    /// Forgets what another start of the machine left half done, since it may not have reached its disk, and
    /// pieces of another size: `cut` names both.
    pub(crate) fn keep_pieces_of(&self, cut: &str) -> Result<(), Error> {
        let before = self.meta::<String>("pieces")?;
        if before.as_deref() == Some(cut) {
            return Ok(());
        }
        self.with(|connection| {
            // What was found at its place while it was planned is no work of a staging before.
            if before.is_some() {
                let half_done = "UPDATE entry SET state = 1 WHERE state IN (2, 3)";
                connection.execute(half_done, [])?;
            }
            connection.execute("DELETE FROM piece", [])
        })?;
        self.set_meta("pieces", cut)
    }

    /// Pieces of this file that are copied, if the source is still the one they were copied from: number
    /// and checksum. Otherwise none, and from now on those of this source count.
    pub(crate) fn pieces(&self, id: i64, status: &Status) -> Result<Vec<(u64, u64)>, Error> {
        let source = [
            Value::from(number(status.size_bytes)),
            modified_ns(status).into(),
            number(status.inode).into(),
        ];
        self.with(|connection| {
            let [size, modified, inode] = &source;
            let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let same = "SELECT count(*) FROM entry WHERE id = ? AND state BETWEEN 1 AND 3 AND size_bytes = ? \
                        AND modified_ns = ? AND inode = ?";
            let same: i64 = change.query_row(same, params![id, size, modified, inode], |row| row.get(0))?;
            if same == 0 {
                change.execute("DELETE FROM piece WHERE entry = ?", [id])?;
            }
            let set = "UPDATE entry SET state = 1, size_bytes = ?2, modified_ns = ?3, inode = ?4 WHERE id = ?1";
            change.execute(set, params![id, size, modified, inode])?;
            let found = {
                let mut statement = change.prepare_cached("SELECT number, checksum FROM piece WHERE entry = ?")?;
                let rows = statement.query_map([id], |row| {
                    let (number, checksum): (i64, i64) = (row.get(0)?, row.get(1)?);
                    Ok((number.cast_unsigned(), checksum.cast_unsigned()))
                })?;
                rows.collect::<rusqlite::Result<_>>()?
            };
            change.commit()?;
            Ok(found)
        })
    }

    pub(crate) fn piece_is_copied(&self, id: i64, piece: u64, checksum: u64) -> Result<(), Error> {
        self.with(|connection| {
            let mut set =
                connection.prepare_cached("INSERT OR REPLACE INTO piece VALUES (?, ?, ?)")?;
            set.execute(params![id, number(piece), number(checksum)])
                .map(drop)
        })
    }

    pub(crate) fn forget_pieces(&self, id: i64) -> Result<(), Error> {
        self.with(|connection| {
            let mut delete = connection.prepare_cached("DELETE FROM piece WHERE entry = ?")?;
            delete.execute([id]).map(drop)
        })
    }
}
