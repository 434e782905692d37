//! The state of a site, in one SQLite file on the control host. Several processes use it at the same time, and each of
//! them may be killed: what belongs together is one transaction.

mod database;
mod room;
mod sessions;
mod shares;

pub use database::Database;
pub use sessions::{NewSession, Phase, Plan, Reserved, Session, is_job, is_set_aside};
pub use shares::{Share, Taken};
