//! What runs on the control host of a site, for Slurm's burst-buffer plugin `datawarp`: the functions of `dw_wlm_cli`,
//! the tables of `dwstat`, and the site's own commands. All of it runs as SlurmUser and starts no Python.
//!
//! Assumes that several calls for one job run at the same time, and that each may be killed. Never touches the data of
//! a user: it asks `forebay-noded` on a node, which does that as the user.

pub mod call;
mod context;
pub mod control;
mod directives;
pub mod dwstat;
mod ended_jobs;
mod functions;
mod log;
mod metrics;
mod nodes;
mod progress;
mod reply;
mod staging;
mod state;
mod token_lock;

pub use functions::dw_wlm_cli;
pub use metrics::metrics;
pub use reply::Reply;
pub use state::{Database, Phase, Plan, Session, Share};
