//! The data types of staging. They use neither SQLite nor threads.

pub(crate) mod counts;
pub(crate) mod failed_writes;
pub(crate) mod failure;
pub(crate) mod findings;
pub(crate) mod item;
pub(crate) mod leaf_size;
pub(crate) mod options;
pub(crate) mod partial_names;
pub(crate) mod reason;
pub(crate) mod remote;
pub(crate) mod scan_entry;
pub(crate) mod state;
pub(crate) mod transfer;
pub(crate) mod version;
