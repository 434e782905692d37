//! Finds the directories for records of a user's jobs: `$FOREBAY_STATE`, else
//! `$XDG_STATE_HOME/forebay`, else `~/.local/state/forebay` (XDG Base Directory Specification). A
//! temporary directory is the fallback if that is not writable. Never uses another user's directory.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::{Result, files, users};

/// The directory of the configuration, which has `$FOREBAY_STATE` in it.
static CONFIGURED: OnceLock<PathBuf> = OnceLock::new();

/// Sets the state directory of this process, in place of `$FOREBAY_STATE`. Only the first call has an effect.
pub fn use_directory(directory: &Path) {
    CONFIGURED.get_or_init(|| directory.to_owned());
}

/// The state directories in order of preference, whether they exist or not.
pub fn directories() -> Vec<PathBuf> {
    let absolute = |name: &str| {
        let path = std::env::var_os(name).map(PathBuf::from);
        path.filter(|path| path.is_absolute())
    };
    let own = CONFIGURED
        .get()
        .cloned()
        .or_else(|| absolute("FOREBAY_STATE"))
        .or_else(|| Some(absolute("XDG_STATE_HOME")?.join("forebay")))
        .or_else(|| Some(absolute("HOME")?.join(".local/state/forebay")));
    let all = own.into_iter().chain([in_temporary()]);
    all.filter(|directory| !owned_by_other(directory)).collect()
}

/// Creates the state directories, so that they survive a power failure. Returns each directory or its error.
pub fn create_directories() -> impl Iterator<Item = Result<PathBuf>> {
    let directories = directories().into_iter();
    let created = directories.map(|directory| {
        files::sync_names(&files::make_directories(&directory, 0o700)?)?;
        Ok(directory)
    });
    // Another user may have created it first.
    created.filter(|created| created.as_ref().map_or(true, |directory| !owned_by_other(directory)))
}

fn in_temporary() -> PathBuf {
    std::env::temp_dir().join(format!("forebay-state-{}", users::user_id()))
}

/// In a world-writable parent, another user may have created the directory. Forebay would then
/// remove the files that the other user's records name as leftovers.
fn owned_by_other(directory: &Path) -> bool {
    directory == in_temporary()
        && files::status_of_name(directory).is_ok()
        && !files::is_private_dir(directory)
}
