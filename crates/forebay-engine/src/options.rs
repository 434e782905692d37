//! The store options of the user and the site, and the choice of store and size.
//! Never creates a directory, and reserves no space: the plan's runner makes the allocation.

use std::path::Path;

use forebay_directive::JobDw;
use forebay_host::files::{self, Kind};
use forebay_host::messages::Messages;
use forebay_host::namespace;
use forebay_store::{Reason, SHARED_MEMORY, Store};
use indicatif::HumanBytes;
use schemars::JsonSchema;
use serde::Serialize;

use crate::driver::NodeFacts;
use crate::error::Error;
use crate::path_map::PathMap;

/// The NVMe capacity of a Summit node: the limit for scripts that request "the" local storage.
const NODE_LOCAL_BYTES: u64 = 1_600_000_000_000;

/// Memory in bytes that the allocations of other jobs may still use. Called only if it matters.
pub type ReservedBytes<'a> = &'a dyn Fn() -> forebay_host::Result<u64>;

/// Receives messages and the result of the allocation.
pub trait AllocationProgress: Messages {
    /// The allocation was created.
    fn allocated(&self, used: &StoreUsed);
}

/// The store options of the user and the site.
#[derive(Debug, Clone, Default)]
pub struct StoreOptions<'a> {
    /// `--store`.
    pub store: Option<&'a Path>,
    /// The setting `store` of the configuration.
    pub site_store: Option<&'a Path>,
    /// Without a burst buffer: the directory on the file system that holds the allocation.
    pub pfs_directory: Option<&'a Path>,
    /// Instead of the script's capacity, in bytes.
    pub capacity_bytes: Option<u64>,
    /// Refuse to start with less than the requested capacity.
    pub strict_capacity: bool,
    /// Why a private view is disabled; none if it is allowed.
    pub no_view: Option<&'a str>,
    /// Directories to show under other paths.
    pub maps: &'a [PathMap],
}

