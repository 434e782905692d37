//! Allocations that outlive their job: search, creation, use and destruction, by jobs or by hand.
//! Assumes the directory layout of `forebay_store::persistent` in each store. Never copies data.

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
    JobPersistents, Owner, PersistentAction, PersistentPlan, PersistentUsed, RequestNamespace,
    names_with_requests, plans, remove_uses, surviving_processes,
};
pub use search::{Destroyed, Listing, NewPersistent, StoreSearch};
pub use uses::{Use, UseState, Uses};
