//! `forebay compare`: the same script on the file system and on the burst buffer, in turn.

use std::path::{Path, PathBuf};

use forebay_directive::Symbols;
use forebay_host::process::command;
use forebay_host::{files, machine};
use forebay_pfsmodel::Model;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::arguments::CompareArguments;
use crate::messages::fail;
use crate::outputs::{self, Fingerprint};
use crate::table;

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
    /// From the start of the script until its data are on the file system.
    pub safe_s: f64,
    /// Stage-out, contained in `safe_s`.
    pub stage_out_s: f64,
    /// Bytes as the application tells them, else as they were staged out.
    pub bytes: Option<u64>,
    /// Time the emulation made processes wait, all added up.
    pub emulated_wait_s: Option<f64>,
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
    /// Did both ways leave the same files where the script stages out to? None if not both left any.
    pub same_output: Option<bool>,
    /// Files and bytes of that output.
    pub output_files: usize,
    pub output_bytes: u64,
}

type Failure = (String, Option<String>);

pub fn compare(arguments: &CompareArguments) -> i32 {
    match measure(arguments) {
        Ok(blocks) if arguments.json => match serde_json::to_string(&blocks) {
            Ok(text) => {
                println!("{text}");
                0
            }
            Err(error) => fail(&error.to_string(), None, 1),
        },
        Ok(blocks) => {
            table::print(&blocks);
            i32::from(blocks.iter().any(|block| block.same_output == Some(false)))
        }
        Err((message, hint)) => fail(&message, hint.as_deref(), 1),
    }
}

fn measure(arguments: &CompareArguments) -> Result<Vec<Block>, Failure> {
    let destinations = destinations(&arguments.script)?;
    let mut models = Vec::new();
    if let Some(file) = &arguments.emulation.pfs_model {
        models.push(Some(file.as_path()));
    }
    if !arguments.no_real {
        models.push(None);
    }
    let runs = u64::from(arguments.repeat) * 2 * models.len() as u64;
    let style = ProgressStyle::with_template("forebay: run {pos} of {len} [{bar:20}] {msg}");
    let bar =
        ProgressBar::new(runs).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let blocks: Result<Vec<_>, _> = models
        .into_iter()
        .map(|model| block(arguments, model, &destinations, &bar))
        .collect();
    bar.finish_and_clear();
    blocks
}

/// Where the script stages out to.
fn destinations(script: &Path) -> Result<Vec<PathBuf>, Failure> {
    let plain = |error: forebay_host::Error| (error.to_string(), None);
    let text = files::read_to_string(script).map_err(plain)?;
    let directory = machine::current_directory().map_err(plain)?;
    let symbols = Symbols {
        user: machine::user_name(),
        directory: directory.to_string_lossy().into_owned(),
        ..Symbols::default()
    };
    let request = forebay_directive::parse(&text, &symbols).map_err(|problems| {
        let first = problems.first().map(ToString::to_string);
        let message = format!("{}: {}", script.display(), first.unwrap_or_default());
        (
            message,
            problems.first().map(|problem| problem.hint.clone()),
        )
    })?;
    if request.job.is_none() {
        let hint = "add for example: #DW jobdw type=scratch access_mode=striped capacity=1GiB";
        let message = format!(
            "{} asks for no burst buffer to compare with",
            script.display()
        );
        return Err((message, Some(hint.to_owned())));
    }
    Ok(request
        .stage_out
        .iter()
        .map(|stage| PathBuf::from(&stage.pfs_path))
        .collect())
}

fn block(
    arguments: &CompareArguments,
    model: Option<&Path>,
    destinations: &[PathBuf],
    bar: &ProgressBar,
) -> Result<Block, Failure> {
    let label = label(model)?;
    let mut rows = [Way::FileSystem, Way::BurstBuffer].map(|way| Row {
        way,
        runs: Vec::new(),
    });
    let mut fingerprints: Vec<Vec<Fingerprint>> = Vec::new();
    // In turn, so that a slow minute of the machine meets both alike.
    for _ in 0..arguments.repeat {
        for row in &mut rows {
            bar.set_message(format!("{label}, {}", row.way.name()));
            bar.tick();
            row.runs.push(one_run(arguments, model, row.way)?);
            fingerprints
                .push(outputs::fingerprints(destinations).map_err(|e| (e.to_string(), None))?);
            bar.inc(1);
        }
    }
    let first = &fingerprints[0];
    let some = fingerprints.iter().all(|files| !files.is_empty());
    Ok(Block {
        label,
        emulated: model.is_some(),
        rows,
        same_output: some.then(|| fingerprints.iter().all(|files| files == first)),
        output_files: first.len(),
        output_bytes: first.iter().map(|file| file.size_bytes).sum(),
    })
}

fn label(model: Option<&Path>) -> Result<String, Failure> {
    let Some(file) = model else {
        let here = machine::file_system_here().map_err(|error| (error.to_string(), None))?;
        return Ok(format!("real: {here}"));
    };
    let text = files::read_to_string(file).map_err(|error| (error.to_string(), None))?;
    let model = Model::from_toml(&text, &file.to_string_lossy());
    model
        .map(|model| format!("emulated: {}", model.name))
        .map_err(|error| (error.to_string(), None))
}

/// Runs the script once in a process of its own and takes its account.
fn one_run(
    arguments: &CompareArguments,
    model: Option<&Path>,
    way: Way,
) -> Result<Measured, Failure> {
    let plain = |error: forebay_host::Error| (error.to_string(), None);
    let output = std::env::temp_dir().join(format!("forebay-compare-{}.out", std::process::id()));
    let mut process = command(machine::this_program().map_err(plain)?);
    process.args(["run", "--json", "--output"]).arg(&output);
    if way == Way::FileSystem {
        process.arg("--no-burst-buffer");
    }
    if let Some(store) = &arguments.store {
        process.arg("--store").arg(store);
    }
    if let Some(model) = model {
        process.arg("--pfs-model").arg(model);
        for root in &arguments.emulation.pfs_root {
            process.arg("--pfs-root").arg(root);
        }
    }
    let ended = process.arg(&arguments.script).output();
    let ended = files::named(ended, "run", &arguments.script).map_err(plain)?;
    let said = files::read_to_string(&output);
    if said.is_ok() {
        files::remove_file(&output).map_err(plain)?;
    }
    if !ended.status.success() {
        let complaint = String::from_utf8_lossy(&ended.stderr).into_owned();
        let message = format!(
            "the job failed on the {} ({})\n{complaint}",
            way.name(),
            ended.status
        );
        return Err((message, Some("see that forebay run JOB works first".into())));
    }
    let account: serde_json::Value = serde_json::from_slice(&ended.stdout)
        .map_err(|error| (format!("forebay run gave no account: {error}"), None))?;
    Ok(measured(&account, &said.map_err(plain)?))
}

fn measured(account: &serde_json::Value, said: &str) -> Measured {
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
    let wait_ns = account["emulated"]["counters"]["slept_ns"].as_f64();
    Measured {
        job_s,
        io_s: number("io_s"),
        safe_s: job_s + stage_out_s,
        stage_out_s,
        bytes: written.reduce(|a, b| a + b).or(staged_out),
        emulated_wait_s: wait_ns.map(|ns| ns * 1e-9),
    }
}
