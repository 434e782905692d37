//! Allocations that outlive their job: found, made, used and destroyed; by a job or by hand. Assumes that each store
//! keeps its own (`forebay_store::persistent`). Never moves data.

mod error;
mod job;
mod known;
mod lifetime;
mod made;
mod search;
mod uses;
mod withdrawn;

pub use error::{Error, Missing, written_time};
pub use job::{
    Askable, Owner, PersistentAction, PersistentPlan, PersistentUsed, Persistents, asked_of, plans,
    remaining_of, remove_uses,
};
pub use search::{Destroyed, Listing, NewPersistent, Places};
pub use uses::{Use, UseState, Uses};
