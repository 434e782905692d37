//! Looks for profiles of engines: of the user, of the site, and those that are installed.
//! Never reads a file that others can write, or that neither root nor this user owns: a profile names commands.

use std::path::{Path, PathBuf};

use forebay_config::{Sources, trusted_text};
use forebay_directive::closest;
use forebay_engine::Profile;
use forebay_host::{files, system};
use forebay_terminal::{CliError, profile_directory};

use crate::machines::toml_file;

const EXTENSION: &str = "toml";
const OWNER_HINT: &str = "copy it to ~/.config/forebay/profiles, and read what it runs";

/// The folders, first wins, and whether the user may own the files.
fn folders() -> Vec<(PathBuf, bool)> {
    let sources = Sources::of_process(None);
    let of_user =
        sources.user.as_deref().map(|file| (files::parent_of(file).join("profiles"), true));
    let site = files::parent_of(&sources.site).join("forebay/profiles");
    // Who installs Forebay trusts its files.
    let installed = profile_directory().map(|folder| (folder, true));
    of_user.into_iter().chain([(site, sources.is_site_named)]).chain(installed).collect()
}

/// The profile of a name, or of a file.
///
/// # Errors
/// If there is none, or it is wrong.
pub fn find(named: &str) -> Result<Profile, CliError> {
    if named.contains('/') {
        let path = system::current_directory()?.join(named);
        let found = read(&path, true)?;
        return found.ok_or_else(|| CliError::new(format!("there is no profile {named}")));
    }
    for (folder, may_be_users) in folders() {
        let path = toml_file(&folder, named);
        if let Some(profile) = read(&path, may_be_users)? {
            return Ok(profile);
        }
    }
    let all = names();
    let hint = match closest(named, all.iter().map(String::as_str)) {
        Some(meant) => format!("did you mean {meant}?"),
        None => format!("the profiles are {}", all.join(", ")),
    };
    Err(CliError::new(format!("there is no profile {named}")).with_hint(hint))
}

/// All profiles by name, and what is wrong with those that cannot be read. The first of a name hides others.
pub fn all() -> (Vec<Profile>, Vec<CliError>) {
    let (mut found, mut wrong) = (Vec::new(), Vec::new());
    for name in names() {
        match find(&name) {
            Ok(profile) => found.push(profile),
            Err(error) => wrong.push(error),
        }
    }
    (found, wrong)
}

fn names() -> Vec<String> {
    let in_folder = |(folder, _): (PathBuf, bool)| files::names_in(&folder).unwrap_or_default();
    let files = folders().into_iter().flat_map(in_folder).map(PathBuf::from);
    let profiles = files.filter(|file| file.extension().is_some_and(|found| found == EXTENSION));
    let mut names: Vec<String> = profiles
        .filter_map(|file| Some(file.file_stem()?.to_string_lossy().into_owned()))
        .collect();
    names.sort();
    names.dedup();
    names
}

/// The profile in a file; none if there is no file.
fn read(path: &Path, may_be_users: bool) -> Result<Option<Profile>, CliError> {
    let text = trusted_text(path, "profile", may_be_users, OWNER_HINT);
    let text = text.map_err(|(message, hint)| CliError::new(message).with_hint(hint))?;
    let Some(text) = text else { return Ok(None) };
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let profile = Profile::parse(&name, path, &text);
    let hint = "docs/reference/profiles.md explains the keys and variables";
    profile.map(Some).map_err(|message| CliError::new(message).with_hint(hint))
}
