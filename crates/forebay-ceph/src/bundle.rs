//! Copies an installed Ceph into one directory that runs without installation: programs, the libraries that
//! the loader names for them, plugins, licences, and a list of all.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use forebay_host::files;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::dependencies::{libraries_of, packages_of, sources_of};
use crate::programs::{CLASSES, LIBRARIES, Missing, PLUGINS, PROGRAMS, Programs, program};

/// The list in the bundle.
pub const MANIFEST: &str = "manifest.json";
/// The library that is next to the plugins in every installation.
const COMMON: &str = "libceph-common.so.2";
/// The folders of plugins that the daemons of an allocation load.
const PLUGIN_FOLDERS: [&str; 3] = ["erasure-code", "compressor", "crypto"];
/// Where Debian keeps the licence of each package.
const LICENCES: &str = "/usr/share/doc";
/// Where Debian keeps the texts of licences to which those of packages refer.
const COMMON_LICENCES: &str = "/usr/share/common-licenses";

/// Why there is no bundle.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// The installed Ceph is not complete.
    #[error(transparent)]
    Missing(#[from] Missing),
    /// The loader does not find a library, or a library has no known place.
    #[error("cannot bundle Ceph: {0}")]
    Library(String),
    /// What is to be bundled is a bundle.
    #[error("{} is a bundle already", files::printable(.0))]
    IsBundle(PathBuf),
    /// The target exists.
    #[error("{} exists already", files::printable(.0))]
    Exists(PathBuf),
    /// A stop was requested.
    #[error("the bundle was not completed")]
    Stopped,
    /// The operating system failed.
    #[error(transparent)]
    Host(#[from] forebay_host::Error),
}

impl BundleError {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Missing(missing) => Some(missing.hint()),
            Self::Library(_) => Some("install Ceph's packages completely".to_owned()),
            Self::IsBundle(_) => Some("copy the directory as it is".to_owned()),
            Self::Exists(_) => Some("remove it, or name another --output".to_owned()),
            Self::Stopped => None,
            Self::Host(error) => error.hint().map(str::to_owned),
        }
    }
}

/// A file of a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BundledFile {
    /// Its path below the bundle.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// Its checksum, for `sha256sum --check`.
    pub sha256: String,
}

/// What a bundle has, in `manifest.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Manifest {
    /// The engine.
    pub engine: String,
    /// Its version.
    pub version: String,
    /// The architecture of the programs.
    pub architecture: String,
    /// The packages that the files are from; their licences are in `licences`.
    pub packages: Vec<String>,
    /// The source package of each with its version. Who passes the bundle on must offer them.
    pub sources: Vec<String>,
    /// All other files, sorted.
    pub files: Vec<BundledFile>,
}

/// How far the copy is; returns false to stop it.
pub type Progress<'a> = &'a dyn Fn(u64, u64) -> bool;

/// The files that a bundle will have.
#[derive(Debug)]
pub struct Bundle {
    version: String,
    /// The path in the bundle and the source of each file.
    sources: BTreeMap<String, PathBuf>,
    packages: Vec<String>,
}

impl Bundle {
    /// Looks for all files of the Ceph below `engine_root`, or of the system.
    ///
    /// # Errors
    /// If something is missing. It names it.
    pub fn plan(engine_root: Option<&Path>) -> Result<Self, BundleError> {
        let programs = Programs::find(engine_root)?;
        if let Some(root) = engine_root.filter(|_| programs.monitor.len() > 1) {
            return Err(BundleError::IsBundle(root.to_owned()));
        }
        let mut bundle =
            Self { version: programs.version, sources: BTreeMap::new(), packages: Vec::new() };
        for (name, _) in PROGRAMS {
            let path = program(engine_root, name)
                .ok_or_else(|| BundleError::Library(format!("{name} has disappeared")))?;
            bundle.add_with_libraries(&format!("bin/{name}"), &path)?;
        }
        // Plugins and the client's libraries are near the library that all programs share.
        let common = bundle.sources.get(&format!("lib/{COMMON}")).cloned();
        let plugins = common
            .as_deref()
            .map(files::parent_of)
            .map(Path::to_owned)
            .ok_or_else(|| BundleError::Library(format!("no program uses {COMMON}")))?;
        let near = match programs.library_directory {
            Some(directory) => directory,
            None => files::parent_of(&plugins).to_owned(),
        };
        for (name, _) in LIBRARIES {
            bundle.add_with_libraries(&format!("lib/{name}"), &near.join(name))?;
        }
        let plugins =
            if files::status(&near.join(PLUGINS)).is_ok() { near.join(PLUGINS) } else { plugins };
        for folder in PLUGIN_FOLDERS {
            bundle.add_folder(&format!("lib/{PLUGINS}/{folder}"), &plugins.join(folder))?;
        }
        bundle.add_folder(&format!("lib/{CLASSES}"), &near.join(CLASSES))?;
        bundle.add_licences();
        Ok(bundle)
    }

