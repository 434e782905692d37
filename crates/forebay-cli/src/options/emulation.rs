//! Options that choose an emulated parallel file system.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub struct EmulationArguments {
    /// Emulate a parallel file system: a name from `forebay machines`, or a machine file
    #[arg(long, value_name = "NAME")]
    pub pfs_model: Option<PathBuf>,
    /// Directory on the emulated file system; may be repeated [default: the current directory]
    #[arg(long, value_name = "DIR", requires = "pfs_model")]
    pub pfs_root: Vec<PathBuf>,
}
