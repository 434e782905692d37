//! The record of what a job did with its files: a directory `profiles/ID` in the user's state directory, described
//! in docs/profiles.md. `libforebay_mpi.so`, loaded in front of the job's programs, writes all but `job.json`. No
//! job fails because it cannot be recorded: what is lost is reported, and the job goes on.

mod error;
mod ids;
mod job_file;
mod mpi_family;
mod profile;
mod programs;
mod retention;
mod stage_out_rates;
mod usage;

pub use error::Error;
pub use ids::PROFILES;
pub use job_file::{JobDescription, Kind, complete_abandoned, mark_killed, text};
pub use mpi_family::{MpiFamily, is_launcher};
pub use profile::{Libraries, Profile, Recording};
pub use programs::{ProgramSummary, summarize};
pub use retention::prune;
pub use stage_out_rates::recent_stage_outs;
pub use usage::{Usage, state_directory, usage};
