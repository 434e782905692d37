//! Real programs under the preload library. Each test has its own emulated directory and state, and judges by
//! the model's counters, never by wall-clock seconds.
// Tests make files and start programs directly; the library under test must not see forebay-host's calls.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::expect_used)]

mod bench;
mod descriptors;
mod layouts;
mod processes;
mod programs;
mod symbols;
