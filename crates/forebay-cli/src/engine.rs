//! `forebay engine`: lists the engines of jobs on several nodes, and bundles a Ceph.
//! Assumes that nobody else creates the output of a bundle meanwhile, if the file system can neither link nor rename
//! without replacing. Never starts a daemon.
//! A bundle gets its name only when it is complete and its monitor has printed its version.

mod list;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use forebay_ceph::{Bundle, BundleError, Manifest, Programs};
use forebay_host::exit_codes;
use forebay_host::messages::counted;
use forebay_host::process::{self, SignalGuard, StopRequests};
use forebay_host::{clock, files, system};
use forebay_terminal::{CliError, print_json, print_json_error, print_stdout, print_warning};
use indicatif::{HumanBytes, ProgressBar, ProgressStyle};
use schemars::JsonSchema;
use serde::Serialize;

use list::ListArguments;
pub use list::ListedEngine;

/// How long `tar` may take to write an archive.
const ARCHIVE_TIME_MAX: Duration = Duration::from_secs(3600);
const ARCHIVE: &str = ".tar.gz";

#[derive(Debug, Args)]
pub struct EngineArguments {
    #[command(subcommand)]
    pub verb: EngineVerb,
}

#[derive(Debug, Subcommand)]
pub enum EngineVerb {
    /// List engines and profiles: what this machine has of each, what it lacks, and what each promises
    #[command(after_help = "Example:\n  forebay engine list\n  \
        forebay engine list --engine-root /scratch/me/ceph --json\n\n\
        It starts no engine. forebay doctor --engine NAME starts one and checks its promises.")]
    List(ListArguments),
    /// Copy an installed Ceph into one directory or archive that runs without installation
    #[command(after_help = "Example:\n  forebay engine bundle\n  \
        forebay engine bundle --output /scratch/me/ceph\n\n\
        The bundle has the daemons, ceph-fuse, their libraries and plugins, the licence of each\n\
        package, and manifest.json with sizes, checksums and source packages. It runs on other\n\
        Linux systems of the same architecture, through the loader and the C library that it\n\
        contains.")]
    Bundle(BundleArguments),
}

#[derive(Debug, Args)]
pub struct BundleArguments {
    /// New directory, or new archive if the name ends with .tar.gz [default: ceph-VERSION-ARCHITECTURE.tar.gz]
    #[arg(long, value_name = "DIR_OR_TAR.GZ")]
    pub output: Option<PathBuf>,
    /// Directory of the Ceph to copy, with bin and lib [default: the Ceph of the system]
    #[arg(long, value_name = "DIR")]
    pub engine_root: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// A bundle that was written.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Bundled {
    /// The name of the engine.
    engine: String,
    /// Its version.
    version: String,
    /// The directory or archive.
    #[serde(serialize_with = "forebay_host::files::lossy_path")]
    #[schemars(with = "PathBuf")]
    output: PathBuf,
    /// The number of files in it, without its list.
    files: usize,
    /// Their size.
    bytes: u64,
    /// The size of the archive; null for a directory.
    archive_bytes: Option<u64>,
    /// The packages that the files are from.
    packages: Vec<String>,
    /// The words that start the monitor from the bundle; an archive has to be unpacked first.
    start: Vec<String>,
    /// How long it took.
    seconds: f64,
}

pub fn engine(verb: &EngineVerb) -> i32 {
    let arguments = match verb {
        EngineVerb::List(arguments) => return list::list(arguments),
        EngineVerb::Bundle(arguments) => arguments,
    };
    // Signals are caught as long as the events exist.
    let events = match SignalGuard::listen().and_then(|guard| guard.watch(None)) {
        Ok(events) => events,
        Err(error) => return CliError::from(error).print(),
    };
    let error = match bundle(arguments, &events.stops()) {
        Ok(bundled) if arguments.json => return print_json(&bundled, 0),
        Ok(bundled) => return print_stdout(&text(&bundled), 0),
        Err(error) => error,
    };
    let code = error.print();
    if arguments.json {
        return print_json_error(&error.message, error.hint.as_deref(), None, code);
    }
    code
}

fn text(bundled: &Bundled) -> String {
    let Bundled { engine, version, output, files, bytes, .. } = bundled;
    let archive = bundled
        .archive_bytes
        .map_or_else(String::new, |bytes| format!(" (archive: {})", HumanBytes(bytes)));
    format!(
        "{}: {engine} {version}, {}, {}{archive}, in {:.1} s\nstart a program of it: {} OPTIONS",
        output.display(),
        counted(*files as u64, "file"),
        HumanBytes(*bytes),
        bundled.seconds,
        bundled.start.join(" "),
    )
}

