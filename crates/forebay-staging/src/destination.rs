//! Finds the destinations of a file, from the lines of a script or from a drain.

use std::path::{Path, PathBuf};

use forebay_directive::{Stage, StageKind};
use forebay_host::files::{self, Kind};

/// The destination of one file.
#[derive(Debug)]
pub struct Destination {
    /// The path of the file at the destination.
    pub target: PathBuf,
    /// If parent directories are to be created: the top one, and the source directory that it copies.
    pub below: Option<(PathBuf, PathBuf)>,
}

/// The destinations of a file in the namespace at `root`, from the stage_out lines.
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

/// The destination of a file when all of `directory` goes to `to`.
pub fn destination_in(to: &Path, directory: &Path, relative: &Path) -> Destination {
    Destination { target: to.join(relative), below: Some((to.to_owned(), directory.to_owned())) }
}
