//! A site's pools, for Slurm's burst-buffer plugin `datawarp`: the functions of `dw_wlm_cli`, the tables of `dwstat`,
//! and the site's own commands. Everything runs on the control host as SlurmUser and starts no Python.
//!
//! Assumes that several calls for one job run at the same time, and that each may be killed. Never touches the data of
//! a user: it asks `forebay-noded` on a node, which does that as the user.

mod auth;
pub mod call;
mod client;
mod config;
mod context;
pub mod control;
mod directives;
pub mod dwstat;
mod ended_jobs;
mod error;
mod functions;
mod log;
pub mod messages;
mod metrics;
mod munge;
mod nodes;
mod parents;
mod progress;
mod reply;
mod secret;
mod staging;
mod state;
mod token_lock;

pub use auth::{Auth, Message, Side, clock_error};
pub use client::{Client, NoAnswer};
pub use config::{FILE, FILE_VARIABLE, NODE_PORT, NodeAddress, Pool, PoolKind, Quota, Site};
pub use error::Error;
pub use functions::dw_wlm_cli;
pub use metrics::metrics;
pub use parents::changeable_parent;
pub use reply::Reply;
pub use state::{Database, Phase, Plan, Session, Share};
