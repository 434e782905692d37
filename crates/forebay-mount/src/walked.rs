//! Directories that paths lead through. Of such a one the kernel needs the kind, the mode and the owner only: it asks again
//! for attributes that a program wants. Times and sizes would cost a request to the metadata server, for which all nodes
//! that make names in the directory give up what they may do there.

use std::collections::HashSet;
use std::ffi::{CStr, CString};

use parking_lot::Mutex;

/// Names at most. Beyond that all are forgotten.
const NAMES_MAX: usize = 4096;

/// Names that were directories when they were last looked up, each with the node of its parent. A wrong one costs a
/// request, and nothing else.
#[derive(Default)]
pub(crate) struct WalkedDirectories(Mutex<HashSet<(u64, CString)>>);

impl WalkedDirectories {
    pub(crate) fn has(&self, parent: u64, name: &CStr) -> bool {
        self.0.lock().contains(&(parent, name.to_owned()))
    }

    pub(crate) fn note(&self, parent: u64, name: &CStr, is_directory: bool) {
        let mut names = self.0.lock();
        if !is_directory {
            names.remove(&(parent, name.to_owned()));
            return;
        }
        if names.len() >= NAMES_MAX {
            names.clear();
        }
        names.insert((parent, name.to_owned()));
    }
}
