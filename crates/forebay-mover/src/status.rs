//! Reads the progress of a staging from its journal. Never changes a file.

pub(crate) mod shortages;
pub(crate) mod staging_state;
pub(crate) mod throughput;
pub(crate) mod undelivered;
