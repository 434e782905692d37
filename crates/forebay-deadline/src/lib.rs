//! Signals or ends a job of a scheduler early enough for its final stage-out (docs/how-to/time-limit.md). The
//! caller's thread measures the data that are not at their destination yet, and only arithmetic
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
