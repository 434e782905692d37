//! Options that describe a job and its burst buffer.
//! Assumes that `to_args` has each option of `SpaceArguments`: `forebay compare` hands them on to its runs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use forebay_engine::{PathMap, StoreOptions};
use forebay_host::files;

use super::emulation::EmulationArguments;
use super::nodes::NodeArguments;
use crate::parsers::{map, size, time};

/// What a job is, and where its files are.
#[derive(Debug, Args)]
pub struct JobArguments {
    /// The job script
    pub script: PathBuf,
    /// Arguments of the script, after --
    #[arg(last = true, value_name = "ARGUMENT")]
    pub arguments: Vec<OsString>,
    /// Run without a burst buffer: $DW_JOB_STRIPED and $DW_JOB_PRIVATE are directories on the file system
    #[arg(long, conflicts_with_all = ["nodes", "hostfile"])]
    pub no_burst_buffer: bool,
    /// Explain each decision
    #[arg(long)]
    pub explain: bool,
    /// Time limit in place of the script's: minutes, h:m:s or d-h:m:s; 0 is no limit
    #[arg(short, long, value_name = "TIME", value_parser = time)]
    pub time: Option<Duration>,
    /// Burst buffer for a script without directives, as for sbatch: capacity=1G access=striped type=scratch
    #[arg(long, value_name = "TEXT")]
    pub bb: Option<String>,
    /// File with #DW lines for a script without directives
    #[arg(long, value_name = "FILE", conflicts_with = "bb")]
    pub bbf: Option<PathBuf>,
    /// Let the job see the directory DIR as PATH, which need not exist; may be repeated
    #[arg(long, value_name = "PATH=DIR", value_parser = map)]
    pub map: Vec<PathMap>,
    #[command(flatten, next_help_heading = "Storage")]
    pub space: SpaceArguments,
    #[command(flatten, next_help_heading = "Several nodes")]
    pub nodes: NodeArguments,
    #[command(flatten, next_help_heading = "Emulation")]
    pub emulation: EmulationArguments,
}

#[derive(Debug, Args)]
pub struct SpaceArguments {
    /// Storage for allocations: a directory, memory, or memory:huge (huge pages, for few large files)
    /// [default: the setting store, else local NVMe, else memory]
    #[arg(long, value_name = "STORE")]
    pub store: Option<PathBuf>,
    /// Capacity in place of the script's, for example 4GiB
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub capacity: Option<u64>,
    /// Do not start with less capacity than requested
    #[arg(long)]
    pub strict_capacity: bool,
    /// Parent of the directories of --no-burst-buffer [default: where the script stages out to]
    #[arg(long, value_name = "DIR")]
    pub pfs_dir: Option<PathBuf>,
    /// Do not use user namespaces: memory is then a directory in /dev/shm, and the capacity is not enforced
    #[arg(long)]
    pub no_userns: bool,
}

impl JobArguments {
    /// The burst buffer that `--bb` or `--bbf` requests.
    pub fn burst_buffer(&self) -> Result<Option<String>, forebay_host::Error> {
        match &self.bbf {
            Some(file) => files::read_to_string(file).map(Some),
            None => Ok(self.bb.clone()),
        }
    }
}

impl SpaceArguments {
    /// The options of stores and allocations; `maps` may be empty.
    pub fn store_options<'a>(
        &'a self,
        site_store: Option<&'a Path>,
        maps: &'a [PathMap],
    ) -> StoreOptions<'a> {
        StoreOptions {
            store: self.store.as_deref(),
            site_store,
            pfs_directory: None,
            capacity_bytes: self.capacity,
            strict_capacity: self.strict_capacity,
            no_view: self.no_userns.then_some("--no-userns"),
            maps,
        }
    }

    /// The same options as arguments for another process of Forebay.
    pub fn to_args(&self) -> Vec<OsString> {
        let mut args = Vec::new();
        if let Some(store) = &self.store {
            args.extend(["--store".into(), store.into()]);
        }
        if let Some(directory) = &self.pfs_dir {
            args.extend(["--pfs-dir".into(), directory.into()]);
        }
        if let Some(bytes) = self.capacity {
            args.extend(["--capacity".into(), bytes.to_string().into()]);
        }
        let flags = [("--strict-capacity", self.strict_capacity), ("--no-userns", self.no_userns)];
        args.extend(flags.map(|(flag, value)| format!("{flag}={value}").into()));
        args
    }
}
