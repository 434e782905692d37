//! `forebay compare`: runs a script on the file system and on the burst buffer, alternately.
//! Assumes that the script may run several times: each run writes to its destinations, and nothing there is restored.
//! Never runs a script that creates or destroys a persistent allocation.

mod figures;
mod outputs;
mod table;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use forebay_directive::{Request, Stage, StageKind};
use forebay_host::exit_codes;
use forebay_host::files::{self, Kind};
use forebay_host::process::{EndReason, Events, ExitStatus, SignalGuard, command, start_job};
use forebay_host::{clock, filesystem, system};
use forebay_profile::summarize;
use forebay_scheduler::JobScript;
use forebay_staging::expanded_out;
use forebay_terminal::{CliError, print_error, print_status, print_stdout, print_warning};
use indicatif::{ProgressBar, ProgressStyle};

use crate::emulation;
use crate::options::emulation::{EmulationArguments, NO_MODEL};
use crate::options::job::SpaceArguments;

pub use figures::Block;
use figures::{Measured, Row, RunOutput, Variant};
use outputs::Fingerprint;

#[derive(Debug, Args)]
pub struct CompareArguments {
    /// The job script
    pub script: PathBuf,
    #[command(flatten)]
    pub space: SpaceArguments,
    /// Number of runs with and without the burst buffer; the table shows medians
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub repeat: u32,
    /// Skip the runs on the real file system (only with --pfs-model)
    #[arg(long)]
    pub no_real: bool,
    /// Do not record the I/O of the job's programs. MPICH_MPIIO_HINTS then has no effect, unless the script preloads
    /// libforebay_mpi itself
    #[arg(long)]
    pub no_profile: bool,
    /// Print JSON instead of the table
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub emulation: EmulationArguments,
}

/// The error for a signal that ended the current run.
fn stopped(signal: i32, output: &str) -> CliError {
    let message = format!("stopped by a signal; the run in hand said at last:\n{output}");
    CliError::new(message).with_exit_code(exit_codes::of_signal(signal))
}

/// The data that all runs share.
struct Bench<'a> {
    arguments: &'a CompareArguments,
    script: JobScript,
    scratch: PathBuf,
    events: Events,
    bar: ProgressBar,
}

pub fn compare(arguments: &CompareArguments) -> i32 {
    let blocks = match measure(arguments) {
        Ok(blocks) => blocks,
        Err(error) => return error.print(),
    };
    print_records(&blocks);
    let differ = blocks.iter().any(|block| block.same_output == Some(false));
    let text =
        if arguments.json { serde_json::to_string(&blocks) } else { Ok(table::text(&blocks)) };
    match text {
        Ok(text) => print_stdout(&text, i32::from(differ)),
        Err(error) => print_error(&format!("cannot write JSON: {error}"), None, exit_codes::FAILED),
    }
}

/// Prints the command that compares the last recorded runs of both variants.
fn print_records(blocks: &[Block]) {
    for block in blocks {
        let last = block.rows.iter().filter_map(|row| row.runs.last());
        let records = last.filter_map(|run| run.profile.as_deref());
        let ids: Vec<_> = records
            .filter(|directory| summarize(directory).programs > 0)
            .filter_map(|directory| directory.file_name()?.to_str())
            .collect();
        if let [one, other] = ids[..] {
            let label = &block.label;
            print_status(&format!("the last two runs ({label}): forebay report {one} {other}"));
        }
    }
}

