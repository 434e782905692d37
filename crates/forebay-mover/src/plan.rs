//! Scans sources, compares them with their destinations, and writes the plan into the journal.

pub(crate) mod compare;
pub(crate) mod failed_writes;
pub(crate) mod retry;
pub(crate) mod scan;
pub(crate) mod writer;
