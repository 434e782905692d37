//! The measurements of a comparison, from the JSON of `forebay run` and the output of the application.
//! Assumes that lines of JSON in that output are results, and adds them up. Their times count before the record's.

use std::path::PathBuf;

use forebay_profile::summarize;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where the job runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Variant {
    /// On the file system.
    FileSystem,
    /// Through the burst buffer.
    BurstBuffer,
}

impl Variant {
    pub fn name(self) -> &'static str {
        match self {
            Self::FileSystem => "file system",
            Self::BurstBuffer => "burst buffer",
        }
    }
}

/// The measurements of one run, in seconds and bytes.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Measured {
    /// Run time of the script.
    pub job_s: f64,
    /// I/O time that the application sees.
    pub io_s: Option<f64>,
    /// The source of `io_s`.
    pub io_from: Option<IoTimeSource>,
    /// Time from the start of the script until its data are synced on the file system.
    pub safe_s: f64,
    /// Time of the stage-out, part of `safe_s`.
    pub stage_out_s: f64,
    /// Bytes that the application reports, else bytes of the stage-out.
    pub bytes: Option<u64>,
    /// Bytes that the emulation counted as written to the emulated file system.
    pub emulated_bytes: Option<u64>,
    /// Those of them that Forebay itself wrote: the stage-in and the stage-out of a run without burst buffer.
    #[serde(skip)]
    pub staged_bytes: u64,
    /// The record of its I/O, of the last run of each way.
    #[serde(serialize_with = "forebay_host::files::lossy_option")]
    #[schemars(with = "Option<PathBuf>")]
    pub profile: Option<PathBuf>,
}

/// The source of the I/O time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IoTimeSource {
    /// The application, in a line of JSON.
    Program,
    /// The profile of its calls.
    Record,
}

/// All runs of one variant.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Row {
    /// How the job ran.
    pub way: Variant,
    /// Its runs.
    pub runs: Vec<Measured>,
}

/// All runs on one file system.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Block {
    /// Description of the file system.
    pub label: String,
    /// True if the file system is emulated.
    pub emulated: bool,
    /// Without and with the burst buffer.
    pub rows: [Row; 2],
    /// True if all runs left the same files at the destinations; none if a run wrote no files there.
    pub same_output: Option<bool>,
    /// Number of these files.
    pub output_files: usize,
    /// Their bytes.
    pub output_bytes: u64,
}

/// The used members of `forebay run --json`.
#[derive(Debug, Deserialize)]
pub struct RunOutput {
    pub job_id: String,
    job_s: f64,
    sync_s: Option<f64>,
    stage_in: Option<Staging>,
    stage_out: Option<Staging>,
    emulated: Option<Emulated>,
    profile: Option<PathBuf>,
}

#[derive(Debug, Deserialize)]
struct Staging {
    bytes: u64,
    copied_bytes: u64,
    seconds: f64,
}

#[derive(Debug, Deserialize)]
struct Emulated {
    counters: Counters,
}

#[derive(Debug, Deserialize)]
struct Counters {
    bytes_written: u64,
}

/// The used members of the application's line of JSON.
#[derive(Debug, Deserialize)]
struct ResultLine {
    io_s: Option<f64>,
    bytes: Option<u64>,
}

impl Measured {
    /// From the account of `forebay run --json` and what the job said on its standard output. Lines
    /// that are no results are passed over; several results are added up.
    pub fn of(account: &RunOutput, output: &str, way: Variant) -> Self {
        let results: Vec<ResultLine> = output
            .lines()
            .filter(|line| line.starts_with('{'))
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        let stage_out_s = account.stage_out.as_ref().map_or(0.0, |staged| staged.seconds);
        let until_safe_s = match way {
            // Where it wrote them, its data are on the file system.
            Variant::FileSystem => account.sync_s.unwrap_or_default(),
            Variant::BurstBuffer => stage_out_s,
        };
        let staged = account.stage_in.iter().chain(&account.stage_out);
        let written = results.iter().filter_map(|line| line.bytes).reduce(|a, b| a + b);
        let told = results
            .iter()
            .filter_map(|line| line.io_s)
            .reduce(|a, b| a + b)
            .map(|io_s| (io_s, IoTimeSource::Program));
        let recorded = || {
            let io_s = summarize(account.profile.as_ref()?).io_s?;
            Some((io_s, IoTimeSource::Record))
        };
        let (io_s, io_from) = told.or_else(recorded).unzip();
        Measured {
            job_s: account.job_s,
            io_s,
            io_from,
            safe_s: account.job_s + until_safe_s,
            stage_out_s,
            bytes: written.or(account.stage_out.as_ref().map(|staged| staged.bytes)),
            emulated_bytes: account.emulated.as_ref().map(|e| e.counters.bytes_written),
            staged_bytes: staged.map(|staged| staged.copied_bytes).sum(),
            profile: account.profile.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_and_application_lines_give_figures() {
        let account = r#"{"job_id": "7", "job_s": 2.0, "emulated": null,
            "sync_s": 0.25, "stage_in": null,
            "stage_out": {"bytes": 5, "copied_bytes": 5, "seconds": 0.5, "files": 1}}"#;
        let account: RunOutput = serde_json::from_str(account).expect("account");
        let output =
            "step 1\n{\"io_s\": 0.25, \"bytes\": 3}\n{\"io_s\": 0.5, \"bytes\": 4}\n17\n[9.0, 9]\n";
        let figures = Measured::of(&account, output, Variant::BurstBuffer);
        assert_eq!((figures.safe_s, figures.io_s, figures.bytes), (2.5, Some(0.75), Some(7)));
        let silent = Measured::of(&account, "no result\n", Variant::FileSystem);
        assert_eq!(silent.safe_s, 2.25, "what it wrote is on the file system before its stage-out");
        assert_eq!((silent.io_s, silent.bytes), (None, Some(5)));
    }

    #[test]
    fn incomplete_summary_is_an_error() {
        let lacking = r#"{"job_id": "7", "stage_out": null, "emulated": null}"#;
        let error = serde_json::from_str::<RunOutput>(lacking).expect_err("no job_s");
        assert!(error.to_string().contains("job_s"), "{error}");
    }
}