fn measure(arguments: &CompareArguments) -> Result<Vec<Block>, CliError> {
    let mut models = Vec::new();
    let model = arguments.emulation.model()?;
    if arguments.no_real && model.is_none() {
        let error = CliError::new("--no-real leaves nothing to run without --pfs-model");
        return Err(error.with_hint("add --pfs-model NAME; forebay machines lists the names"));
    }
    models.extend(model.map(Some));
    if !arguments.no_real {
        models.push(None);
    }
    let runs = u64::from(arguments.repeat) * 2 * models.len() as u64;
    let style = ProgressStyle::with_template("forebay: run {pos} of {len} [{bar:20}] {msg}");
    let bench = Bench {
        arguments,
        script: JobScript::read(&arguments.script).map_err(forebay_job::Error::from)?,
        scratch: std::env::temp_dir()
            .join(format!("forebay-compare-{}", clock::unix_milliseconds())),
        events: SignalGuard::listen()?.watch(None)?,
        bar: ProgressBar::new(runs)
            .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())),
    };
    bench.destinations(None)?; // reports errors of the script before any run
    bench.check_persistent()?;
    files::make_directory(&bench.scratch, 0o700).map_err(|error| {
        CliError::new(error.to_string()).with_hint("set TMPDIR to a directory you may write in")
    })?;
    let blocks: Result<Vec<_>, _> = models.into_iter().map(|model| block(&bench, model)).collect();
    bench.bar.finish_and_clear();
    if let Err(error) = files::remove_tree(&bench.scratch) {
        print_warning(&error.to_string());
    }
    blocks
}

impl Bench<'_> {
    fn request(&self, job_id: Option<&str>) -> Result<Request, CliError> {
        let here = system::current_directory()?;
        let request = self.script.request(&here, job_id.unwrap_or("no-job"));
        Ok(request.map_err(forebay_job::Error::from)?)
    }

    /// Refuses scripts that create or destroy persistent allocations, and warns of shared ones.
    fn check_persistent(&self) -> Result<(), CliError> {
        let request = self.request(None)?;
        let script = self.script.path.display();
        let made = request.create.iter();
        let made = made.map(|made| ("makes", &made.name, made.position));
        let destroyed = request.destroy.iter();
        let destroyed = destroyed.map(|doomed| ("destroys", &doomed.name, doomed.position));
        if let Some((does, name, position)) = made.chain(destroyed).next() {
            let message = format!(
                "{script}: {position}: it {does} the persistent allocation {name}, which can be done only once, and \
                 a comparison runs it several times"
            );
            let hint = format!(
                "compare a copy without that line; forebay persistent create {name} makes one beforehand"
            );
            return Err(CliError::new(message).with_hint(hint));
        }
        for used in &request.persistent {
            print_warning(&format!(
                "{}: each run, on the burst buffer and on the file system, begins with what the run before has left in it",
                used.name,
            ));
        }
        Ok(())
    }

    /// The destinations of the script's stage-outs, in a job of this id.
    fn destinations(&self, job_id: Option<&str>) -> Result<Vec<PathBuf>, CliError> {
        let request = self.request(job_id)?;
        if request.job.is_none() {
            let script = self.script.path.display();
            return Err(CliError::new(format!(
                "{script} asks for no burst buffer to compare with"
            ))
            .with_hint(
                "add for example: #DW jobdw type=scratch access_mode=striped capacity=1GiB",
            ));
        }
        // The job itself may create a list, so a list may be missing.
        let stages = request.stage_out.iter();
        let stages = stages.flat_map(|stage| expanded_out(stage).unwrap_or_default());
        // The user can name a link to a directory; links inside are skipped.
        let resolved = |path: PathBuf| files::real_path(&path).unwrap_or(path);
        Ok(stages.map(|stage| resolved(destination(&stage))).collect())
    }
}

/// The file or directory that a stage-out creates.
fn destination(stage: &Stage) -> PathBuf {
    let path = PathBuf::from(&stage.pfs_path);
    let is_directory = files::status(&path).is_ok_and(|status| status.kind == Kind::Directory);
    match Path::new(&stage.inner_path).file_name() {
        Some(name)
            if matches!(stage.kind, StageKind::File | StageKind::Path)
                && (is_directory || stage.pfs_path.ends_with('/')) =>
        {
            path.join(name)
        }
        _ => path,
    }
}

