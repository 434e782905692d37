//! Staging of real trees: complete, stopped, killed and restarted.
#![allow(clippy::disallowed_methods, clippy::expect_used)] // tests access files directly

mod cancellation;
mod damaged_journals;
mod exchanged_directories;
mod fixture;
mod leaf_directories;
mod resume;
mod source_changes;
mod staging;
mod unchanged_targets;
