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

pub use error::{Error, Missing, format_utc};
pub use job::{
    Askable, JobPersistents, Owner, PersistentAction, PersistentPlan, PersistentUsed,
    names_with_requests, plans, remove_uses, surviving_processes,
};
pub use search::{Destroyed, Listing, NewPersistent, Places};
pub use uses::{Use, UseState, Uses};
