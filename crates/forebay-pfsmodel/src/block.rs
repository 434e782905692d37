//! The shared state byte by byte; the table is in `docs/pfs-model.md`. Everything that changes is an atomic of its own,
//! and no two of them must agree: a process can be killed between any two stores and the others go on.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::paths::PATH_MAX;

/// First bytes of a state file, written last.
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"FBPFSMDL");
/// Changes whenever the block or the meaning of a field does.
pub(crate) const VERSION: u32 = 1;
/// Longest model name kept, in bytes.
pub(crate) const NAME_MAX: usize = 64;
/// Largest number of targets in one model; Lustre's own limit is 2000 stripes a file.
pub const TARGETS_MAX: usize = 2048;
/// Largest number of emulated directories in one state.
pub const ROOTS_MAX: usize = 16;

/// Written once by the creator, before [`Parameters::magic`].
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

/// Queues and sums that belong to no single target.
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

/// One storage target: a FIFO queue and its sums.
#[repr(C, align(64))]
pub(crate) struct Target {
    pub(crate) next_free_ns: AtomicU64,
    pub(crate) last_writer: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) busy_ns: AtomicU64,
    pub(crate) requests: AtomicU64,
    pub(crate) switches: AtomicU64,
}

/// One emulated directory.
#[repr(C)]
pub(crate) struct Root {
    pub(crate) length: u32,
    pub(crate) path: [u8; PATH_MAX - 4],
}

/// The whole file.
#[repr(C)]
pub(crate) struct Block {
    pub(crate) parameters: Parameters,
    pub(crate) totals: Totals,
    pub(crate) target: [Target; TARGETS_MAX],
    pub(crate) root: [Root; ROOTS_MAX],
}

/// Offsets that `docs/pfs-model.md` promises.
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

/// Puts a request that needs `service_ns` at the end of a FIFO queue; returns when it is done.
pub(crate) fn enqueue(next_free_ns: &AtomicU64, now_ns: u64, service_ns: u64) -> u64 {
    let done = |next_free: u64| next_free.max(now_ns).saturating_add(service_ns);
    match next_free_ns
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next_free| Some(done(next_free)))
    {
        // The closure never answers None, so both arms are the value before.
        Ok(before) | Err(before) => done(before),
    }
}
