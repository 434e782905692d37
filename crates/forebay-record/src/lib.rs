//! The files about a job: its record, directory, staging journals and lists. The reader is the
//! job's own process, or another one after a kill. Never copies or removes data of the job.

mod error;
mod job_directory;
mod journals;
mod pending;
mod record;
mod record_check;
mod remains;
mod remove;
mod staging;
mod target_log;
mod unsaved;
mod write_failures;

pub use error::Error;
pub use job_directory::{JobDirectory, RANDOM_MAX, RUN_VARIABLE};
pub use journals::{STAGE_IN, STAGE_OUT};
pub use pending::{
    PendingList, PendingStageOut, Selection, clear_pending, has_pending, load_pending,
};
pub use record::{
    PendingUpdate, PersistentUse, Phase, Record, RecordFile, Records, id_of, records,
    reserved_bytes,
};
pub use staging::{DrainTarget, StagingOptions};
pub use target_log::{TargetLog, tag};
pub use unsaved::UnsavedFiles;
pub use write_failures::{FailedWrite, WriteFailures};
