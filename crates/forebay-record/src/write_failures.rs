//! What is known of failed writes of a job: the list that the recording library appends to, and a full store.
//! Assumes a caller in the job's view. A list that cannot be read counts as empty.

use std::collections::BTreeMap;
use std::path::PathBuf;

use forebay_host::{files, filesystem, users};
use forebay_mover::FailedWrites;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Record;

/// Name of the list in the directory of the profile.
const LIST: &str = "failed-writes";

/// The first failed write of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FailedWrite {
    /// The file, as the job saw it.
    pub path: String,
    /// The device of the file; none if it does not exist.
    device: Option<u64>,
    /// The inode of the file.
    inode: Option<u64>,
    /// `ENOSPC`, `EDQUOT` or `EIO`; none in lines of files that were emptied since.
    pub error: Option<String>,
    /// The call that failed.
    pub call: String,
    /// When, in microseconds since 1970.
    pub unix_us: u64,
}

/// Finds the failed writes of one job.
#[derive(Debug, Clone)]
pub struct WriteFailures {
    list: Option<PathBuf>,
    store: Option<PathBuf>,
    began_unix_ms: u64,
    is_accepted: bool,
}

impl WriteFailures {
    /// Those of the job of this record. The caller is in the job's view.
    pub fn of(record: &Record) -> Self {
        Self {
            list: record.profile.as_ref().map(|profile| profile.join(LIST)),
            store: record.place.as_ref().map(|place| place.root.clone()),
            began_unix_ms: record.began_unix_ms,
            is_accepted: record.staging.accept_failed_writes,
        }
    }

    /// The same, if the user accepts such files.
    pub fn accepting(mut self, is_accepted: bool) -> Self {
        self.is_accepted |= is_accepted;
        self
    }

    /// The files whose writes failed, oldest first. Empty if the job is not recorded.
    pub fn recorded(&self) -> Vec<FailedWrite> {
        let mut found: Vec<_> = self.lines().filter(|line| line.error.is_some()).collect();
        found.sort_by_key(|failed| failed.unix_us);
        found
    }

    /// What the list says of each file in the end: its first failure, or that it was emptied since.
    fn lines(&self) -> impl Iterator<Item = FailedWrite> + use<> {
        let list = self.list.as_ref();
        let text = list.and_then(|list| files::read_record(list, Some(users::user_id())).ok());
        let mut found: BTreeMap<_, FailedWrite> = BTreeMap::new();
        for line in text.unwrap_or_default().lines() {
            let Ok(line) = serde_json::from_str::<FailedWrite>(line) else {
                continue;
            };
            let key = (line.device, line.inode, line.inode.is_none().then(|| line.path.clone()));
            if line.error.is_none() || found.get(&key).is_none_or(|known| known.error.is_none()) {
                found.insert(key, line);
            }
        }
        found.into_values()
    }

    /// Is the file system of the store full now?
    pub fn store_is_full(&self) -> bool {
        self.store.as_ref().is_some_and(|store| filesystem::is_full(store).unwrap_or(false))
    }

    /// The files that may be incomplete: those whose failed writes are recorded. If none is, those modified since
    /// `modified_since_unix_ms`, when the store was last seen with room before it was full: a program that is not
    /// recorded wrote them. Not those that were emptied after their failed write. Empty if the user accepts them.
    pub fn incomplete(&self, modified_since_unix_ms: Option<u64>) -> FailedWrites {
        if self.is_accepted {
            return FailedWrites::default();
        }
        let (failed, emptied): (Vec<_>, Vec<_>) =
            self.lines().partition(|line| line.error.is_some());
        let inodes = |lines: &[FailedWrite]| {
            lines.iter().filter_map(|line| line.device.zip(line.inode)).collect()
        };
        FailedWrites {
            inodes: inodes(&failed),
            emptied_inodes: inodes(&emptied),
            modified_since_unix_ms: modified_since_unix_ms.filter(|_| failed.is_empty()),
        }
    }

    /// The same; if the store is full now, each file that the job modified may be incomplete.
    pub fn incomplete_now(&self) -> FailedWrites {
        self.incomplete(self.store_is_full().then_some(self.began_unix_ms))
    }
}
