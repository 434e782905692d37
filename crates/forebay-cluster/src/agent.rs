//! The agent of a node: executes the node's steps of an engine's plan. Assumes that a session on
//! the first node, or a later command, sends requests. Never decides what is started.

mod node;
mod probe;
mod processes;
pub(crate) mod protocol;
mod serve;

pub(crate) use node::GONE;
pub use serve::serve;
