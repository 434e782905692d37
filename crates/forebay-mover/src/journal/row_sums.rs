//! A checksum in each row of a journal on disk. SQLite checks its own structure, not what the rows say.
//!
//! Triggers keep the checksums, so that few statements have to; the rows are compared once, before a process continues
//! what another one began.

use std::sync::atomic::Ordering;

use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension};
use xxhash_rust::xxh3::xxh3_64;

use crate::error::Error;
use crate::journal::database::{Journal, SCHEMA, VERSION_WITHOUT_SUMS};

/// The name of the checksum's column, the last one of each table.
const SUM: &str = "sum";

/// The columns of a table, and how a trigger finds its new row.
struct Table {
    name: String,
    columns: Vec<String>,
    key: String,
}

impl Table {
    fn all(connection: &Connection) -> rusqlite::Result<Vec<Self>> {
        let mut query =
            connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'")?;
        let names = query.query_map([], |row| row.get(0))?.collect::<Result<Vec<String>, _>>()?;
        names.into_iter().map(|name| Self::read(connection, name)).collect()
    }

    fn read(connection: &Connection, name: String) -> rusqlite::Result<Self> {
        let (mut columns, mut key) = (Vec::new(), Vec::new());
        connection.pragma(None, "table_info", &name, |row| {
            let (column, place): (String, i64) = (row.get("name")?, row.get("pk")?);
            if place > 0 {
                key.push(format!("{column} IS NEW.{column}"));
            }
            columns.push(column);
            Ok(())
        })?;
        // A number that SQLite gives is not known before; out of order, SQLite finds it.
        columns.retain(|column| column != SUM && column != "id");
        Ok(Self { name, columns, key: key.join(" AND ") })
    }

    /// Its checksum, of a row that `of` names: `NEW.`, or nothing in a query.
    fn sum(&self, of: &str) -> String {
        let columns: Vec<_> = self.columns.iter().map(|column| format!("{of}{column}")).collect();
        format!("row_sum('{}', {})", self.name, columns.join(", "))
    }

    fn triggers(&self) -> String {
        let Self { name, columns, key } = self;
        let set = format!("BEGIN UPDATE {name} SET {SUM} = {} WHERE {key}; END;", self.sum("NEW."));
        let columns = columns.join(", ");
        // Statements that run once for each file set the checksum themselves.
        format!(
            "CREATE TRIGGER {name}_added AFTER INSERT ON {name} WHEN NEW.{SUM} IS NULL {set}
             CREATE TRIGGER {name}_changed AFTER UPDATE OF {columns} ON {name} WHEN NEW.{SUM} IS OLD.{SUM} {set}"
        )
    }
}

/// The checksum of a new entry, in the order of its columns: parameters of the statement, and what begins as NULL.
pub(crate) const SUM_OF_NEW_ENTRY: &str =
    "row_sum('entry', ?1, ?2, ?3, ?4, ?5, ?10, ?6, ?7, ?8, ?9, NULL, NULL, NULL, NULL, NULL)";

/// The checksum of an entry with another state, `?3`, and perhaps another checksum of its content, `?4`.
pub(crate) const SUM_OF_NEW_STATE: &str = "row_sum('entry', directory, place, name, source_name, kind, ?3, generation, \
     size_bytes, modified_ns, inode, link_of, coalesce(?4, checksum), reason, remedy, errno)";

/// Gives a connection the function that the triggers call.
pub(crate) fn add_function(connection: &Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8
        | FunctionFlags::SQLITE_DETERMINISTIC
        | FunctionFlags::SQLITE_INNOCUOUS;
    connection.create_scalar_function("row_sum", -1, flags, row_sum)
}

fn row_sum(row: &Context) -> rusqlite::Result<i64> {
    let mut content = Vec::with_capacity(256);
    for place in 0..row.len() {
        let (kind, bytes) = match row.get_raw(place) {
            ValueRef::Null => (0, &[][..]),
            ValueRef::Integer(number) => (1, &number.to_le_bytes()[..]),
            ValueRef::Real(number) => (2, &number.to_le_bytes()[..]),
            ValueRef::Text(bytes) => (3, bytes),
            ValueRef::Blob(bytes) => (4, bytes),
        };
        content.push(kind);
        content.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        content.extend_from_slice(bytes);
    }
    Ok(xxh3_64(&content).cast_signed())
}

/// Creates the tables, and triggers that keep the checksum of each row.
pub(crate) fn create_tables(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(SCHEMA)?;
    let triggers: Vec<_> = Table::all(connection)?.iter().map(Table::triggers).collect();
    connection.execute_batch(&triggers.join("\n"))
}

/// The statements that made the tables and triggers.
fn definitions(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut query =
        connection.prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name")?;
    query.query_map([], |row| row.get(0))?.collect()
}

impl Journal {
    /// Compares each row with its checksum, once, in a journal that another process may have written.
    ///
    /// # Errors
    /// [`Error::Damaged`] if a row was changed by anything but Forebay.
    pub(crate) fn check_rows(&self) -> Result<(), Error> {
        if self.is_checked.load(Ordering::Relaxed) {
            return Ok(());
        }
        let damage = self.with(|connection| damage(connection))?;
        if let Some(damage) = damage {
            let what = format!("{damage}; Forebay did not write that");
            return Err(Error::Damaged { path: self.path().to_owned(), what });
        }
        self.is_checked.store(true, Ordering::Relaxed);
        Ok(())
    }
}

fn damage(connection: &Connection) -> rusqlite::Result<Option<String>> {
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if version == VERSION_WITHOUT_SUMS {
        return Ok(None);
    }
    let fresh = Connection::open_in_memory()?;
    add_function(&fresh)?;
    create_tables(&fresh)?;
    if definitions(connection)? != definitions(&fresh)? {
        return Ok(Some("its tables have other definitions".to_owned()));
    }
    // An index that leads elsewhere is no damage of a row.
    let sound: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    if sound != "ok" {
        return Ok(Some(sound));
    }
    for table in Table::all(connection)? {
        let (name, sum) = (&table.name, table.sum(""));
        let query = format!("SELECT 1 FROM {name} WHERE {SUM} IS NOT {sum} LIMIT 1");
        if connection.query_row(&query, [], |_| Ok(())).optional()?.is_some() {
            return Ok(Some(format!("a row of its table {name} has another checksum")));
        }
    }
    Ok(None)
}
