//! Checks destinations in a job's view. The view keeps the file systems that it saw when the job began: one that was
//! unmounted since is reachable in the view alone, and what is copied there is lost with the view.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use forebay_host::{files, mounts};

use crate::Error;

/// What this machine has mounted, outside of the view.
pub(crate) struct Outside {
    mounted: HashSet<u64>,
    destinations: HashMap<PathBuf, u64>,
}

impl Outside {
    /// Looks at destinations before the view is entered.
    ///
    /// # Errors
    /// If the mounts cannot be listed.
    pub(crate) fn of_destinations(destinations: Vec<PathBuf>) -> Result<Self, Error> {
        let devices = destinations.into_iter();
        let destinations = devices.filter_map(|path| device(&path).map(|device| (path, device)));
        Ok(Self { mounted: mounts::devices()?, destinations: destinations.collect() })
    }

    /// Checks the destinations in the view: there, each is on a file system that is mounted outside, too.
    ///
    /// # Errors
    /// Names the first one that is not.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let is_gone = |(path, outside): &(&PathBuf, &u64)| {
            device(path)
                .is_some_and(|inside| inside != **outside && !self.mounted.contains(&inside))
        };
        match self.destinations.iter().find(is_gone) {
            Some((path, _)) => Err(Error::Unmounted(path.clone())),
            None => Ok(()),
        }
    }
}

/// The number of the file system of a path, or of what exists above it.
fn device(path: &Path) -> Option<u64> {
    let nearest = files::nearest_real_path(path).ok()?;
    Some(files::status(&nearest).ok()?.device)
}
