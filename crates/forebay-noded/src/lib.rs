//! `forebay-noded`: one small daemon of root on each node of a site. It makes, checks, stages and removes the
//! allocations of jobs, when the control host asks with a request that it signed.
//!
//! Root itself only makes, gives away and removes directories of a pool, in which no user can write. Whatever is in
//! them, and all that a user's script names, is touched by a process of that user alone (`work.rs`). The user can
//! control that process, so the daemon believes its result for the user's own job only.
//!
//! An engine is started by processes of the owner, too (`engine_process.rs`). They go on when the daemon ends.
//!
//! The daemon keeps nothing on disk. Stagings are in journals next to the data, and each request says everything that
//! the node does for it, so the daemon can be killed and started at any time.

mod daemon;
mod engine_process;
mod engine_proof;
mod engines;
mod owner;
mod pool;
mod requests;
mod task_table;
mod tasks;
mod work;

pub use daemon::serve;
pub use engine_process::{ENGINE, engine};
pub use work::work;
