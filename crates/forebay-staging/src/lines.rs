//! Expands a staging line of a script: the line itself, or the lines of the list that it names.

use std::path::{Path, PathBuf};

use forebay_directive::{self as directive, Direction, Stage, StageKind};
use forebay_host::files::{self, Kind};
use forebay_mover::{Transfer, TransferKind};

/// Returns the stage itself, or the stages of its list.
///
/// # Errors
/// If the list cannot be read, or has wrong lines.
pub fn expanded_out(stage: &Stage) -> Result<Vec<Stage>, String> {
    expanded(stage, Direction::Out, &Path::to_owned)
}

pub(crate) fn expanded(
    stage: &Stage,
    direction: Direction,
    behind: &dyn Fn(&Path) -> PathBuf,
) -> Result<Vec<Stage>, String> {
    if stage.kind != StageKind::List {
        return Ok(vec![stage.clone()]);
    }
    let path = &stage.pfs_path;
    let text = files::read_plain(&behind(Path::new(path))).map_err(|error| error.to_string())?;
    directive::stages_of_list(&text, direction, &stage.naming).map_err(|problems| {
        let lines = problems.iter().map(|p| format!("{path}: {p} ({})", p.hint));
        lines.collect::<Vec<_>>().join("\n  ")
    })
}

pub(crate) fn transfer(stage: &Stage, source: PathBuf, target: PathBuf) -> Transfer {
    let what = match stage.kind {
        StageKind::File | StageKind::List => TransferKind::File,
        StageKind::Directory => TransferKind::Directory,
        StageKind::Path => return transfer_of_path(source, target),
    };
    Transfer { what, source, target }
}

/// A source directory goes into the target under its own name, whether the target exists or not. A
/// retry therefore has the same destination.
fn transfer_of_path(source: PathBuf, target: PathBuf) -> Transfer {
    let is_directory = files::status(&source).is_ok_and(|status| status.kind == Kind::Directory);
    let (what, target) = match source.file_name() {
        Some(name) if is_directory => (TransferKind::Directory, target.join(name)),
        _ => (TransferKind::File, target),
    };
    Transfer { what, source, target }
}
