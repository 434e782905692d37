//! What an allocation has on each node of its job, in pools whose space is in the nodes.
//! Changes the state alone: `drop_share` assumes that the node has no directory any more.
//! Reserves space on all nodes of a request or on none.

use rusqlite::{OptionalExtension, params};

use super::{Database, Phase};
use forebay_site::{Error, NodeAddress, Pool};

/// The part of an allocation on one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// The number of the allocation.
    pub session: u64,
    /// The node, as the configuration names it.
    pub node: String,
    /// Its size.
    pub bytes: u64,
    /// Whether its results are at their destinations.
    pub is_delivered: bool,
    /// Whether the node has made its directory.
    pub is_made: bool,
}

/// What came of a request for shares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Taken {
    /// Each node has one.
    All,
    /// These nodes have no room, so none got one.
    Full(Vec<String>),
    /// The allocation is being removed, or is gone.
    Removed,
}

impl Database {
    /// The shares of one allocation, or of all.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn shares(&self, session: Option<u64>) -> Result<Vec<Share>, Error> {
        self.read(|connection| {
            let query = "SELECT session, node, bytes, is_delivered, is_made FROM share \
                         WHERE ?1 IS NULL OR session = ?1 ORDER BY session, node";
            let mut statement = connection.prepare(query)?;
            let found = statement.query_map([session], |row| {
                Ok(Share {
                    session: row.get(0)?,
                    node: row.get(1)?,
                    bytes: row.get(2)?,
                    is_delivered: row.get(3)?,
                    is_made: row.get(4)?,
                })
            });
            found?.collect()
        })
    }

    /// Reserves so many bytes on each of the nodes, or on none if one has no room. Shares that exist stay.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn take_shares(
        &mut self,
        session: u64,
        pool: &Pool,
        nodes: &[NodeAddress],
        bytes: u64,
    ) -> Result<Taken, Error> {
        self.change(|transaction| {
            let query = "SELECT state FROM session WHERE id = ?";
            let phase: Option<Phase> =
                transaction.query_row(query, [session], |row| row.get(0)).optional()?;
            if phase.is_none_or(|phase| phase == Phase::Removing) {
                return Ok(Ok(Taken::Removed));
            }
            let used = "SELECT coalesce(sum(share.bytes), 0) FROM share JOIN session ON session.id = share.session \
                        WHERE share.node = ? AND session.pool = ? AND session.id != ?";
            let mut full = Vec::new();
            for node in nodes {
                let used: u64 = transaction
                    .query_row(used, params![node.to_string(), pool.name, session], |row| row.get(0))?;
                if used.saturating_add(bytes) > pool.directory_bytes() {
                    full.push(node.name.clone());
                }
            }
            if !full.is_empty() {
                return Ok(Ok(Taken::Full(full)));
            }
            let insert = "INSERT OR IGNORE INTO share (session, node, bytes) VALUES (?, ?, ?)";
            for node in nodes {
                transaction.execute(insert, params![session, node.to_string(), bytes])?;
            }
            Ok(Ok(Taken::All))
        })
    }

    /// Notes that the results on a node are at their destinations.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn set_delivered(&mut self, session: u64, node: &str) -> Result<(), Error> {
        self.change(|transaction| {
            let update = "UPDATE share SET is_delivered = 1 WHERE session = ? AND node = ?";
            transaction.execute(update, params![session, node])?;
            Ok(Ok(()))
        })
    }

    /// Notes that nodes have made their directories.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn set_made(&mut self, session: u64, nodes: &[String]) -> Result<(), Error> {
        self.change(|transaction| {
            let update = "UPDATE share SET is_made = 1 WHERE session = ? AND node = ?";
            let mut statement = transaction.prepare(update)?;
            for node in nodes {
                statement.execute(params![session, node])?;
            }
            Ok(Ok(()))
        })
    }

    /// Gives the space on a node back, whose directory is gone. What the allocation still has is what its other shares
    /// have.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn drop_share(&mut self, session: u64, node: &str) -> Result<(), Error> {
        self.change(|transaction| {
            transaction.execute(
                "DELETE FROM share WHERE session = ? AND node = ?",
                params![session, node],
            )?;
            let update = "UPDATE session SET grains = min(grains, \
                          (SELECT (coalesce(sum(bytes), 0) / max(1, coalesce(json_extract(plan, '$.redundancy'), 1)) \
                                   + granularity_bytes - 1) / granularity_bytes FROM share \
                           WHERE session = session.id)) WHERE id = ?";
            transaction.execute(update, [session])?;
            Ok(Ok(()))
        })
    }
}
