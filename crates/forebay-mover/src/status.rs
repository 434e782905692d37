//! Reads a journal and says how far a staging is. Never changes a file.

pub(crate) mod account;
pub(crate) mod shortages;
pub(crate) mod throughput;
pub(crate) mod undelivered;
