//! Allocations that outlive their job: found, made, used and destroyed; by a job or by hand. Assumes that each store
//! keeps its own (`forebay_store::persistent`). Never moves data.

mod created;
mod destroy;
mod error;
mod job;
mod lifetime;
mod registry;
mod search;
mod uses;

pub use error::{Error, MissingAllocation, format_utc};
pub use job::{
    AskableNamespace, JobPersistents, Owner, PersistentAction, PersistentPlan, PersistentUsed,
    names_with_requests, plans, remove_uses, surviving_processes,
};
pub use search::{Destroyed, Listing, NewPersistent, StoreSearch};
pub use uses::{Use, UseState, Uses};
