//! Where the lines of a script, or a drain to a directory, take a file.

use std::path::{Path, PathBuf};

use forebay_directive::{Stage, StageKind};
use forebay_host::files::{self, Kind};

/// Where a file goes.
#[derive(Debug)]
pub struct Destination {
    /// The path of the file there.
    pub target: PathBuf,
    /// A directory of the destination, and what it means, if directories between are to be made.
    pub below: Option<(PathBuf, PathBuf)>,
}

/// Where the stage_out lines take a file of the namespace at `root`.
pub fn destinations_of(stages: &[Stage], root: &Path, relative: &Path) -> Vec<Destination> {
    let own = stages.iter().filter(|stage| stage.persistent.is_none());
    let ways = own.filter_map(|stage| {
        let target = Path::new(&stage.pfs_path);
        let inner = Path::new(&stage.inner_path);
        match stage.kind {
            StageKind::File | StageKind::Path if inner == relative => {
                let into = stage.pfs_path.ends_with('/')
                    || files::status(target).is_ok_and(|found| found.kind == Kind::Directory);
                let name = relative.file_name().filter(|_| into);
                let target = name.map_or(target.to_owned(), |name| target.join(name));
                let below = None;
                Some(Destination { target, below })
            }
            StageKind::Directory | StageKind::Path => {
                let rest = relative.strip_prefix(inner).ok()?;
                let own_name = inner.file_name().filter(|_| stage.kind == StageKind::Path);
                let top = own_name.map_or(target.to_owned(), |name| target.join(name));
                let target = top.join(rest);
                let below = Some((top, root.join(inner)));
                Some(Destination { target, below })
            }
            StageKind::File | StageKind::List => None,
        }
    });
    ways.collect()
}

/// Where a file of a directory goes that as a whole goes to another one.
pub fn destination_in(to: &Path, directory: &Path, relative: &Path) -> Destination {
    Destination { target: to.join(relative), below: Some((to.to_owned(), directory.to_owned())) }
}
