//! Options that several verbs share.

pub mod deadline;
pub mod emulation;
pub mod job;
pub mod nodes;
pub mod staging;
