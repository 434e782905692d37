//! Staging: plans which files to copy, records the plan in a journal, and copies in parallel.
//!
//! Each step can be repeated: a process can be killed at any step. A failed file never stops the others.
//! Unless stated otherwise, a method of [`Journal`] or a function of one fails only if the journal cannot be read or written.

mod bandwidth_limit;
mod copy;
mod error;
mod journal;
mod model;
mod ownership;
mod plan;
mod status;
mod stop;

pub use bandwidth_limit::BandwidthLimit;
pub use copy::cleanup::{discard_partial, remove_partial_files, remove_parts_in};
pub use copy::content::has_checksum;
pub use copy::context::CopyEvent;
pub use copy::directories::refused_link;
pub use copy::remote::serve_remote;
pub use copy::scheduler::{CopySummary, carry_out};
pub use error::Error;
pub use journal::database::Journal;
pub use journal::lock::JournalLock;
pub use model::counts::{Counts, Number};
pub use model::failed_writes::{FailedWrites, IncompleteFile};
pub use model::failure::{ALREADY_EXISTS, Failure, failure_lines};
pub use model::findings::Findings;
pub use model::options::{KeepChanged, Options, PIECE_BYTES, Verify, WriteMode};
pub use model::remote::{NodeShare, RemoteAnswer, RemoteCopier, RemoteCopiers, RemoteRequest};
pub use model::state::State;
pub use model::transfer::{Transfer, TransferKind};
pub use plan::retry::retry;
pub use plan::writer::{Plan, PlanProgress};
pub use status::shortages::Shortage;
pub use status::staging_state::{StagingState, staging_state};
pub use status::throughput::{Throughput, throughput};
pub use status::undelivered::{Undelivered, undelivered};
