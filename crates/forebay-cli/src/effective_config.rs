//! The configuration that is in effect in this process.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use forebay_config::{Configuration, SETTINGS, Scope, Setting, Source};
use forebay_host::files;
use forebay_terminal::print_status;

static CURRENT: OnceLock<Configuration> = OnceLock::new();
/// The store without the option: a persistent allocation that `--store memory` cannot hold goes there.
static CONFIGURED_STORE: OnceLock<PathBuf> = OnceLock::new();

/// Keeps the values of this process. The first ones stay.
pub fn keep(configuration: Configuration) {
    CURRENT.get_or_init(|| configuration);
}

/// Keeps the configured store.
pub fn keep_store(store: &Path) {
    CONFIGURED_STORE.get_or_init(|| store.to_owned());
}

/// The values of this process, those of the command line included.
pub fn current() -> &'static Configuration {
    CURRENT.get_or_init(Configuration::default)
}

/// The configured store, also if the command line names another one.
pub fn store() -> Option<PathBuf> {
    CONFIGURED_STORE.get().cloned()
}

/// True if the value of the key comes from a file.
pub fn is_of_file(key: &str) -> bool {
    current().get(key).is_some_and(|value| matches!(value.source, Source::File { .. }))
}

/// True if the value of the key comes from the command line.
pub fn is_of_option(key: &str) -> bool {
    current().get(key).is_some_and(|value| matches!(value.source, Source::Option(_)))
}

/// Values for the environment of the Python side: those that no project file can set, so that their order stays.
pub fn variables_of_python() -> Vec<(String, String)> {
    variables(|setting| setting.scope == Scope::User)
}

/// Values for the environment of jobs: those that have no option.
pub fn variables_of_jobs() -> Vec<(String, String)> {
    variables(|setting| !setting.has_option)
}

fn variables(is_wanted: impl Fn(&Setting) -> bool) -> Vec<(String, String)> {
    let wanted = SETTINGS.iter().filter(|setting| is_wanted(setting));
    let word = |setting: &Setting| current().get(setting.key)?.words.first().cloned();
    wanted.filter_map(|setting| Some((setting.variable(), word(setting)?))).collect()
}

/// Prints the files in effect; with `explain`, each value and its source.
pub fn print_used(explain: bool) {
    let used: Vec<_> = current().files_in_effect().into_iter().map(files::printable).collect();
    if !used.is_empty() {
        print_status(&format!("settings from {}", used.join(", ")));
    }
    let values =
        SETTINGS.iter().filter_map(|setting| Some((setting.key, current().get(setting.key)?)));
    for (key, value) in values.filter(|_| explain) {
        print_status(&format!("setting {key} = {} ({})", value.words.join(" "), value.source));
    }
}
