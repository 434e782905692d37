//! Ceph as an engine: asks its monitors, prepares its file system and writes its keys.
//!
//! Assumes that librados and libcephfs can be missing: they are loaded when they are first used, so Forebay
//! builds and runs without them. Never starts a daemon.

mod actions;
mod block_list;
mod bundle;
mod client_functions;
mod connection;
mod dependencies;
mod error;
mod execute;
mod file_system;
mod give_up;
mod key;
mod library;
mod lost_groups;
mod monitors;
mod programs;
mod questions;

pub use actions::{Action, Actions, Step};
pub use block_list::MountAddresses;
pub use bundle::{Bundle, BundleError, BundledFile, Manifest, Progress};
pub use client_functions::{
    Attributes, ClientFunctions, Inode, InodeNumber, Mount, OpenDirectory, OpenFile, Permissions,
    PreloadFunctions,
};
pub use connection::{Connection, c_text};
pub use error::{CommandError, Error};
pub use execute::{Report, execute};
pub use file_system::FileSystem;
pub use key::Key;
pub use library::loader_in;
pub use lost_groups::{FileLayout, LOST_GROUPS_ATTRIBUTE, Losses};
pub use monitors::Monitors;
pub use programs::{Missing, Programs, TESTED_VERSION};

/// The pool of names. Its one copy is on the first storage daemon.
pub const NAMES_POOL: &str = "names";
/// The pool of files that are spread over all nodes.
pub const DATA_POOL: &str = "data";
/// The pool of directories whose files are placed on the node that creates them. Mounts give each new file there the
/// pool of their node, which is this name, `.` and the number of the node from 1 on. CephFS takes no `-` in a layout.
pub const LOCAL_POOL: &str = "local";
