//! The agent of a node: executes the node's steps of an engine's plan. Assumes that `forebay run`, or a
//! command after it, sends requests. Never decides what is started.

mod node;
mod probe;
mod processes;
pub mod protocol;
mod serve;

pub(crate) use node::GONE;
pub use serve::{TaskHandler, serve};
