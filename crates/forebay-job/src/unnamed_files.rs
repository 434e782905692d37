//! Finds what a job wrote into its allocation and no `stage_out` line names: it is deleted with the allocation.
//! Never follows a link below a namespace and never reads data. Stops after the time of the caller, and then says
//! that there may be more.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use forebay_directive::AccessMode;
use forebay_host::clock;
use forebay_host::files::{self, Kind};
use forebay_staging::{StageOut, expanded_out};
use schemars::JsonSchema;
use serde::Serialize;

/// Files that a summary names.
const LARGEST_SHOWN: usize = 3;

/// Files that the job wrote and that no `stage_out` line names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UnnamedFiles {
    /// Their number.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The largest, below the allocation, with their bytes.
    pub largest: Vec<(String, u64)>,
    /// False if there may be more: the job ends, although not all files were looked at.
    pub complete: bool,
}

impl UnnamedFiles {
    /// Those of an allocation that changed after the job began, in milliseconds since 1970; no more than are seen in
    /// `time_max`. A million files on the nodes take a quarter of an hour.
    ///
    /// # Errors
    /// If a directory cannot be read.
    pub(crate) fn find(
        root: &Path,
        stage_out: &StageOut,
        began_unix_ms: u128,
        time_max: Duration,
    ) -> forebay_host::Result<Self> {
        let stages = stage_out.stages.iter();
        let stages = stages.flat_map(|stage| expanded_out(stage).unwrap_or_default());
        let named: Vec<PathBuf> =
            stages.filter_map(|stage| stage_out.roots.path(&stage).ok()).collect();
        let mut found = Self { complete: true, ..Self::default() };
        let visit = Visit { root, named: &named, began_unix_ms, until: clock::now() + time_max };
        for mode in [AccessMode::Striped, AccessMode::Private] {
            let namespace = root.join(mode.directory());
            if files::status(&namespace).is_ok() && !visit.is_named(&namespace) {
                visit.directory(&namespace, &mut found)?;
            }
        }
        Ok(found)
    }

    fn add(&mut self, path: &Path, bytes: u64) {
        self.files += 1;
        self.bytes += bytes;
        let place = self.largest.partition_point(|(_, larger)| *larger >= bytes);
        self.largest.insert(place, (path.to_string_lossy().into_owned(), bytes));
        self.largest.truncate(LARGEST_SHOWN);
    }
}

struct Visit<'a> {
    root: &'a Path,
    named: &'a [PathBuf],
    began_unix_ms: u128,
    until: Instant,
}

impl Visit<'_> {
    fn is_named(&self, path: &Path) -> bool {
        self.named.iter().any(|named| named.components().eq(path.components()))
    }

    fn directory(&self, directory: &Path, found: &mut UnnamedFiles) -> forebay_host::Result<()> {
        for (name, kind) in files::kinds_in(directory)? {
            found.complete &= clock::now() < self.until;
            if !found.complete {
                break;
            }
            let path = directory.join(name);
            if self.is_named(&path) {
                continue;
            }
            match kind {
                Kind::Directory => self.directory(&path, found)?,
                Kind::File => {
                    let status = files::status_of_name(&path)?;
                    let (seconds, nanoseconds) = status.changed;
                    let changed_ms = u128::try_from(seconds).unwrap_or(0) * 1000
                        + u128::try_from(nanoseconds).unwrap_or(0) / 1_000_000;
                    if changed_ms >= self.began_unix_ms {
                        let path = path.strip_prefix(self.root).unwrap_or(&path);
                        found.add(path, status.size_bytes);
                    }
                }
                Kind::Link | Kind::Other => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use forebay_mover::FailedWrites;
    use forebay_staging::Roots;

    use super::*;

    #[test]
    fn without_time_nothing_is_counted_and_that_is_said() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path();
        let namespace = root.join("striped");
        files::make_directories(&namespace, 0o755).expect("a namespace");
        let (file, fresh) = (namespace.join("large"), root.join("fresh"));
        files::write_atomically(&file, &fresh, b"result").expect("a file");
        let stage_out = StageOut {
            stages: &[],
            elsewhere: Vec::new(),
            roots: Roots::default(),
            allocation: None,
            requests_root: None,
            failed_writes: FailedWrites::default(),
        };
        let of = |time_max| UnnamedFiles::find(root, &stage_out, 0, time_max).expect("readable");
        let whole = of(Duration::from_secs(3600));
        assert_eq!((whole.files, whole.bytes, whole.complete), (1, 6, true));
        let cut = of(Duration::ZERO);
        assert_eq!((cut.files, cut.bytes, cut.complete), (0, 0, false));
    }
}
