//! `forebay machines`: the machine files that are installed, and their names as values of `--pfs-model`.

use std::path::{Path, PathBuf};

use clap::Args;
use comfy_table::{Table, presets};
use forebay_host::files;
use forebay_terminal::{CliError, machine_directory, print_json, print_stdout};
use schemars::JsonSchema;
use serde::Serialize;

use crate::emulation;

const EXTENSION: &str = "toml";

#[derive(Debug, Args)]
pub struct MachinesArguments {
    /// Print a JSON list
    #[arg(long)]
    pub json: bool,
}

/// One machine file.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MachineFile {
    /// The name that `--pfs-model` takes.
    name: String,
    /// How its figures relate to the machine they were taken from.
    scale: String,
    /// The path of the machine file.
    #[serde(serialize_with = "forebay_host::files::lossy_path")]
    #[schemars(with = "PathBuf")]
    file: PathBuf,
}

/// The file that a value of `--pfs-model` means: itself, or the installed one of that name.
pub fn resolve(named: &Path) -> PathBuf {
    let is_name = named.components().count() == 1 && files::status(named).is_err();
    let installed = machine_directory().filter(|_| is_name);
    let installed = installed.map(|directory| toml_file(&directory, named));
    installed.filter(|file| files::status(file).is_ok()).unwrap_or_else(|| named.to_owned())
}

/// The file of a name, which can have dots and may end in `.toml`, in a directory of machine files or profiles.
pub fn toml_file(directory: &Path, name: impl AsRef<Path>) -> PathBuf {
    let mut file = directory.join(name.as_ref());
    if file.extension().is_none_or(|end| end != EXTENSION) {
        file.as_mut_os_string().push(".toml");
    }
    file
}

pub fn machines(arguments: &MachinesArguments) -> i32 {
    let found = match installed() {
        Ok(found) => found,
        Err(error) => return error.print(),
    };
    if arguments.json {
        return print_json(&found, 0);
    }
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(["machine", "figures", "file"]);
    for one in &found {
        table.add_row([one.name.clone(), one.scale.clone(), one.file.display().to_string()]);
    }
    print_stdout(&table.trim_fmt(), 0)
}

fn installed() -> Result<Vec<MachineFile>, CliError> {
    let Some(directory) = machine_directory() else {
        let error = CliError::new("no machine files are installed");
        return Err(error.with_hint("run make build, or make install"));
    };
    let mut names = files::names_in(&directory)?;
    names.sort();
    let paths = names.iter().map(|name| directory.join(name));
    let paths = paths.filter(|path| path.extension().is_some_and(|found| found == EXTENSION));
    let read = |file: PathBuf| {
        let model = emulation::installed_model(&file)?;
        Ok(model.map(|model| MachineFile { name: model.name, scale: model.scale, file }))
    };
    paths.filter_map(|file| read(file).transpose()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_with_a_dot_keeps_its_end() {
        for name in ["a.b", "a.b.toml"] {
            assert_eq!(toml_file(Path::new("/m"), name), Path::new("/m/a.b.toml"));
        }
    }
}
