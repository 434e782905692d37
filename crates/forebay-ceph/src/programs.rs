//! Finds the programs of Ceph on this node: those of the system, of a directory, or of a bundle.
//! Assumes that a bundle has `bin` and `lib`. Runs a program only to ask for its version.

use std::path::{Path, PathBuf};
use std::time::Duration;

use forebay_host::{files, process, system};
use serde::{Deserialize, Serialize};

use crate::library::{Library, loader_in};
use crate::{file_system, monitors};

/// How long a program may take to print its version.
const VERSION_TIME_MAX: Duration = Duration::from_secs(10);
/// Where daemons are that a user's PATH does not name.
const SYSTEM_DIRECTORIES: [&str; 2] = ["/usr/bin", "/usr/sbin"];
/// The folders of libraries below an installation's root.
const LIBRARY_FOLDERS: [&str; 3] = ["lib", "lib64", "lib/x86_64-linux-gnu"];

/// The programs with the Debian packages that have them.
pub(crate) const PROGRAMS: [(&str, &str); 5] = [
    ("ceph-mon", "ceph-mon"),
    ("ceph-osd", "ceph-osd"),
    ("ceph-mds", "ceph-mds"),
    ("ceph-fuse", "ceph-fuse"),
    ("monmaptool", "ceph-base"),
];
/// The libraries with theirs.
pub(crate) const LIBRARIES: [(&str, &str); 2] =
    [(monitors::LIBRARY, monitors::PACKAGE), (file_system::LIBRARY, file_system::PACKAGE)];

/// The programs of one installation, and how to start them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Programs {
    /// The words that start `ceph-mon`; its options follow. The others likewise.
    pub monitor: Vec<String>,
    /// `ceph-osd`.
    pub storage: Vec<String>,
    /// `ceph-mds`.
    pub metadata: Vec<String>,
    /// `ceph-fuse`.
    pub mount: Vec<String>,
    /// `monmaptool`.
    pub monitor_map: Vec<String>,
    /// Lines for `[global]` that name the folders of plugins; empty for an installed Ceph.
    pub config_lines: Vec<String>,
    /// The version of `ceph-mon`, as in `16.2.15`.
    pub version: String,
    /// Where librados and libcephfs are; none if the loader finds them.
    pub library_directory: Option<PathBuf>,
    /// The program that mounts and unmounts for an ordinary user; root needs none.
    pub fusermount: Option<PathBuf>,
}

/// The release that all tests of Forebay run with.
pub const TESTED_VERSION: &str = "16.2";

/// What an installation lacks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Ceph {place} is not complete; missing: {}", names(.missing))]
pub struct Missing {
    /// Where it was looked for.
    pub place: String,
    /// Names of programs and libraries with their packages.
    pub missing: Vec<(String, String)>,
}

impl Missing {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        let mut packages: Vec<&str> =
            self.missing.iter().map(|(_, package)| package.as_str()).collect();
        packages.dedup();
        format!(
            "install the packages {} (names of Debian), or name a bundle that \"forebay engine bundle\" wrote elsewhere",
            packages.join(" ")
        )
    }
}

fn names(missing: &[(String, String)]) -> String {
    let names: Vec<&str> = missing.iter().map(|(name, _)| name.as_str()).collect();
    names.join(", ")
}

impl Programs {
    /// Finds the programs below `engine_root`, which is a bundle or a directory with `bin` and `lib`, or
    /// without it those in PATH, and asks for their version.
    ///
    /// # Errors
    /// What is missing.
    pub fn find(engine_root: Option<&Path>) -> Result<Self, Missing> {
        let place = engine_root
            .map_or_else(|| "of this system".to_owned(), |root| format!("in {}", root.display()));
        let root = match engine_root.map(files::real_path).transpose() {
            Ok(root) => root,
            Err(error) => {
                let missing = vec![(error.to_string(), "ceph".to_owned())];
                return Err(Missing { place, missing });
            }
        };
        let found = CephInstallation::find_in(root.as_deref());
        if !found.missing.is_empty() {
            return Err(Missing { place, missing: found.missing });
        }
        let words = |name: &str| found.words(name);
        let version = version(&words("ceph-mon")).ok_or_else(|| {
            let what = "ceph-mon that prints its version".to_owned();
            Missing { place, missing: vec![(what, "ceph-mon".to_owned())] }
        })?;
        Ok(Self {
            monitor: words("ceph-mon"),
            storage: words("ceph-osd"),
            metadata: words("ceph-mds"),
            mount: words("ceph-fuse"),
            monitor_map: words("monmaptool"),
            config_lines: found.config_lines(),
            version,
            library_directory: found.libraries,
            fusermount: ["fusermount3", "fusermount"]
                .iter()
                .find_map(|name| system::find_other_program(name)),
        })
    }
}

