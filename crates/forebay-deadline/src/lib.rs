//! Ends or signals a job inside a scheduler's job so that the final stage-out begins while there is time for it
//! (docs/clock.md). A thread that the caller starts measures what is not at its destination yet; arithmetic alone
//! decides. Never copies data.

mod account;
mod guard;
mod open_work;
mod options;
mod policy;
mod rate;

pub use account::DeadlineAccount;
pub use guard::Guard;
pub use open_work::{OpenWork, Outstanding};
pub use options::{DeadlineOptions, SignalBefore, parse_signal};
pub use rate::{Measurements, RateSource};
