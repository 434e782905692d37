//! Parses burst-buffer directives of a job script as Slurm does (docs/reference/directives.md) into a
//! [`Request`] or a list of all [`Problem`]s with positions and remedies. Never opens a file or
//! reads the environment.

mod access;
mod bb_option;
mod dialect;
mod directive_check;
mod ignored_directives;
mod lines;
mod paths;
mod persistent;
mod problem;
mod request;
mod rules;
mod size;
mod stage_list;
mod statements;
mod suggestion;
mod token;
mod values;
mod variable_use;
mod variables;

pub use ignored_directives::blank_line_before_directives;
pub use lines::{ContinuationReader, Symbols};
pub use persistent::{CreatePersistent, DestroyPersistent, PersistentDw};
pub use problem::{Origin, Position, Problem};
pub use request::{
    Direction, JobDw, Request, Stage, StageKind, parse, parse_for_site, parse_with_option,
};
pub use rules::{
    COMMANDS, Command, FOREIGN, Key, MODES, MODIFIERS, NNF_COMMANDS, Requirement, Support, Value,
    Word,
};
pub use size::{SizeError, parse_size};
pub use stage_list::stages_of_list;
pub use suggestion::closest;
pub use values::{NAME_BYTES_MAX, name_error};
pub use variable_use::{VariableUse, expanded_variables};
pub use variables::{AccessMode, VariableStyle, matches_variable};
