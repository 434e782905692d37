//! What one node sees of another's work. Node 0 acts; each other node must see it at once.

mod attributes;
mod data;
mod directories;
mod locks;
mod maps;
mod names;
mod races;
mod truncation;

use crate::check::Check;

pub(super) const GROUPS: &[&[Check]] = &[
    data::CHECKS,
    truncation::CHECKS,
    attributes::CHECKS,
    names::CHECKS,
    directories::CHECKS,
    races::CHECKS,
    locks::CHECKS,
    maps::CHECKS,
];
