//! Options that choose an emulated parallel file system.

use std::path::{Path, PathBuf};

use clap::Args;
use forebay_host::exit_codes::USAGE;
use forebay_terminal::CliError;

#[derive(Debug, Args)]
pub struct EmulationArguments {
    /// Emulate a parallel file system: a name from `forebay machines`, or a machine file
    #[arg(long, value_name = "NAME")]
    pub pfs_model: Option<PathBuf>,
    /// Directory on the emulated file system; may be repeated [default: the current directory]
    #[arg(long, value_name = "DIR")]
    pub pfs_root: Vec<PathBuf>,
}

/// In place of a model: no emulation, whatever the configuration says.
pub const NO_MODEL: &str = "none";

impl EmulationArguments {
    /// The model, a name or a file.
    ///
    /// # Errors
    /// If there is none, but directories that it should emulate.
    pub fn model(&self) -> Result<Option<&Path>, CliError> {
        let model = self.pfs_model.as_deref().filter(|model| *model != Path::new(NO_MODEL));
        if model.is_none() && !self.pfs_root.is_empty() {
            let error = CliError::new("--pfs-root needs a model").with_exit_code(USAGE);
            return Err(error.with_hint("add --pfs-model NAME; forebay machines lists the names"));
        }
        Ok(model)
    }
}
