//! Staging between the file system and allocations: plans directives, drains and requests in one
//! journal and carries it out. Assumes that the process is in the job's view and sees its
//! namespaces. Never makes or removes an allocation.

mod carry_out;
mod check_destinations;
mod destination;
mod error;
mod extra_targets;
mod inside;
mod lines;
mod patterns;
mod requests;
mod roots;
mod stage_in;
mod stage_out;
mod summary;

pub use carry_out::{Staging, StagingProgress};
pub use check_destinations::check_destinations;
pub use destination::{Destination, destination_in, destinations_of};
pub use error::Error;
pub use extra_targets::files_below;
pub use inside::is_inside_allocation;
pub use lines::expanded_out;
pub use patterns::{Pattern, Patterns};
pub use requests::remove_parts;
pub use roots::Roots;
pub use stage_in::plan_in;
pub use stage_out::StageOut;
pub use summary::StagingSummary;
