//! The settings of a site, a user and a project, and where each value comes from.
//!
//! Later sources override earlier ones: the site file, the user file, the project file, environment variables. The
//! command line comes last; `forebay-cli` knows it and asks [`Configuration::check_lock`]. Files are input: the
//! crate reads only regular files of limited size that no other user can write. It reports all errors together.

mod file;
mod layers;
pub mod parsers;
pub mod reference;
mod settings;
mod sources;
mod value;
mod variables;

pub use file::trusted_text;
pub use layers::{Configuration, ReadFile};
pub use settings::{Kind, SETTINGS, Scope, Setting};
pub use sources::Sources;
pub use value::{Errors, JsonValue, Layer, Source, Value};
