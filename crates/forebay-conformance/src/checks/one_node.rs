//! What POSIX promises to the processes of one node.

mod attributes;
mod create;
mod data;
mod directories;
mod links;
mod locks;
mod maps;
mod names;
mod space;

use crate::check::Check;

pub(super) const GROUPS: &[&[Check]] = &[
    create::CHECKS,
    names::CHECKS,
    links::CHECKS,
    directories::CHECKS,
    data::CHECKS,
    space::CHECKS,
    attributes::CHECKS,
    maps::CHECKS,
    locks::CHECKS,
];
