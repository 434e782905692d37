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
    /// Of what is read; small files that a killed staging left half done are compared with them, what was written just now is not
    Copy,
    /// Also of what was written: it is synced and read again before it gets its name, and compared
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
#[derive(Debug, Default, Args)]
pub struct JobStagingArguments {
    /// When checksums of what is staged in and out, or drained, are taken [default: copy; of clean: as the job was run]
    #[arg(long, value_name = "WHEN")]
    pub stage_verify: Option<VerifyWhen>,
    /// Stage no more than so many bytes in a second, for example 500MB/s [default of clean: as the job was run]
    #[arg(long, value_name = "SIZE", value_parser = rate)]
    pub stage_rate: Option<u64>,
}

impl JobStagingArguments {
    /// The same options as arguments for another process of Forebay.
    pub fn to_args(&self) -> Vec<String> {
        let when = self.stage_verify.and_then(|when| when.to_possible_value());
        let when = when.map(|when| format!("--stage-verify={}", when.get_name()));
        let rate = self.stage_rate.map(|rate| format!("--stage-rate={rate}"));
        when.into_iter().chain(rate).collect()
    }

    /// The given options; `was` provides the others.
    pub fn options_after(&self, was: StagingOptions) -> StagingOptions {
        StagingOptions {
            verify: self.stage_verify.map_or(was.verify, Verify::from),
            bytes_per_s_max: self.stage_rate.or(was.bytes_per_s_max),
        }
    }
}
