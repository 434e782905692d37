//! The drivers. Each is a pure function from a request and facts of the nodes to a plan.

mod ceph;
mod command;
mod directory;

pub use ceph::{Ceph, LayoutScope, MountClient, NamedLayout, Placement};
pub use command::Command;
pub(crate) use command::{When, check_template, template_uses};
pub use directory::Directory;

use crate::engine::Engine;

/// All engines by name, those that are tried first come first.
pub fn engines() -> [Box<dyn Engine>; 2] {
    [Box::new(Ceph::default()), Box::new(Directory)]
}

/// The engine of this name.
pub fn engine_named(name: &str) -> Option<Box<dyn Engine>> {
    engines().into_iter().find(|engine| engine.name() == name)
}