/// What was found in one place.
#[derive(Default)]
struct CephInstallation {
    programs: Vec<(&'static str, PathBuf)>,
    loader: Option<PathBuf>,
    libraries: Option<PathBuf>,
    missing: Vec<(String, String)>,
}

impl CephInstallation {
    fn find_in(root: Option<&Path>) -> Self {
        let mut found = Self::default();
        for (name, package) in PROGRAMS {
            match program(root, name) {
                Some(path) => found.programs.push((name, path)),
                None => found.missing.push((name.to_owned(), package.to_owned())),
            }
        }
        if let Some(root) = root {
            let folders = LIBRARY_FOLDERS.iter().map(|folder| root.join(folder));
            found.libraries =
                folders.into_iter().find(|folder| exists(&folder.join(monitors::LIBRARY)));
            let libraries = found.libraries.as_deref();
            found.loader = libraries.and_then(|folder| loader_in(folder).ok().flatten());
        }
        for (name, package) in LIBRARIES {
            let is_there = match &found.libraries {
                Some(folder) => exists(&folder.join(name)),
                None => Library::load(None, name, package).map(Library::keep).is_ok(),
            };
            if !is_there {
                found.missing.push((name.to_owned(), package.to_owned()));
            }
        }
        found
    }

    fn words(&self, name: &str) -> Vec<String> {
        let path = self.programs.iter().find(|(found, _)| *found == name);
        let path = path.map_or_else(|| name.to_owned(), |(_, path)| files::lossy(path));
        match (&self.loader, &self.libraries) {
            (Some(loader), Some(libraries)) => {
                vec![
                    files::lossy(loader),
                    "--library-path".to_owned(),
                    files::lossy(libraries),
                    path,
                ]
            }
            _ => vec![path],
        }
    }

    fn config_lines(&self) -> Vec<String> {
        let Some(libraries) = &self.libraries else { return Vec::new() };
        let folder = |folder: &str| files::lossy(libraries.join(folder));
        vec![
            format!("erasure code dir = {}", folder(ERASURE_CODE)),
            format!("osd class dir = {}", folder(CLASSES)),
            format!("plugin dir = {}", folder(PLUGINS)),
        ]
    }
}

/// The folders of plugins below a folder of libraries.
pub(crate) const PLUGINS: &str = "ceph";
pub(crate) const ERASURE_CODE: &str = "ceph/erasure-code";
pub(crate) const CLASSES: &str = "rados-classes";

fn exists(path: &Path) -> bool {
    files::status(path).is_ok()
}

/// The path of a program below `root`, or in PATH.
pub(crate) fn program(root: Option<&Path>, name: &str) -> Option<PathBuf> {
    match root {
        Some(root) => {
            let folders = ["bin", "sbin"].map(|folder| root.join(folder).join(name));
            folders.into_iter().find(|path| exists(path))
        }
        None => system::find_other_program(name).or_else(|| {
            let paths = SYSTEM_DIRECTORIES.map(|folder| Path::new(folder).join(name));
            paths.into_iter().find(|path| exists(path))
        }),
    }
}

/// What `ceph-mon --version` says: `ceph version 16.2.15 (...) pacific (stable)`.
fn version(words: &[String]) -> Option<String> {
    let (program, options) = words.split_first()?;
    let mut command = process::command(program);
    command.args(options).arg("--version");
    let captured = process::run_captured(command, VERSION_TIME_MAX, &|| true).ok()??;
    version_in(&captured.output).map(str::to_owned)
}

fn version_in(output: &str) -> Option<&str> {
    let version = output.trim().strip_prefix("ceph version ")?.split(' ').next()?;
    version.starts_with(|first: char| first.is_ascii_digit()).then_some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_the_third_word() {
        let output = "ceph version 16.2.15 (618f440892089921) pacific (stable)\n";
        assert_eq!(version_in(output), Some("16.2.15"));
        for wrong in ["", "ceph version", "ceph version x", "error"] {
            assert_eq!(version_in(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn missing_programs_are_named_with_their_packages() {
        let empty = tempfile::tempdir().unwrap();
        let missing = Programs::find(Some(empty.path())).unwrap_err();
        let names: Vec<&str> = missing.missing.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(&names[..5], PROGRAMS.map(|(name, _)| name));
        assert!(missing.hint().contains("ceph-mon ceph-osd"), "{}", missing.hint());
    }

    #[test]
    fn bundle_is_started_through_its_own_loader() {
        let root = Path::new("/b");
        let found = CephInstallation {
            programs: vec![("ceph-mon", root.join("bin/ceph-mon"))],
            loader: Some(root.join("lib/ld-linux-x86-64.so.2")),
            libraries: Some(root.join("lib")),
            missing: Vec::new(),
        };
        let words = ["/b/lib/ld-linux-x86-64.so.2", "--library-path", "/b/lib", "/b/bin/ceph-mon"];
        assert_eq!(found.words("ceph-mon"), words);
        assert_eq!(found.config_lines()[2], "plugin dir = /b/lib/ceph");
        let installed = CephInstallation { loader: None, libraries: None, ..found };
        assert_eq!(installed.words("ceph-mon"), ["/b/bin/ceph-mon"]);
        assert!(installed.config_lines().is_empty());
    }
}