fn bundle(arguments: &BundleArguments, stops: &StopRequests) -> Result<Bundled, CliError> {
    let start = clock::now();
    let bundle =
        Bundle::plan(arguments.engine_root.as_deref()).map_err(|error| failed(&error, stops))?;
    if !bundle.has_licences() {
        print_warning("no licence files were found: add them before you pass the bundle on");
    }
    let output = arguments.output.clone();
    let output = output.unwrap_or_else(|| format!("{}{ARCHIVE}", bundle.name()).into());
    let output = system::current_directory()?.join(output);
    if files::status_of_name(&output).is_ok() {
        return Err(failed(&BundleError::Exists(output), stops));
    }
    // The work is next to the target, so that it gets there by a rename.
    let parent = files::parent_of(&output);
    let work = parent.join(format!(".forebay-bundle-{}", system::process_id()));
    files::make_directory(&work, 0o755)?;
    let done = write(&bundle, &work, &output, stops);
    files::remove_tree(&work)?;
    let (manifest, start_words) = done?;
    let is_archive = is_archive(&output);
    let size = files::status(&output)?.size_bytes;
    Ok(Bundled {
        engine: manifest.engine,
        version: manifest.version,
        files: manifest.files.len(),
        bytes: manifest.files.iter().map(|file| file.bytes).sum(),
        archive_bytes: is_archive.then_some(size),
        packages: manifest.packages,
        start: start_words,
        output,
        seconds: start.elapsed().as_secs_f64(),
    })
}

fn is_archive(output: &Path) -> bool {
    output.file_name().is_some_and(|name| name.to_string_lossy().ends_with(ARCHIVE))
}

/// Writes the bundle below `work`, tries its programs, and moves it to `output`. Returns its list, and the words that
/// start the monitor of the bundle in its place.
fn write(
    bundle: &Bundle,
    work: &Path,
    output: &Path,
    stops: &StopRequests,
) -> Result<(Manifest, Vec<String>), CliError> {
    let directory = work.join(bundle.name());
    let style = ProgressStyle::with_template("forebay: bundle [{wide_bar}] {bytes}/{total_bytes}");
    let bar = ProgressBar::new(bundle.bytes());
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let manifest = bundle.write(&directory, &|copied_bytes, _| {
        bar.set_position(copied_bytes);
        stops.count() == 0
    });
    bar.finish_and_clear();
    let manifest = manifest.map_err(|error| failed(&error, stops))?;
    // It must run before anybody carries it elsewhere.
    let programs =
        Programs::find(Some(&directory)).map_err(|error| failed(&error.into(), stops))?;
    let place = if is_archive(output) { PathBuf::from(bundle.name()) } else { output.to_owned() };
    let here = directory.display().to_string();
    let there = place.display().to_string();
    let words = programs.monitor.iter().map(|word| word.replace(&here, &there)).collect();
    if is_archive(output) {
        let archive = work.join("archive");
        compress(work, &bundle.name(), &archive, stops)?;
        files::rename_file_noreplace(&archive, output)?;
    } else {
        files::rename_directory_noreplace(&directory, output)?;
    }
    files::sync_directory(files::parent_of(output))?;
    Ok((manifest, words))
}

fn compress(work: &Path, name: &str, archive: &Path, stops: &StopRequests) -> Result<(), CliError> {
    let mut tar = process::command("tar");
    tar.args(["--create", "--gzip", "--owner=0", "--group=0", "--file"]).arg(archive);
    tar.arg("--directory").arg(work).arg(name);
    let captured = process::run_captured(tar, ARCHIVE_TIME_MAX, &|| stops.count() == 0)?;
    if stops.count() > 0 {
        return Err(failed(&BundleError::Stopped, stops));
    }
    if captured.is_some_and(|captured| captured.success) {
        return Ok(());
    }
    let error = CliError::new(format!("tar could not write {}", archive.display()));
    Err(error.with_hint("check the free space, or name a directory as --output"))
}

/// The error for the user; a stop ends as its signal.
fn failed(error: &BundleError, stops: &StopRequests) -> CliError {
    let code = match stops.signal() {
        Some(signal) if matches!(error, BundleError::Stopped) => exit_codes::of_signal(signal),
        _ => exit_codes::FAILED,
    };
    let shown = CliError { hint: error.hint(), ..CliError::new(error.to_string()) };
    shown.with_exit_code(code)
}
