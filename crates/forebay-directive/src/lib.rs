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
mod args;
mod behind;
mod dialect;
mod lines;
mod list;
mod naming;
mod option;
mod paths;
mod persistent;
mod problem;
mod request;
mod rules;
mod size;
mod token;
mod values;

pub use lines::{Symbols, is_bare_continuation};
pub use list::stages_of_list;
pub use naming::{AccessMode, Naming, is_named_by};
pub use option::directives_of_bb;
pub use persistent::{CreatePersistent, DestroyPersistent, PersistentDw};
pub use problem::{Origin, Place, Problem};
pub use request::{Direction, JobDw, Request, Stage, StageKind, parse, parse_with_option};
pub use rules::{
    COMMANDS, Command, FOREIGN, Key, MODES, MODIFIERS, NNF_COMMANDS, Need, Support, Value, Word,
};
pub use size::{SizeError, parse_size};
pub use values::{NAME_BYTES_MAX, fault_of_name};
