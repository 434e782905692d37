//! Reads the burst-buffer directives of a job script.
//!
//! Pure text: no file is opened and no environment is read. The caller gives the script's text,
//! what was given as `--bb`, and the job's [`Symbols`]; it gets a [`Request`], or every [`Problem`]
//! that was found, each with line, column and remedy. The grammar is DataWarp's as Slurm reads it:
//! see `docs/directives.md`.
//!
//! The way of a script: [`parse`] has `lines` find the directive lines and cut them into tokens,
//! `dialect` tell whose rules they follow, `args` and `values` check each against the table in
//! `rules`, and `request` put together what they ask for.

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
mod token;
mod values;
mod variables;

pub use bb_option::directives_of_bb;
pub use lines::{Symbols, is_bare_continuation};
pub use persistent::{CreatePersistent, DestroyPersistent, PersistentDw};
pub use problem::{Origin, Position, Problem};
pub use request::{Direction, JobDw, Request, Stage, StageKind, parse, parse_with_option};
pub use rules::{
    COMMANDS, Command, FOREIGN, Key, MODES, MODIFIERS, NNF_COMMANDS, Requirement, Support, Value,
    Word,
};
pub use size::{SizeError, parse_size};
pub use stage_list::stages_of_list;
pub use values::{NAME_BYTES_MAX, name_error};
pub use variables::{AccessMode, VariableStyle, matches_variable};