fn block(bench: &Bench, model: Option<&Path>) -> Result<Block, CliError> {
    let label = label(model)?;
    let mut rows =
        [Variant::FileSystem, Variant::BurstBuffer].map(|way| Row { way, runs: Vec::new() });
    let mut fingerprints = Vec::new();
    // The variants alternate, so that a slow phase of the machine affects both.
    for left in (0..bench.arguments.repeat).rev() {
        for row in &mut rows {
            bench.bar.set_message(format!("{label}, {}", row.way.name()));
            bench.bar.tick();
            let (mut measured, wrote) = one_run(bench, model, row.way)?;
            // Only the profiles of the last runs are kept, which leaves space for other jobs' profiles.
            if let Some(directory) = measured.profile.take_if(|_| left > 0) {
                files::remove_tree(&directory)?;
            }
            row.runs.push(measured);
            fingerprints.push(wrote);
            bench.bar.inc(1);
        }
    }
    let first = &fingerprints[0];
    let all_wrote = fingerprints.iter().all(|files| !files.is_empty());
    Ok(Block {
        label,
        emulated: model.is_some(),
        rows,
        same_output: all_wrote.then(|| fingerprints.iter().all(|files| files == first)),
        output_files: first.len(),
        output_bytes: first.iter().map(|file| file.size_bytes).sum(),
    })
}

fn label(model: Option<&Path>) -> Result<String, CliError> {
    let Some(file) = model else {
        return Ok(format!("real: {}, synced", filesystem::file_system_here()?));
    };
    let model = emulation::model(file)?;
    Ok(format!("emulated: {}", model.name))
}

/// Runs the script once in its own process. Returns the measurements and the fingerprints of the outputs.
fn one_run(
    bench: &Bench,
    model: Option<&Path>,
    way: Variant,
) -> Result<(Measured, Vec<Fingerprint>), CliError> {
    let before = outputs::times(&bench.destinations(None)?)?;
    let [said, account, log] = ["output", "account", "log"].map(|name| bench.scratch.join(name));
    let mut process = command(system::this_program()?);
    process.args(["run", "--json", "--output"]).arg(&said);
    process.arg(format!("--no-profile={}", bench.arguments.no_profile));
    if way == Variant::FileSystem {
        process.arg("--no-burst-buffer");
    }
    process.args(bench.arguments.space.to_args());
    process.arg("--pfs-model").arg(model.unwrap_or(Path::new(NO_MODEL)));
    if model.is_some() {
        for root in &bench.arguments.emulation.pfs_root {
            process.arg("--pfs-root").arg(root);
        }
    }
    process.arg(&bench.arguments.script);
    process.stdout(files::open_to_write(&account)?);
    process.stderr(files::open_to_write(&log)?);
    let job = start_job(process)?;
    let waited = bench.events.wait_forwarding_signals(job, None, Duration::ZERO);
    let (ended, asked) = waited?;
    let log = files::read_lossy(&log)?;
    if let Some(EndReason::Signal(signal)) = asked {
        return Err(stopped(signal, &log));
    }
    if ended != ExitStatus::Exit(0) {
        let (name, status) = (way.name(), ended.shell_status());
        let message = format!("the job failed on the {name} with status {status}\n{log}");
        return Err(CliError::new(message).with_hint("see that forebay run JOB works first"));
    }
    let account: RunOutput = serde_json::from_str(&files::read_to_string(&account)?)
        .map_err(|error| CliError::new(format!("forebay run gave no account: {error}")))?;
    let destinations = bench.destinations(Some(&account.job_id))?;
    let mut measured = Measured::of(&account, &files::read_lossy(&said)?, way);
    if way == Variant::FileSystem && model.is_none() {
        // An unsynced job leaves its results in the page cache, so they are synced here. In the
        // emulation a write returns when its bytes are on the targets.
        let started = clock::now();
        destinations.iter().try_for_each(|path| files::sync_tree(path))?;
        measured.safe_s += started.elapsed().as_secs_f64();
    }
    // Ignores files that this run did not write.
    let fingerprints = outputs::fingerprints(&destinations, &before)?;
    Ok((measured, fingerprints))
}
