//! Runs a command under the emulated parallel file system.
//!
//! The command restarts itself under the preload library. Its own accesses to emulated directories,
//! including staging, are then delayed like the job's.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use forebay_engine::{MOUNTED_BELOW, PathMap, StoreOptions};
use forebay_host::process::{Identity, command, replace_by};
use forebay_host::state::directories;
use forebay_host::{clock, files, system, users};
use forebay_pfsmodel::{Counters, Model, ModelError, STATE_ENV, State};
use forebay_record::{RecordFile, Records};
use forebay_recovery::is_unrecorded;
use forebay_store::{SHARED_MEMORY, Store};
use forebay_terminal::{CliError, preload_library, print_warning};
use schemars::JsonSchema;
use serde::Serialize;

use crate::machines;
use crate::options::emulation::EmulationArguments;

/// A state's name continues with the process id, its PID namespace, the state directory and the
/// time in milliseconds. Containers that share /dev/shm have other process ids, and jobs of other
/// state directories have other records.
const STATE_NAME: &str = "forebay-pfs-";

/// The result of the emulation, for `--json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Emulated {
    /// Name of the model.
    pub model: String,
    /// The delayed operations and their delays.
    pub counters: Counters,
}

/// The emulation of this process. Dropping it removes the state.
pub struct Emulation {
    model: Model,
    state: State,
    path: PathBuf,
}

impl Emulation {
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The path of the state, which is removed with this process.
    pub fn state_path(&self) -> &Path {
        &self.path
    }

    /// Is a directory on the emulated file system?
    pub fn covers(&self, directory: &Path) -> bool {
        self.state.covers(directory.as_os_str().as_bytes())
    }

    /// The burst buffer itself must not be slow.
    pub fn check_store(&self, store_options: &StoreOptions) -> Result<(), CliError> {
        let chosen = Store::choose(store_options.store, store_options.site_store);
        let (store, _) = chosen.map_err(|error| CliError::new(error.to_string()))?;
        let place = match store {
            Store::Directory { path, .. } => path,
            Store::Memory { .. } if store_options.no_view.is_some() => PathBuf::from(SHARED_MEMORY),
            Store::Memory { .. } => PathBuf::from(MOUNTED_BELOW),
        };
        if !self.covers(&place) {
            return Ok(());
        }
        let hint =
            "choose a store elsewhere with --store, or name what is emulated with --pfs-root";
        let message = format!("the store {} is on the emulated file system", place.display());
        Err(CliError::new(message).with_hint(hint))
    }

    pub fn report(&self) -> Emulated {
        Emulated { model: self.model.name.clone(), counters: self.state.counters() }
    }
}

impl Emulated {
    /// The JSON value for `--json`.
    pub fn as_value(&self) -> serde_json::Value {
        serde_json::json!(self)
    }
}

impl Drop for Emulation {
    fn drop(&mut self) {
        if let Err(error) = files::remove_file(&self.path) {
            print_warning(&error.to_string());
        }
    }
}

/// Enters the requested emulation, which includes the mapped paths of emulated directories.
/// Restarts the process; only the restarted process gets an emulation.
pub fn activate(
    arguments: &EmulationArguments,
    maps: &[PathMap],
) -> Result<Option<Emulation>, CliError> {
    let Some(file) = arguments.model()? else {
        return Ok(None);
    };
    let model = model(file)?;
    // The process id stays the same across exec.
    let scope = scope()?;
    let ours = format!("{STATE_NAME}{}-{scope}-", std::process::id());
    let given = std::env::var_os(STATE_ENV).map(PathBuf::from);
    let is_ours = |path: &PathBuf| path.to_string_lossy().contains(&ours);
    if let Some(path) = given.filter(is_ours) {
        let state = State::attach(&path).map_err(|error| CliError::new(error.to_string()))?;
        let emulation = Emulation { model, state, path };
        // If the library is not loaded in this process, the job does not load it either.
        if emulation.state.counters().attached == 0 {
            let hint = "its path must hold neither blanks nor colons; see what ld.so said above";
            let message = "the preload library was not loaded, so nothing would be emulated";
            return Err(CliError::new(message).with_hint(hint));
        }
        return Ok(Some(emulation));
    }
    let path = Path::new(SHARED_MEMORY).join(format!("{ours}{}", clock::unix_milliseconds()));
    let library = preload_library()?;
    let roots = roots(&arguments.pfs_root)?;
    let shown = mapped_roots(&roots, maps)?;
    State::create_showing(&path, &model, &roots, &shown)
        .map_err(|error| CliError::new(error.to_string()))?;
    let failure = reexec(&library, &path).unwrap_or_else(|error| error);
    files::remove_file(&path)?;
    Err(failure.into())
}

