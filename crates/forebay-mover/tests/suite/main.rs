//! Staging of real trees: whole, stopped, killed and continued.
#![allow(clippy::disallowed_methods, clippy::expect_used)] // a test may look at files

mod cancellation;
mod leaf_directories;
mod place;
mod resume;
mod source_changes;
mod staging;
mod unchanged_targets;
