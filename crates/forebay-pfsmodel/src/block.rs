//! The layout of the shared state; the table is in `docs/explanation/emulation.md`. Each changing field is a separate
//! atomic and no two must agree: a process may be killed between two stores, and the others continue.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::paths::PATH_MAX;

/// First bytes of a state file, written last.
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"FBPFSMDL");
/// Changes with every change of the block or of the meaning of a field.
pub(crate) const VERSION: u32 = 1;
/// The maximum length of a model name in bytes.
pub(crate) const NAME_MAX: usize = 64;
/// The maximum number of targets in a model; Lustre limits a file to 2000 stripes.
pub const TARGETS_MAX: usize = 2048;
/// The maximum number of emulated directories in a state.
pub const ROOTS_MAX: usize = 16;

/// The parameters. The creator writes them once, `magic` last.
#[repr(C)]
pub(crate) struct Parameters {
    pub(crate) magic: AtomicU64,
    pub(crate) version: AtomicU32,
    pub(crate) targets: u32,
    pub(crate) roots: u32,
    pub(crate) default_stripe_count: u32,
    pub(crate) default_stripe_size_bytes: u64,
    pub(crate) target_latency_ns: u64,
    pub(crate) target_bytes_per_s: u64,
    pub(crate) switch_penalty_ns: u64,
    pub(crate) client_bytes_per_s: u64,
    pub(crate) metadata_operation_ns: u64,
    pub(crate) metadata_per_stripe_ns: u64,
    pub(crate) created_ns: u64,
    pub(crate) name: [u8; NAME_MAX],
}

/// Queues and sums that do not belong to a single target.
#[repr(C, align(64))]
pub(crate) struct Totals {
    pub(crate) metadata_next_free_ns: AtomicU64,
    pub(crate) next_client: AtomicU64,
    pub(crate) next_first_target: AtomicU64,
    pub(crate) attached: AtomicU64,
    pub(crate) bytes_read: AtomicU64,
    pub(crate) bytes_written: AtomicU64,
    pub(crate) data_ops: AtomicU64,
    pub(crate) metadata_ops: AtomicU64,
    pub(crate) sync_ops: AtomicU64,
    pub(crate) slept_ns: AtomicU64,
    pub(crate) unmodelled: AtomicU64,
    pub(crate) first_start_ns: AtomicU64,
    pub(crate) last_finish_ns: AtomicU64,
    pub(crate) metadata_busy_ns: AtomicU64,
}

/// A storage target: its FIFO queue and sums.
#[repr(C, align(64))]
pub(crate) struct Target {
    pub(crate) next_free_ns: AtomicU64,
    pub(crate) last_writer: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) busy_ns: AtomicU64,
    pub(crate) requests: AtomicU64,
    pub(crate) switches: AtomicU64,
}

/// An emulated directory.
#[repr(C)]
pub(crate) struct Root {
    pub(crate) length: u32,
    pub(crate) path: [u8; PATH_MAX - 4],
}

/// The layout of the whole file.
#[repr(C)]
pub(crate) struct Block {
    pub(crate) parameters: Parameters,
    pub(crate) totals: Totals,
    pub(crate) target: [Target; TARGETS_MAX],
    pub(crate) root: [Root; ROOTS_MAX],
}

/// Checks the offsets that `docs/explanation/emulation.md` documents.
const _: () = {
    use std::mem::{offset_of, size_of};
    assert!(offset_of!(Parameters, default_stripe_size_bytes) == 24);
    assert!(offset_of!(Parameters, created_ns) == 80);
    assert!(offset_of!(Parameters, name) == 88);
    assert!(offset_of!(Block, totals) == 192);
    assert!(offset_of!(Block, target) == 320);
    assert!(size_of::<Target>() == 64);
    assert!(offset_of!(Block, root) == 131_392);
    assert!(size_of::<Root>() == PATH_MAX);
    assert!(size_of::<Block>() == 196_928);
};

impl Root {
    pub(crate) fn path(&self) -> &[u8] {
        let length = (self.length as usize).min(self.path.len());
        &self.path[..length]
    }
}

/// Adds a request that takes `service_ns` to the end of a FIFO queue. Returns its end.
pub(crate) fn enqueue(next_free_ns: &AtomicU64, now_ns: u64, service_ns: u64) -> u64 {
    let done = |next_free: u64| next_free.max(now_ns).saturating_add(service_ns);
    match next_free_ns
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next_free| Some(done(next_free)))
    {
        // The closure never returns None, so both arms are the old value.
        Ok(before) | Err(before) => done(before),
    }
}
