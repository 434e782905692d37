//! The cost of each operation, by the formulas of docs/explanation/emulation.md: targets, clients and the metadata server
//! are FIFO queues. The last writer of a target is exchanged before the request is queued, so no two fields
//! change together. A race may shift a switch penalty, but never loses or adds one. Never reads a clock.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::block::{Target, enqueue};
use crate::layout::Layout;
use crate::state::State;

/// Direction of a data operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// Reads from the targets; does not move the extent lock.
    Read,
    /// Writes to the targets; moves the extent lock to the writer.
    Write,
}

/// A client of the file system: a process with its bandwidth limit.
#[derive(Debug, Default)]
pub struct Client {
    id: AtomicU64,
    next_free_ns: AtomicU64,
}

impl Client {
    /// A client that gets its number with its first operation.
    pub const fn new() -> Self {
        Self { id: AtomicU64::new(0), next_free_ns: AtomicU64::new(0) }
    }

    /// Resets this to a new client, for a forked child.
    pub fn forget(&self) {
        self.id.store(0, Ordering::Relaxed);
        self.next_free_ns.store(0, Ordering::Relaxed);
    }

    fn id(&self, state: &State) -> u64 {
        let known = self.id.load(Ordering::Relaxed);
        if known != 0 {
            return known;
        }
        let fresh = state.block().totals.next_client.fetch_add(1, Ordering::Relaxed) + 1;
        match self.id.compare_exchange(0, fresh, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => fresh,
            // Another thread of this process was first: its number is used and this one stays unused.
            Err(theirs) => theirs,
        }
    }
}

/// Time to transfer `bytes` at `bytes_per_s` in nanoseconds, rounded up.
fn transfer_ns(bytes: u64, bytes_per_s: u64) -> u64 {
    let ns = (u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(bytes_per_s.max(1)));
    u64::try_from(ns).unwrap_or(u64::MAX)
}

impl State {
    /// Charges a data operation that starts at `now_ns`. Returns its end on the same clock. An
    /// empty range costs nothing and is not counted.
    pub fn charge_data(
        &self,
        now_ns: u64,
        layout: &Layout,
        client: &Client,
        op: Op,
        offset: u64,
        len: u64,
    ) -> u64 {
        if len == 0 {
            return now_ns;
        }
        let (block, id) = (self.block(), client.id(self));
        let moved = match op {
            Op::Read => &block.totals.bytes_read,
            Op::Write => &block.totals.bytes_written,
        };
        moved.fetch_add(len, Ordering::Relaxed);
        block.totals.data_ops.fetch_add(1, Ordering::Relaxed);
        let client_ns = transfer_ns(len, block.parameters.client_bytes_per_s);
        let mut finish_ns = enqueue(&client.next_free_ns, now_ns, client_ns);
        for part in layout.bytes_by_target(offset, len, self.targets()) {
            let done = self.serve(&block.target[part.target as usize], now_ns, id, op, part.bytes);
            finish_ns = finish_ns.max(done);
        }
        self.note_span(now_ns, finish_ns);
        finish_ns
    }

    fn serve(&self, target: &Target, now_ns: u64, client: u64, op: Op, bytes: u64) -> u64 {
        let parameters = &self.block().parameters;
        let mut service_ns = parameters
            .target_latency_ns
            .saturating_add(transfer_ns(bytes, parameters.target_bytes_per_s));
        if op == Op::Write {
            let before = target.last_writer.swap(client, Ordering::Relaxed);
            if before != 0 && before != client {
                target.switches.fetch_add(1, Ordering::Relaxed);
                service_ns = service_ns.saturating_add(parameters.switch_penalty_ns);
            }
        }
        target.bytes.fetch_add(bytes, Ordering::Relaxed);
        target.requests.fetch_add(1, Ordering::Relaxed);
        target.busy_ns.fetch_add(service_ns, Ordering::Relaxed);
        enqueue(&target.next_free_ns, now_ns, service_ns)
    }

    /// Charges a metadata operation (stat, unlink, rename, ...). Returns its end.
    pub fn charge_metadata(&self, now_ns: u64, client: &Client) -> u64 {
        client.id(self);
        self.block().totals.metadata_ops.fetch_add(1, Ordering::Relaxed);
        self.serve_metadata(now_ns, self.block().parameters.metadata_operation_ns)
    }

    /// Charges the cost of an open beyond [`State::charge_metadata`]: it grows with the stripe count.
    pub fn charge_open_stripes(&self, now_ns: u64, layout: &Layout) -> u64 {
        let per_stripe_ns = self.block().parameters.metadata_per_stripe_ns;
        if per_stripe_ns == 0 {
            return now_ns;
        }
        self.serve_metadata(now_ns, per_stripe_ns.saturating_mul(u64::from(layout.stripe_count)))
    }

    /// Charges an fsync: one request without data for each target of the file, in parallel.
    pub fn charge_sync(&self, now_ns: u64, layout: &Layout, client: &Client) -> u64 {
        client.id(self);
        self.block().totals.sync_ops.fetch_add(1, Ordering::Relaxed);
        let latency_ns = self.block().parameters.target_latency_ns;
        let mut finish_ns = now_ns;
        for unit in 0..u64::from(layout.stripe_count) {
            let target = &self.block().target[layout.target_of_unit(unit, self.targets()) as usize];
            target.busy_ns.fetch_add(latency_ns, Ordering::Relaxed);
            finish_ns = finish_ns.max(enqueue(&target.next_free_ns, now_ns, latency_ns));
        }
        self.note_span(now_ns, finish_ns);
        finish_ns
    }

    fn serve_metadata(&self, now_ns: u64, service_ns: u64) -> u64 {
        let totals = &self.block().totals;
        totals.metadata_busy_ns.fetch_add(service_ns, Ordering::Relaxed);
        let finish_ns = enqueue(&totals.metadata_next_free_ns, now_ns, service_ns);
        self.note_span(now_ns, finish_ns);
        finish_ns
    }

    fn note_span(&self, start_ns: u64, finish_ns: u64) {
        let totals = &self.block().totals;
        totals.first_start_ns.fetch_min(start_ns, Ordering::Relaxed);
        totals.last_finish_ns.fetch_max(finish_ns, Ordering::Relaxed);
    }

    /// Counts time that a process is about to sleep.
    pub fn note_sleep(&self, sleep_ns: u64) {
        self.block().totals.slept_ns.fetch_add(sleep_ns, Ordering::Relaxed);
    }

    /// Counts a call whose data the model does not see (a stdio stream or a mapping of an emulated file).
    pub fn note_unmodelled(&self) {
        self.block().totals.unmodelled.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a process that loaded the preload with this state.
    pub fn note_attached(&self) {
        self.block().totals.attached.fetch_add(1, Ordering::Relaxed);
    }
}
