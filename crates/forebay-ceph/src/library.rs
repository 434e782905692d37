//! Loads a C library at run time.

use std::path::{Path, PathBuf};

use forebay_host::files;
use libloading::os::unix::{Library as Loaded, RTLD_LOCAL, RTLD_NOW};

use crate::Error;

/// The loader that a bundle brings in the directory of its libraries.
///
/// # Errors
/// If the directory cannot be read.
pub fn loader_in(directory: &Path) -> Result<Option<PathBuf>, Error> {
    let names = files::names_in(directory)?;
    let loader = names.iter().find(|name| name.to_string_lossy().starts_with("ld-linux"));
    Ok(loader.map(|name| directory.join(name)))
}

/// A loaded library. It stays loaded until the process ends: threads of the library may outlive its last user.
pub(crate) struct Library {
    loaded: Loaded,
    name: String,
    package: &'static str,
}

impl Library {
    /// Loads `name` of the Debian package `package`, from `directory` or where the loader looks.
    pub(crate) fn load(
        directory: Option<&Path>,
        name: &str,
        package: &'static str,
    ) -> Result<Self, Error> {
        let path = directory.map_or_else(|| name.into(), |directory| directory.join(name));
        let shown = path.display().to_string();
        // SAFETY: the libraries' initialisers only set up their own state; Ceph's own programs load
        // them in the same way.
        let loaded = unsafe { Loaded::open(Some(&path), RTLD_NOW | RTLD_LOCAL) };
        let loaded = loaded.map_err(|error| Error::Library {
            library: shown.clone(),
            package,
            reason: reason(&error),
        })?;
        Ok(Self { loaded, name: shown, package })
    }

    /// The function `name`.
    ///
    /// # Safety
    /// `F` must be the type of a function pointer with the signature that the library's header gives.
    pub(crate) unsafe fn function<F: Copy>(&self, name: &str) -> Result<F, Error> {
        // SAFETY: the caller vouches for the type. The library is never unloaded (`Drop` below).
        let found = unsafe { self.loaded.get::<F>(name.as_bytes()) };
        found.map(|symbol| *symbol).map_err(|error| Error::Library {
            library: self.name.clone(),
            package: self.package,
            reason: format!("it has no function {name}: {}", reason(&error)),
        })
    }

    /// Keeps the library loaded for ever.
    pub(crate) fn keep(self) {
        std::mem::forget(self.loaded);
    }
}

/// What the loader said, without what libloading adds.
fn reason(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}
