//! What the control host and the nodes of a site share: its configuration, and their messages with the proof of who sent
//! them.
//!
//! Assumes one configuration file for all hosts. Never carries out a request.

mod auth;
mod client;
mod config;
mod error;
pub mod messages;
mod munge;
mod parents;
mod secret;

pub use auth::{Auth, Message, Side, clock_error};
pub use client::{Client, NoAnswer};
pub use config::{FILE, FILE_VARIABLE, NODE_PORT, NodeAddress, Pool, PoolKind, Quota, Site};
pub use error::Error;
pub use parents::changeable_parent;