/// Reads an installed machine file. None: it is for `forebay plan` alone.
pub fn installed_model(file: &Path) -> Result<Option<Model>, CliError> {
    let text = files::read_to_string(file).map_err(|error| CliError::new(error.to_string()))?;
    match Model::from_toml(&text, &file.to_string_lossy()) {
        Err(ModelError::NotEmulated { .. }) => Ok(None),
        Ok(model) => Ok(Some(model)),
        Err(error) => Err(not_readable(&error)),
    }
}

fn not_readable(error: &ModelError) -> CliError {
    let hint = match error {
        ModelError::NotEmulated { .. } => "forebay machines lists those that can be emulated",
        _ => "docs/reference/machine-files.md describes the file",
    };
    CliError::new(error.to_string()).with_hint(hint)
}

/// Reads the model of a parallel file system from a machine file.
pub fn model(file: &Path) -> Result<Model, CliError> {
    let file = &machines::resolve(file);
    let text = files::read_to_string(file).map_err(|error| {
        let hint =
            "forebay machines lists what is installed; a file of your own is named with its path";
        CliError::new(error.to_string()).with_hint(hint)
    })?;
    Model::from_toml(&text, &file.to_string_lossy()).map_err(|error| not_readable(&error))
}

/// Removes states of this user and state directory whose process was killed before it recorded its
/// job or after it removed the record. `forebay clean` removes the others with their jobs.
///
/// # Errors
/// If a state cannot be removed.
pub fn remove_abandoned(records: &Records) -> forebay_host::Result<()> {
    let directory = Path::new(SHARED_MEMORY);
    let scope = scope()?;
    for name in files::names_in(directory).unwrap_or_default() {
        let path = directory.join(&name);
        let named = name.to_str().and_then(|name| name.strip_prefix(STATE_NAME));
        let Some((pid, rest)) = named.and_then(|name| name.split_once('-')) else {
            continue;
        };
        let made = rest.strip_prefix(&scope).and_then(|rest| rest.strip_prefix('-'));
        let Some(made) = made else {
            continue;
        };
        let alive = pid.parse().is_ok_and(|pid| Identity::of(pid).is_ok());
        let job = |job: &RecordFile| job.record.emulation.as_ref() == Some(&path);
        let ours = files::status_of_name(&path).is_ok_and(|s| s.owner == users::user_id());
        if ours && !alive && is_unrecorded(made, records) && !records.found.iter().any(job) {
            files::remove_file(&path)?;
        }
    }
    Ok(())
}

/// The PID namespace of this process, and a hash of the state directory's path.
fn scope() -> forebay_host::Result<String> {
    let namespace = system::pid_namespace()?;
    let namespace: String = namespace.chars().filter(char::is_ascii_digit).collect();
    let directory = directories().into_iter().next().unwrap_or_default();
    let hash = blake3::hash(directory.as_os_str().as_bytes()).to_hex();
    Ok(format!("{namespace}-{}", &hash[..8]))
}

fn reexec(library: &Path, state: &Path) -> Result<forebay_host::Error, forebay_host::Error> {
    // After other libraries, so that a profiler sees the emulated time.
    let mut preload = std::env::var_os("LD_PRELOAD").unwrap_or_default();
    if !preload.is_empty() {
        preload.push(":");
    }
    preload.push(library);
    let mut same = command(system::this_program()?);
    same.args(std::env::args_os().skip(1));
    same.env("LD_PRELOAD", preload).env(STATE_ENV, state);
    Ok(replace_by(same))
}

fn roots(given: &[PathBuf]) -> Result<Vec<PathBuf>, forebay_host::Error> {
    if given.is_empty() {
        return Ok(vec![files::real_path(Path::new("."))?]);
    }
    given.iter().map(|root| files::real_path(root)).collect()
}

/// The paths under which maps show the roots or parts of them.
fn mapped_roots(roots: &[PathBuf], maps: &[PathMap]) -> Result<Vec<PathBuf>, forebay_host::Error> {
    let mut shown = Vec::new();
    for map in maps {
        let (at, from) = (files::final_path(&map.path)?, files::final_path(&map.directory)?);
        for root in roots {
            if from.starts_with(root) {
                shown.push(at.clone());
            } else if let Ok(rest) = root.strip_prefix(&from) {
                shown.push(at.join(rest));
            }
        }
    }
    Ok(shown)
}
