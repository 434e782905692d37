//! Runs real programs with the preload library. Each test has a separate emulated directory and
//! state. It checks the counters of the model, never wall-clock time.
// Tests create files and start programs directly; the library under test must not see forebay-host's calls.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::expect_used)]

mod bench;
mod descriptors;
mod layouts;
mod processes;
mod programs;
mod symbols;
