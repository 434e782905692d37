//! Where the configuration of this process comes from.

use std::path::{Path, PathBuf};

use forebay_host::files;

/// The site file.
pub(crate) const SITE_FILE: &str = "/etc/forebay.toml";
/// Names another site file.
pub(crate) const SITE_VARIABLE: &str = "FOREBAY_SITE_CONFIG";
/// Name of a project file.
pub(crate) const PROJECT_FILE: &str = "forebay.toml";

/// Looks up an environment variable.
pub(crate) type Lookup<'a> = Box<dyn Fn(&str) -> Option<String> + 'a>;

/// The paths of the files and the variables. A file may be missing.
pub struct Sources<'a> {
    /// The site file.
    pub site: PathBuf,
    /// True if a variable names the site file: then the user may own it.
    pub is_site_named: bool,
    /// The user file.
    pub user: Option<PathBuf>,
    /// The project file.
    pub project: Option<PathBuf>,
    /// Looks up environment variables.
    pub variable: Lookup<'a>,
}

impl Sources<'_> {
    /// The sources of this process. The project file is in the directory of `script`; no other directory is searched.
    #[must_use]
    pub fn of_process(script: Option<&Path>) -> Self {
        let absolute = |name: &str| {
            let path = std::env::var_os(name).map(PathBuf::from);
            path.filter(|path| path.is_absolute())
        };
        let named = std::env::var_os(SITE_VARIABLE).filter(|path| !path.is_empty());
        let home = || Some(absolute("HOME")?.join(".config"));
        let directory = absolute("XDG_CONFIG_HOME").or_else(home);
        let project = script.map(|script| files::parent_of(script).join(PROJECT_FILE));
        Self {
            is_site_named: named.is_some(),
            site: named.map_or_else(|| SITE_FILE.into(), PathBuf::from),
            user: directory.map(|directory| directory.join("forebay/config.toml")),
            project: project.map(|path| std::path::absolute(&path).unwrap_or(path)),
            variable: Box::new(|name| {
                let value = std::env::var_os(name).filter(|value| !value.is_empty());
                value.map(|value| value.to_string_lossy().into_owned())
            }),
        }
    }
}
