//! What is measured.

use serde::Serialize;

/// One way of running the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    FileSystem,
    BurstBuffer,
}

impl Way {
    pub fn name(self) -> &'static str {
        match self {
            Self::FileSystem => "file system",
            Self::BurstBuffer => "burst buffer",
        }
    }
}

/// One run, in seconds and bytes.
#[derive(Debug, Clone, Serialize)]
pub struct Measured {
    /// Run time of the script.
    pub job_s: f64,
    /// Time in I/O as the application tells it.
    pub io_s: Option<f64>,
    /// From the start of the script until its data are on the file system, synced.
    pub safe_s: f64,
    /// Stage-out, contained in `safe_s`.
    pub stage_out_s: f64,
    /// Bytes as the application tells them, else as they were staged out.
    pub bytes: Option<u64>,
    /// Bytes that were written to the emulated file system as the emulation saw it.
    pub emulated_bytes: Option<u64>,
}

/// All runs of one way.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    pub way: Way,
    pub runs: Vec<Measured>,
}

/// The runs on one file system.
#[derive(Debug, Clone, Serialize)]
pub struct Block {
    /// What the file system is.
    pub label: String,
    /// Is it emulated?
    pub emulated: bool,
    pub rows: [Row; 2],
    /// Did all runs leave the same files where the script stages out to? None if not all wrote there.
    pub same_output: Option<bool>,
    /// Files and bytes of that output.
    pub output_files: usize,
    pub output_bytes: u64,
}

impl Measured {
    /// From the account of `forebay run --json` and what the job said on its standard output.
    pub fn of(account: &serde_json::Value, said: &str) -> Self {
        let results: Vec<serde_json::Value> = said
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        let number = |key: &str| {
            let found: Vec<f64> = results
                .iter()
                .filter_map(|line| line.get(key)?.as_f64())
                .collect();
            (!found.is_empty()).then(|| found.iter().sum::<f64>())
        };
        let written = results
            .iter()
            .filter_map(|line| line.get("bytes")?.as_u64());
        let staged_out = account["stage_out"]["bytes"].as_u64();
        let job_s = account["job_s"].as_f64().unwrap_or(f64::NAN);
        let stage_out_s = account["stage_out"]["seconds"].as_f64().unwrap_or(0.0);
        Measured {
            job_s,
            io_s: number("io_s"),
            safe_s: job_s + stage_out_s,
            stage_out_s,
            bytes: written.reduce(|a, b| a + b).or(staged_out),
            emulated_bytes: account["emulated"]["counters"]["bytes_written"].as_u64(),
        }
    }
}
