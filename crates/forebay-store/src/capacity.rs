//! Computes the size of an allocation from the space that is free now.
//! Assumes that the caller adds up the memory that other allocations may still use. Never reserves space.

use forebay_host::filesystem;
use forebay_host::memory::{self, CgroupLimit, Memory};

use crate::{Error, Store};

/// The maximum share of free space for an allocation. The rest remains for the memory of the
/// application or for other users of the disk.
const USABLE_MEMORY_PERCENT: u64 = 50;
const USABLE_DISK_PERCENT: u64 = 90;

/// The size that a store grants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    /// Size in bytes: the request, or less if less is available.
    pub capacity_bytes: u64,
    /// The maximum size available.
    pub usable_bytes: u64,
}

/// The space available for an allocation.
struct Room {
    usable_bytes: u64,
    /// For a memory store: the cgroup, and the usable bytes in it.
    cgroup: Option<(CgroupLimit, u64)>,
}

impl Store {
    /// Computes the size of an allocation that requests `wanted_bytes`. Capacities in scripts are
    /// for large machines, so Forebay may grant less. `promised_bytes` of memory belong to other
    /// allocations that do not use them yet.
    ///
    /// # Errors
    /// If the memory cgroup is too small, or the space cannot be measured.
    pub fn grant(&self, wanted_bytes: u64, promised_bytes: u64) -> Result<Grant, Error> {
        self.room(promised_bytes)?.grant(wanted_bytes)
    }

    /// The maximum size of a new allocation.
    pub fn usable_bytes(&self) -> Result<u64, Error> {
        let room = self.room(0)?;
        let of_group = room.cgroup.map(|(_, bytes)| bytes);
        Ok(of_group.map_or(room.usable_bytes, |bytes| bytes.min(room.usable_bytes)))
    }

    fn room(&self, promised_bytes: u64) -> Result<Room, Error> {
        let in_directory = match self {
            Self::Directory { path, .. } => filesystem::space(path)?.available_bytes,
            Self::Memory { .. } => u64::MAX,
        };
        if self.in_memory() {
            let mut memory = memory::memory()?;
            memory.available_bytes = memory.available_bytes.saturating_sub(promised_bytes);
            return Ok(Room::in_memory(in_directory, memory));
        }
        Ok(Room { usable_bytes: in_directory / 100 * USABLE_DISK_PERCENT, cgroup: None })
    }
}

impl Room {
    fn in_memory(in_directory: u64, memory: Memory) -> Self {
        let share = |bytes: u64| bytes / 100 * USABLE_MEMORY_PERCENT;
        let in_group = |group: CgroupLimit| {
            let usable = share(group.free_bytes);
            (group, usable)
        };
        Self {
            usable_bytes: share(memory.available_bytes.min(in_directory)),
            cgroup: memory.cgroup.map(in_group),
        }
    }

    fn grant(self, wanted_bytes: u64) -> Result<Grant, Error> {
        let capacity_bytes = wanted_bytes.min(self.usable_bytes);
        match self.cgroup {
            Some((group, usable_bytes)) if capacity_bytes > usable_bytes => {
                Err(Error::CgroupTooSmall {
                    capacity_bytes,
                    cgroup: group.path,
                    limit_bytes: group.limit_bytes,
                    usable_bytes,
                })
            }
            _ => Ok(Grant { capacity_bytes, usable_bytes: self.usable_bytes }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn memory(available_bytes: u64, cgroup: Option<(u64, u64)>) -> Memory {
        let limit = |(limit_bytes, free_bytes)| CgroupLimit {
            path: "/group".into(),
            limit_bytes,
            free_bytes,
        };
        Memory { available_bytes, total_bytes: 64 * GIB, cgroup: cgroup.map(limit) }
    }

    #[test]
    fn capacity_beyond_the_machine_is_reduced_to_half_of_it() {
        let grant =
            |wanted| Room::in_memory(u64::MAX, memory(20_000, None)).grant(wanted).expect("grant");
        assert_eq!((grant(4_000).capacity_bytes, grant(4_000).usable_bytes), (4_000, 10_000));
        assert_eq!(grant(1 << 60).capacity_bytes, 10_000);
        let small = Room::in_memory(2_000, memory(20_000, None)).grant(4_000).expect("grant");
        assert_eq!(small.capacity_bytes, 1_000);
    }

    #[test]
    fn cgroup_without_room_for_application_and_store_is_refused() {
        let in_group = |wanted, free| {
            Room::in_memory(u64::MAX, memory(40 * GIB, Some((4 * GIB, free)))).grant(wanted)
        };
        assert_eq!(in_group(GIB, 3 * GIB).expect("fits").capacity_bytes, GIB);
        let refused = in_group(3 * GIB, 3 * GIB).expect_err("refused").to_string();
        assert!(refused.contains("of 3.00 GiB in memory"), "{refused}");
        assert!(refused.contains("/group is limited to 4.00 GiB"), "{refused}");
        in_group(1 << 60, 3 * GIB).expect_err("the machine has more than the group");
    }

    #[test]
    fn disk_store_leaves_a_tenth_free() {
        let scratch = tempfile::tempdir().expect("tempdir");
        let store = Store::directory(scratch.path()).expect("store");
        let grant = store.grant(1 << 60, 0).expect("grant");
        assert!(grant.capacity_bytes == grant.usable_bytes && grant.usable_bytes < 1 << 60);
    }
}
