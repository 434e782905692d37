//! Checks destinations in a job's view. The view keeps the file systems that it saw when the job began: one that was
//! unmounted since is reachable in the view alone, and what is copied there is lost with the view.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use forebay_host::files::Directory;
use forebay_host::{files, mounts};

use crate::Error;

/// What this machine has mounted, outside of the view.
pub(crate) struct Outside {
    mounted: HashSet<u64>,
    root: Directory,
}

impl Outside {
    /// Looks at the mounts before the view is entered.
    ///
    /// # Errors
    /// If the mounts cannot be listed.
    pub(crate) fn new() -> Result<Self, Error> {
        Ok(Self { mounted: mounts::devices()?, root: Directory::open_path(Path::new("/"))? })
    }

    /// Checks destinations in the view: each is on a file system that is mounted outside, too.
    ///
    /// # Errors
    /// Names the first one that is not.
    pub(crate) fn check(&self, destinations: Vec<PathBuf>) -> Result<(), Error> {
        match destinations.into_iter().find(|path| self.is_only_in_the_view(path)) {
            Some(path) => Err(Error::Unmounted(path)),
            None => Ok(()),
        }
    }

    fn is_only_in_the_view(&self, path: &Path) -> bool {
        let Ok(nearest) = files::nearest_real_path(path) else {
            return false;
        };
        let inside = files::status(&nearest).map(|found| found.device);
        inside.is_ok_and(|inside| {
            // Subvolumes have numbers that no list of mounts has.
            !self.mounted.contains(&inside) && self.device(&nearest) != Some(inside)
        })
    }

    /// The number of the file system that has this path outside of the view, or what exists above it.
    fn device(&self, path: &Path) -> Option<u64> {
        let below_root = path.strip_prefix("/").ok()?;
        let names = below_root.ancestors().map(|name| match name.as_os_str().is_empty() {
            true => OsStr::new("."),
            false => name.as_os_str(),
        });
        names.into_iter().find_map(|name| Some(self.root.status_of_name(name).ok()?.device))
    }
}
