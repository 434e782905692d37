//! The journal: SQL and the files that hold it. Never changes a source or a destination.

pub(crate) mod columns;
pub(crate) mod counts;
pub(crate) mod database;
pub(crate) mod destinations;
pub(crate) mod directories;
pub(crate) mod entries;
pub(crate) mod exclusions;
pub(crate) mod failures;
pub(crate) mod file_names;
pub(crate) mod leaf_directories;
pub(crate) mod lock;
pub(crate) mod pieces;
pub(crate) mod plan_rows;
pub(crate) mod row_sums;
pub(crate) mod transfers;
