//! The journal: SQL and the file that holds it. Never touches a source or a target.

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
pub(crate) mod transfers;
