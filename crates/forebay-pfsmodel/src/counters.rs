//! The counters of an emulation, as a plain value.
//! Takes no lock, so sums may differ by calls in progress. Never resets a counter.

use std::sync::atomic::Ordering;

use schemars::JsonSchema;
use serde::Serialize;

use crate::state::State;

/// Sums over all processes of one emulation. All values are *emulated*: the model computes them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Counters {
    /// Bytes charged for reads.
    pub bytes_read: u64,
    /// Bytes charged for writes, including writes that failed after the charge.
    pub bytes_written: u64,
    /// Data calls charged.
    pub data_ops: u64,
    /// Metadata calls charged.
    pub metadata_ops: u64,
    /// fsync and fdatasync calls charged.
    pub sync_ops: u64,
    /// Requests that had to take the lock of their target from another client.
    pub target_switches: u64,
    /// Time that processes slept, in nanoseconds, summed over processes (they sleep in parallel).
    pub slept_ns: u64,
    /// Processes that loaded the preload with this state (one for each exec, without forked children).
    pub attached: u64,
    /// Processes, including forked children, with at least one charge.
    pub clients: u64,
    /// Calls whose data the model does not see: stdio streams and mappings of emulated files.
    pub unmodelled: u64,
    /// Time in which the metadata server was busy, in nanoseconds.
    pub metadata_busy_ns: u64,
    /// Time from the first start to the last finish, in nanoseconds of model time.
    pub makespan_ns: u64,
    /// The counters of each target.
    pub targets: Vec<TargetCounters>,
}

/// Sums of one target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TargetCounters {
    /// Bytes read and written.
    pub bytes: u64,
    /// Requests served.
    pub requests: u64,
    /// Requests that paid the switch penalty.
    pub switches: u64,
    /// Time in which the target was busy, in nanoseconds.
    pub busy_ns: u64,
}

impl State {
    /// Reads all counters. Other processes may change them meanwhile, so they may differ by some calls.
    pub fn counters(&self) -> Counters {
        let totals = &self.block().totals;
        let read = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let targets: Vec<TargetCounters> = self.block().target[..self.targets() as usize]
            .iter()
            .map(|target| TargetCounters {
                bytes: read(&target.bytes),
                requests: read(&target.requests),
                switches: read(&target.switches),
                busy_ns: read(&target.busy_ns),
            })
            .collect();
        Counters {
            bytes_read: read(&totals.bytes_read),
            bytes_written: read(&totals.bytes_written),
            data_ops: read(&totals.data_ops),
            metadata_ops: read(&totals.metadata_ops),
            sync_ops: read(&totals.sync_ops),
            target_switches: targets.iter().map(|target| target.switches).sum(),
            slept_ns: read(&totals.slept_ns),
            attached: read(&totals.attached),
            clients: read(&totals.next_client),
            unmodelled: read(&totals.unmodelled),
            metadata_busy_ns: read(&totals.metadata_busy_ns),
            makespan_ns: read(&totals.last_finish_ns).saturating_sub(read(&totals.first_start_ns)),
            targets,
        }
    }
}