impl StoreOptions<'_> {
    /// Checks that the maps can be shown.
    ///
    /// # Errors
    /// If a path is a file or cannot be added.
    pub fn check_maps(&self) -> Result<(), Error> {
        for (index, map) in self.maps.iter().enumerate() {
            for path in [&map.path, &map.directory] {
                let found = files::status(path);
                if found.is_ok_and(|status| status.kind != Kind::Directory) {
                    return Err(Error::MapOfFile(path.clone()));
                }
            }
            let before = &self.maps[..index];
            let shown = PathMap::resolve(before, &map.path);
            let within_another = before.iter().any(|other| map.path.starts_with(&other.path));
            let can_be = if within_another {
                files::status(&shown).map(drop) // nothing is created in a shown directory
            } else {
                namespace::check_addition(&map.path)
            };
            can_be.map_err(|error| Error::MapTargetUnusable { at: shown, error })?;
        }
        Ok(())
    }

    /// Chooses the store and the size of an allocation. `reserved_bytes` is memory that the
    /// allocations of other jobs may still use.
    ///
    /// # Errors
    /// If the store cannot be used, has no space besides the application's, or has less than
    /// requested with `--strict-capacity`.
    pub fn choose(
        &self,
        asked: &JobDw,
        reserved_bytes: ReservedBytes,
        messages: &dyn Messages,
    ) -> Result<NodeFacts, Error> {
        if let Some(directory) = self.pfs_directory {
            let store = Store::directory(directory)?;
            messages.explain(&format!(
                "store {store}: the file system, since --no-burst-buffer is given"
            ));
            return self.grant(asked, store, reserved_bytes, messages);
        }
        let (store, reason) = Store::choose(self.store, self.site_store)?;
        let why = match reason {
            Reason::Named => "named with --store".to_owned(),
            Reason::Site => "the setting store, which forebay config shows".to_owned(),
            Reason::Nvme { device } => format!("local NVMe: {device}"),
            Reason::Default => "no local NVMe was found, so memory".to_owned(),
        };
        messages.explain(&format!("store {store}: {why}"));
        match (self.no_view, &store) {
            (Some(why), Store::Memory { .. }) => {
                self.shared_memory(asked, &store, why, reserved_bytes, messages)
            }
            _ => self.grant(asked, store, reserved_bytes, messages),
        }
    }

    /// Uses shared memory if a private view is impossible.
    pub(crate) fn shared_memory(
        &self,
        asked: &JobDw,
        store: &Store,
        why: &str,
        reserved_bytes: ReservedBytes,
        messages: &dyn Messages,
    ) -> Result<NodeFacts, Error> {
        if *store == (Store::Memory { huge: true }) {
            return Err(Error::NoView(why.to_owned()));
        }
        messages.warning(&format!(
            "using {SHARED_MEMORY}: no private memory file system ({why}). The capacity limit is not enforced"
        ));
        self.grant(asked, Store::directory(Path::new(SHARED_MEMORY))?, reserved_bytes, messages)
    }

    fn grant(
        &self,
        asked: &JobDw,
        store: Store,
        reserved_bytes: ReservedBytes,
        messages: &dyn Messages,
    ) -> Result<NodeFacts, Error> {
        let asked_bytes = self.capacity_bytes.or(asked.capacity_bytes);
        let reserved_bytes = if store.in_memory() { reserved_bytes()? } else { 0 };
        let grant = store.grant(asked_bytes.unwrap_or(NODE_LOCAL_BYTES), reserved_bytes)?;
        let more = asked_bytes.filter(|asked| *asked > grant.capacity_bytes);
        if let (Some(asked_bytes), true) = (more, self.strict_capacity) {
            return Err(Error::LessThanAsked {
                asked_bytes,
                usable_bytes: grant.usable_bytes,
                store: store.to_string(),
            });
        }
        let usable = HumanBytes(grant.usable_bytes);
        let limit = if store.enforces_capacity() {
            "a hard limit: writes beyond it fail with ENOSPC"
        } else {
            "watched, not enforced: another file system's space"
        };
        let used = StoreUsed {
            store: store.to_string(),
            in_memory: store.in_memory(),
            nodes: 1,
            copies: 1,
            enforced: store.enforces_capacity(),
            capacity_bytes: grant.capacity_bytes,
            asked_bytes,
        };
        let asked = used.asked();
        messages.explain(&format!("capacity: {asked} asked, at most {usable} to be had; {limit}"));
        Ok(NodeFacts { store, used })
    }
}

/// The store of an allocation.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct StoreUsed {
    /// The store's directory, or `memory`, or `memory:huge`.
    pub store: String,
    /// Whether it is in memory.
    pub in_memory: bool,
    /// The number of nodes with a part of it.
    pub nodes: u32,
    /// Copies of the data, on different nodes.
    pub copies: u32,
    /// Whether the capacity is a hard limit.
    pub enforced: bool,
    /// Capacity of the allocation.
    pub capacity_bytes: u64,
    /// Requested capacity; none for scripts that accept the local storage of the node as it is.
    pub asked_bytes: Option<u64>,
}

impl StoreUsed {
    /// The requested capacity, as text.
    pub fn asked(&self) -> String {
        let asked = self.asked_bytes.map(HumanBytes);
        asked.map_or("no size".to_owned(), |asked| asked.to_string())
    }

    /// What the loss of a node means for the data; none for data on disk.
    pub fn lost_with(&self) -> Option<String> {
        let lost = match (self.nodes, self.copies) {
            _ if !self.in_memory => return None,
            (0 | 1, _) => "lost if this machine goes down".to_owned(),
            (_, 0 | 1) => "lost at least in part if one of them goes down".to_owned(),
            (_, copies) => format!("{copies} copies, lost if {copies} of them go down"),
        };
        Some(lost)
    }

    /// Checks that this many bytes can be staged in.
    ///
    /// # Errors
    /// If the capacity is less.
    pub fn must_hold(&self, needed_bytes: u64) -> Result<(), Error> {
        if needed_bytes <= self.capacity_bytes {
            return Ok(());
        }
        Err(Error::DoesNotFit {
            needed_bytes,
            capacity_bytes: self.capacity_bytes,
            store: self.store.clone(),
        })
    }
}