    /// The name of the bundle's directory: `ceph-16.2.15-x86_64`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("ceph-{}-{}", self.version, std::env::consts::ARCH)
    }

    /// The size of all files.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let sizes = self.sources.values().filter_map(|path| files::status(path).ok());
        sizes.map(|status| status.size_bytes).sum()
    }

    /// Whether the licences of the packages are in it.
    #[must_use]
    pub fn has_licences(&self) -> bool {
        self.sources.keys().any(|path| path.starts_with("licences/"))
    }

    fn add_with_libraries(&mut self, at: &str, path: &Path) -> Result<(), BundleError> {
        self.sources.insert(at.to_owned(), files::real_path(path)?);
        for (name, found) in libraries_of(path).map_err(BundleError::Library)? {
            // The place that the loader names, not what a link leads to: plugins are next to it.
            self.sources.entry(format!("lib/{name}")).or_insert(found);
        }
        Ok(())
    }

    /// Adds the plugins of a folder under all their names.
    fn add_folder(&mut self, at: &str, folder: &Path) -> Result<(), BundleError> {
        for name in files::names_in(folder)? {
            let path = folder.join(&name);
            let name = name.to_string_lossy().into_owned();
            if name.contains(".so") && !has_shorter_name(&name, folder) {
                self.add_with_libraries(&format!("{at}/{name}"), &path)?;
            }
        }
        Ok(())
    }

    fn add_licences(&mut self) {
        let paths: Vec<PathBuf> = self.sources.values().cloned().collect();
        for package in packages_of(&paths) {
            let licence = Path::new(LICENCES).join(&package).join("copyright");
            if let Ok(licence) = files::real_path(&licence) {
                self.sources.insert(format!("licences/{package}"), licence);
                self.packages.push(package);
            }
        }
        let common = Path::new(COMMON_LICENCES);
        for name in files::names_in(common).unwrap_or_default() {
            if let Ok(text) = files::real_path(&common.join(&name)) {
                let at = format!("licences/common-licenses/{}", name.to_string_lossy());
                self.sources.insert(at, text);
            }
        }
    }

    /// Writes the bundle to a new directory, whose parent exists. Leaves nothing if it fails or is stopped.
    ///
    /// # Errors
    /// If the target exists, or a file cannot be copied.
    pub fn write(&self, target: &Path, progress: Progress<'_>) -> Result<Manifest, BundleError> {
        match files::make_directory(target, 0o755) {
            Err(error) if error.already_exists() => {
                return Err(BundleError::Exists(target.to_owned()));
            }
            made => made?,
        }
        let written = self.write_files(target, progress);
        if written.is_err() {
            files::remove_tree(target)?;
        }
        written
    }

    fn write_files(&self, target: &Path, progress: Progress<'_>) -> Result<Manifest, BundleError> {
        let total = self.bytes();
        let mut written = Vec::new();
        let mut copied_bytes = 0;
        for (at, source) in &self.sources {
            if !progress(copied_bytes, total) {
                return Err(BundleError::Stopped);
            }
            let path = target.join(at);
            files::make_directories(files::parent_of(&path), 0o755)?;
            let content = files::read_bytes(source)?;
            // Libraries need no permission to execute, but the loader does: it is started.
            let is_program = at.starts_with("bin/") || at.starts_with("lib/ld-");
            let mut file = files::make_file(&path, if is_program { 0o755 } else { 0o644 })?;
            files::with_path(file.write_all(&content), "write", &path)?;
            files::with_path(file.sync_all(), "write", &path)?;
            copied_bytes += content.len() as u64;
            written.push(BundledFile {
                path: at.clone(),
                bytes: content.len() as u64,
                sha256: format!("{:x}", Sha256::digest(&content)),
            });
        }
        let manifest = Manifest {
            engine: "ceph".to_owned(),
            version: self.version.clone(),
            architecture: std::env::consts::ARCH.to_owned(),
            packages: self.packages.clone(),
            sources: sources_of(&self.packages),
            files: written,
        };
        let path = target.join(MANIFEST);
        files::write_json(&path, &path.with_extension("fresh"), &manifest)?;
        Ok(manifest)
    }
}

/// Whether the folder has the same library under a shorter name (`x.so` of `x.so.2.0.0`), under which Ceph
/// loads it.
fn has_shorter_name(name: &str, folder: &Path) -> bool {
    let Some((stem, version)) = name.split_once(".so.") else { return false };
    !version.is_empty() && files::status(&folder.join(format!("{stem}.so"))).is_ok()
}
