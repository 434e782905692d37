//! Checks the destinations of stage_out lines before the job starts. Reads the file system, changes nothing.
//! A list that cannot be read is no error: the job may write it. A lack of space is a warning only.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use forebay_directive::{Direction, Stage, StageKind};
use forebay_host::files::{self, Kind};
use forebay_host::{filesystem, probe};
use indicatif::HumanBytes;

use crate::Error;
use crate::lines::expanded;

/// Checks that what the lines stage out can get to its destination, as far as that is known. Returns warnings.
/// `behind`: the real path behind a path of the script, where maps are not in effect yet. `capacity_bytes`: the most
/// that the job can stage out.
///
/// # Errors
/// Names the first line whose destination is that of another line, is of another kind, or cannot be written.
pub fn check_destinations(
    stages: &[Stage],
    script: &Path,
    behind: &dyn Fn(&Path) -> PathBuf,
    capacity_bytes: Option<u64>,
) -> Result<Vec<String>, Error> {
    let mut known: BTreeMap<PathBuf, (Stage, bool)> = BTreeMap::new();
    let mut file_systems = BTreeSet::new();
    let mut warnings = Vec::new();
    for asked in stages {
        let refused = |message: String| Error::Destination {
            script: script.to_owned(),
            position: asked.position,
            command: asked.command(Direction::Out),
            message,
        };
        // The job may write the list.
        for stage in expanded(asked, Direction::Out, behind).unwrap_or_default() {
            let (path, directory) = destination(&stage, behind).map_err(refused)?;
            let is_tree = stage.kind == StageKind::Directory;
            if let Some((other, of_tree)) = known.get(&path).filter(|(_, tree)| !(is_tree && *tree))
            {
                let what = if *of_tree { "the directory" } else { "the file" };
                let (path, inner) = (forebay_host::files::printable(&path), &other.inner_path);
                let line = other.position.on_line();
                return Err(refused(format!(
                    "{path} is where {what} {inner} of {line} goes already"
                )));
            }
            known.insert(path, (stage, is_tree));
            let status = files::status(&directory).map_err(|error| refused(error.to_string()))?;
            if file_systems.insert(status.device) {
                warnings.extend(space_warning(&directory, capacity_bytes));
            }
        }
    }
    Ok(warnings)
}

/// The path that a line writes, and the nearest directory that exists.
fn destination(
    stage: &Stage,
    behind: &dyn Fn(&Path) -> PathBuf,
) -> Result<(PathBuf, PathBuf), String> {
    let asked = Path::new(&stage.pfs_path);
    let real = behind(asked);
    let is_directory =
        |path: &Path| files::status(path).is_ok_and(|found| found.kind == Kind::Directory);
    let inner = Path::new(&stage.inner_path);
    let takes_name = match stage.kind {
        StageKind::Directory | StageKind::List => false,
        StageKind::Path | StageKind::File => stage.pfs_path.ends_with('/') || is_directory(&real),
    };
    let path = match inner.file_name().filter(|_| takes_name) {
        Some(name) => real.join(name),
        None => real.components().collect(),
    };
    let (text, is_tree) =
        (forebay_host::files::printable(asked), stage.kind == StageKind::Directory);
    if let Ok(found) = files::status(&path) {
        match (found.kind, is_tree) {
            (Kind::Directory, true) | (Kind::File, false) => {}
            (Kind::Directory, false) if stage.kind == StageKind::Path => {}
            (Kind::Directory, false) => {
                return Err(format!(
                    "{} is a directory, and the source a file",
                    forebay_host::files::printable(&path)
                ));
            }
            (Kind::File, true) => {
                return Err(format!("{text} is a file, and the source a directory"));
            }
            (Kind::Link | Kind::Other, _) => return Err(format!("{text} is no regular file")),
        }
    }
    // A file gets its name in its directory; a directory is written itself.
    let written = if is_tree { path.as_path() } else { path.parent().unwrap_or(&path) };
    let nearest = files::nearest_real_path(written).map_err(|error| error.to_string())?;
    if !is_directory(&nearest) {
        return Err(format!("{text}: {} is a file", forebay_host::files::printable(&nearest)));
    }
    if filesystem::is_of_kernel(&nearest).map_err(|error| error.to_string())? {
        return Err(format!("{text} is in a file system of the kernel, which stores no files"));
    }
    probe::check_write(&nearest).map_err(|error| error.to_string())?;
    let resolved = files::final_path(&path).map_err(|error| error.to_string())?;
    Ok((resolved, nearest))
}

fn space_warning(directory: &Path, capacity_bytes: Option<u64>) -> Option<String> {
    let space = filesystem::space(directory).ok()?;
    let (path, free) =
        (forebay_host::files::printable(directory), HumanBytes(space.available_bytes));
    if space.available_files == Some(0) {
        return Some(format!(
            "{path}: its file system has no inodes left; a stage-out there fails"
        ));
    }
    let capacity = capacity_bytes.filter(|capacity| *capacity > space.available_bytes)?;
    Some(format!(
        "{path} has {free} free, less than the {} of the burst buffer: its stage-out may not fit",
        HumanBytes(capacity)
    ))
}
