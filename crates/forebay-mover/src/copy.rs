//! Runs a journal: copies, syncs and renames.

pub(crate) mod blocks;
pub(crate) mod cleanup;
pub(crate) mod content;
pub(crate) mod context;
pub(crate) mod directories;
pub(crate) mod durability;
pub(crate) mod exposed;
pub(crate) mod hard_links;
pub(crate) mod large_copy;
pub(crate) mod large_files;
pub(crate) mod leaf_directories;
pub(crate) mod metadata;
pub(crate) mod recheck;
pub(crate) mod remote;
pub(crate) mod scheduler;
pub(crate) mod small_files;
pub(crate) mod striping;
pub(crate) mod striping_cache;
pub(crate) mod target;
pub(crate) mod task_guard;
pub(crate) mod task_queue;
