//! Records the I/O of a job in `profiles/ID` in the user's state directory (docs/explanation/profiles.md).
//! `libforebay_mpi.so`, preloaded into programs, writes all files except `job.json`. A failure to
//! record never fails the job: Forebay prints a warning.

mod elsewhere;
mod error;
mod history;
mod ids;
mod job_file;
mod live_files;
mod mpi_family;
mod profile;
mod programs;
mod retention;
mod stage_out_rates;
mod usage;

pub use error::Error;
pub use history::{History, PastJob, history};
pub use ids::PROFILES;
pub use job_file::{JobDescription, JobFile, Kind, complete_abandoned, mark_killed};
pub use mpi_family::{MpiFamily, is_launcher};
pub use profile::{Libraries, Profile, Recording};
pub use programs::{ProgramSummary, summarize};
pub use retention::prune;
pub use stage_out_rates::recent_stage_outs;
pub use usage::{Usage, state_directory, usage};
