//! The life of a job: validate, allocate, stage in, run, stage out, tear down.

mod command;
mod context;
mod drain;
mod error;
mod execution;
mod life;
mod on_close;
mod open_work;
mod order;
mod outcome;
mod preview;
mod recording;
mod series;
mod snapshot;
mod stages;
mod versions;

pub use command::{Command, Profiled};
pub use drain::{
    ControlRequest as Question, DRAIN_VARIABLE, DrainSpec, DrainSpec as DrainWish, DrainStatus,
    Drained, Spectral, query_drain as ask_drain,
};
pub use error::{
    Error, FAILED_BEFORE_THE_JOB, STAGE_OUT_INCOMPLETE, TIME_LIMIT_REACHED, TIME_RAN_OUT,
};
pub use forebay_deadline::{
    DeadlineAccount, DeadlineOptions as DeadlineWishes, RateSource as Measured, SignalBefore,
    parse_signal,
};
pub use forebay_directive::Direction;
pub use forebay_engine::{
    AllocationProgress, Chosen, MOUNTED_BELOW, PathMap as Map, Place, StoreOptions as Wishes,
    StoreUsed,
};
pub use forebay_host::messages::Messages;
pub use forebay_host::state::directories as state_directories;
pub use forebay_mover::{Account, Failure, Shortage, Verify};
pub use forebay_persistent::{
    Destroyed, Error as PersistentError, Listing, Missing, NewPersistent, PersistentAction,
    PersistentPlan, PersistentUsed, Places, Use, UseState, Uses, format_utc,
};
pub use forebay_profile::{
    Libraries, MpiFamily as Flavour, ProgramSummary as Seen, Recording, Usage as Stored,
    state_directory, summarize as seen, usage as stored,
};
pub use forebay_record::{
    DrainTo, Error as RecordError, NotSafe, Phase, RUN_VARIABLE, Record, Recorded, Records,
    StagingWish, records,
};
pub use forebay_recovery::{
    self as recovery, CleanOptions as Cleaning, JobState as State,
    is_unrecorded as was_never_recorded, remove_unrecorded,
};
pub use forebay_request_server::Requested;
pub use forebay_scheduler::{
    Header, JOB_ID_VARIABLE, JobScript, SHIMS_VARIABLE, Scheduler, TASKS_VARIABLE,
    in_a_schedulers_job, parse_time,
};
pub use forebay_staging::{Patterns, Staged, StagingProgress, expanded_out};
pub use life::{run, series};
pub use on_close::{
    Callbacks as Calls, CommandOptions as Handling, CommandSummary, CommandSummary as Handled,
    FINISH, Handler, OnClose, READY, STOP,
};
pub use order::{Order, Output, Watcher};
pub use outcome::Outcome;
pub use preview::{Planned, PlannedDrain, PlannedSpectral, Preview, Shown};
pub use recording::complete_profiles as complete_abandoned;
pub use series::{Ran, Ready, Requester, Run, What};
