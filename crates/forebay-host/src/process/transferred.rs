//! Bytes that processes read and wrote, as the kernel counts them. Assumes that parents wait for their
//! children: the kernel adds the bytes of a child to those of the process that waits for it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What processes moved by system calls such as read(2) and write(2): in files, pipes and terminals.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Transferred {
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
}

impl Transferred {
    /// Of an ended child and all its descendants that were waited for; `reap` waits for the child.
    /// None if the kernel does not tell.
    pub(super) fn of_ended<T>(pid: i32, reap: impl FnOnce() -> T) -> (Option<Self>, T) {
        let known = Self::read(&format!("/proc/{pid}/io"));
        if known.is_some() {
            return (known, reap());
        }
        // Of an ended process, the kernel tells only root. But it adds the bytes to ours now. Those that
        // our other threads move meanwhile, in microseconds, are counted with them.
        let before = Self::read("/proc/self/io");
        let reaped = reap();
        let after = Self::read("/proc/self/io");
        (before.zip(after).map(|(before, after)| after.since(before)), reaped)
    }

    fn read(path: &str) -> Option<Self> {
        Self::parse(&std::fs::read_to_string(path).ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let number =
            |name| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        Some(Self { read_bytes: number("rchar:")?, written_bytes: number("wchar:")? })
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            read_bytes: self.read_bytes.saturating_add(other.read_bytes),
            written_bytes: self.written_bytes.saturating_add(other.written_bytes),
        }
    }

    /// What was moved after `before`.
    pub fn since(self, before: Self) -> Self {
        Self {
            read_bytes: self.read_bytes.saturating_sub(before.read_bytes),
            written_bytes: self.written_bytes.saturating_sub(before.written_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_system_calls_are_read_and_others_are_not() {
        let text = "rchar: 5\nwchar: 70\nsyscr: 1\nsyscw: 2\nread_bytes: 4096\nwrite_bytes: 0\n";
        let expected = Transferred { read_bytes: 5, written_bytes: 70 };
        assert_eq!(Transferred::parse(text), Some(expected));
        assert_eq!(Transferred::parse("syscr: 1\n"), None);
    }
}
