//! The directory on the file system that holds the allocation of a job with `--no-burst-buffer`. The script then runs
//! unchanged: it finds each variable set, and its data are staged as they are with a burst buffer.

use std::path::{Path, PathBuf};

use forebay_directive::{Stage, StageKind};
use forebay_engine::PathMap;
use forebay_host::{files, probe, system};
use forebay_job::Error;
use forebay_scheduler::JobScript;
use forebay_terminal::CliError;

use crate::emulation::Emulation;
use crate::options::job::JobArguments;

/// The directory that the user names, else the first usable one that the script stages out to, else the one in which
/// it works. With an emulated file system it is on that.
pub fn choose(
    arguments: &JobArguments,
    script: &JobScript,
    emulation: Option<&Emulation>,
) -> Result<PathBuf, CliError> {
    let of_job = |error: forebay_host::Error| CliError::of_job(Error::from(error));
    let is_emulated =
        |directory: &Path| emulation.is_none_or(|emulation| emulation.covers(directory));
    if let Some(directory) = &arguments.space.pfs_dir {
        let directory = files::real_path(directory).map_err(of_job)?;
        return if is_emulated(&directory) {
            Ok(directory)
        } else {
            Err(none_usable(&[directory]))
        };
    }
    let here = system::current_directory().map_err(of_job)?;
    let request = script.request(&here, "no-job").map_err(Error::from).map_err(CliError::of_job)?;
    let maps = &arguments.map;
    let stages = request.stage_out.iter().filter(|stage| stage.kind != StageKind::List);
    let outputs = stages.filter_map(|stage| directory_of_output(stage, maps));
    let working_directory = PathMap::resolve(maps, &script.working_directory(&here));
    let candidates: Vec<_> = outputs.chain(files::real_path(&working_directory).ok()).collect();
    let is_hidden = |directory: &Path| maps.iter().any(|map| directory.starts_with(&map.path));
    let is_usable = |directory: &&PathBuf| {
        directory.parent().is_some()
            && probe::check_write(directory).is_ok()
            && !is_hidden(directory)
            && is_emulated(directory)
    };
    // A script that does not quote the variable would remove another directory than it means.
    let without_blanks: Vec<_> =
        candidates.iter().filter_map(|path| ancestor_without_blanks(path)).collect();
    let usable = without_blanks.iter().chain(&candidates).find(is_usable);
    usable.cloned().ok_or_else(|| none_usable(&candidates))
}

fn device(path: &Path) -> Option<u64> {
    files::status(path).ok().map(|status| status.device)
}

/// The directory, or the nearest one above it on the same file system whose path has no blanks.
fn ancestor_without_blanks(directory: &Path) -> Option<PathBuf> {
    let has_blanks = |path: &Path| path.to_string_lossy().contains(char::is_whitespace);
    let found = directory.ancestors().find(|path| !has_blanks(path))?;
    (device(found) == device(directory)).then(|| found.to_owned())
}

/// The directory next to an output, if it is on the same file system; else the output, a mount point.
fn directory_of_output(stage: &Stage, maps: &[PathMap]) -> Option<PathBuf> {
    let output = PathMap::resolve(maps, Path::new(&stage.pfs_path));
    let parent = files::nearest_real_path(files::parent_of(&output)).ok()?;
    let is_other = stage.kind == StageKind::Directory
        && device(&output).is_some_and(|of_output| Some(of_output) != device(&parent));
    if is_other { files::real_path(&output).ok() } else { Some(parent) }
}

fn none_usable(candidates: &[PathBuf]) -> CliError {
    let named: Vec<_> = candidates.iter().map(|path| path.display().to_string()).collect();
    let message = format!(
        "--no-burst-buffer: $DW_JOB_STRIPED cannot be a directory in {}: not writable, hidden by --map, or not \
         on the emulated file system",
        named.join(" or ")
    );
    CliError::new(message)
        .with_exit_code(forebay_host::exit_codes::FAILED_BEFORE_THE_JOB)
        .with_hint("name another one with --pfs-dir DIR; with --pfs-model, below a --pfs-root")
}
