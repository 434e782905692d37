//! Options of how a job's own staging copies.

use clap::{Args, ValueEnum};
use forebay_mover::Verify;
use forebay_record::StagingOptions;

use crate::parsers::rate;

/// When checksums are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VerifyWhen {
    /// Never
    Off,
    /// While the source is read; after an interruption, small partial files are compared with them
    Copy,
    /// Also of the copy: it is synced, read again and compared before the rename
    End,
}

impl From<VerifyWhen> for Verify {
    fn from(when: VerifyWhen) -> Self {
        match when {
            VerifyWhen::Off => Self::Off,
            VerifyWhen::Copy => Self::Copy,
            VerifyWhen::End => Self::End,
        }
    }
}

/// How the staging of a job itself copies.
#[derive(Debug, Clone, Default, Args)]
pub struct JobStagingArguments {
    /// When staging and draining take checksums [default: copy; clean: as in the run]
    #[arg(long = "verify", alias = "stage-verify", value_name = "WHEN")]
    pub stage_verify: Option<VerifyWhen>,
    /// Limit staging to so many bytes per second, for example 500MB/s [default: no limit; clean: as in the run]
    #[arg(long = "rate", alias = "stage-rate", value_name = "SIZE", value_parser = rate)]
    pub stage_rate: Option<u64>,
    /// Stage out files with a failed write (ENOSPC, EDQUOT, EIO) as if they were complete. By default such a file
    /// does not replace another one: it is named NAME.write-failed, and the exit code is 123
    #[arg(long)]
    pub accept_failed_writes: bool,
}

impl JobStagingArguments {
    /// The same options as arguments for another process of Forebay.
    pub fn to_args(&self) -> Vec<String> {
        let when = self.stage_verify.and_then(|when| when.to_possible_value());
        let when = when.map(|when| format!("--verify={}", when.get_name()));
        let rate = self.stage_rate.map(|rate| format!("--rate={rate}"));
        let accept = self.accept_failed_writes.then(|| "--accept-failed-writes".to_owned());
        when.into_iter().chain(rate).chain(accept).collect()
    }

    /// The given options; `was` provides the others.
    pub fn options_after(&self, was: StagingOptions) -> StagingOptions {
        StagingOptions {
            verify: self.stage_verify.map_or(was.verify, Verify::from),
            bytes_per_s_max: self.stage_rate.or(was.bytes_per_s_max),
            accept_failed_writes: self.accept_failed_writes || was.accept_failed_writes,
        }
    }
}
