//! Selects new directories of few small files, which Forebay fills under a temporary name.
//! Reads all rows of files to copy, and keeps one sum for each of their directories in memory. Changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use rusqlite::Connection;

use crate::error::Error;
use crate::journal::columns::{COPIED, PLACED, bytes, path_at};
use crate::journal::database::Journal;
use crate::model::leaf_size::LeafSize;

impl Journal {
    /// Directories to fill under a temporary name, with their numbers of files. Targets that the user named,
    /// and shared or nested places, are excluded: nothing may appear next to such a target.
    pub(crate) fn leaves(&self, most: &LeafSize) -> Result<BTreeMap<i64, u64>, Error> {
        let named: BTreeSet<PathBuf> = self
            .transfers("")?
            .iter()
            .map(|transfer| transfer.target.components().collect())
            .collect();
        self.with(|connection| {
            let mut fitting = in_directories(connection)?;
            fitting.retain(|_, leaf| leaf.fits(most));
            let mut leaves = BTreeMap::new();
            let mut select = connection.prepare(&format!(
                "SELECT d.id, p.path, d.target FROM directory d JOIN place p ON p.id = d.place \
                 WHERE d.is_of_tree AND d.state < {COPIED} \
                 AND d.place NOT IN (SELECT place FROM directory GROUP BY place HAVING count(*) > 1)",
            ))?;
            let mut look = connection
                .prepare("SELECT NOT EXISTS (SELECT 1 FROM place WHERE path > ? AND path < ?)")?;
            let mut rows = select.query([])?;
            while let Some(row) = rows.next()? {
                let Some(leaf) = fitting.get(&row.get(0)?) else {
                    continue;
                };
                if named.contains(&path_at(row, 2)?) {
                    continue;
                }
                let place = path_at(row, 1)?;
                // A path below it continues with a slash, and '0' is the character after '/'.
                let [from, to] = [b"/", b"0"].map(|end| [bytes(&place), end].concat());
                if look.query_row([from, to], |row| row.get(0))? {
                    leaves.insert(row.get(0)?, leaf.files);
                }
            }
            Ok(leaves)
        })
    }
}

/// Files to copy, summed up by directory number.
fn in_directories(connection: &Connection) -> rusqlite::Result<BTreeMap<i64, LeafSize>> {
    let mut found: BTreeMap<i64, LeafSize> = BTreeMap::new();
    let mut last = None;
    let mut select = connection.prepare(&format!(
        "SELECT directory, size_bytes FROM entry WHERE state < {PLACED} AND link_of IS NULL ORDER BY id",
    ))?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let (directory, size_bytes) = (row.get(0)?, row.get::<_, i64>(1)?.cast_unsigned());
        let leaf = found.entry(directory).or_default();
        leaf.files += 1;
        leaf.bytes = leaf.bytes.saturating_add(size_bytes);
        leaf.largest_bytes = leaf.largest_bytes.max(size_bytes);
        leaf.times += u64::from(last.replace(directory) != Some(directory));
    }
    Ok(found)
}
