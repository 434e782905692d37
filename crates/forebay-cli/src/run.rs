//! `forebay run`: runs one job script, and prints its results.
//! `forebay-job` does the work. With --json, never prints anything but the one object on standard output.

use forebay_host::messages::counted;
use forebay_terminal::{
    CliError, Progress, observers, print_error_line, print_failures, print_hint, print_json,
    print_status, print_warning, print_write_failures,
};
use std::path::PathBuf;

use clap::Args;
use forebay_job::{DryRun, Outcome, Output, UnnamedFiles};
use forebay_onclose::{DrainSpec, OnClose};
use forebay_profile::Recording;
use forebay_record::UnsavedFiles;
use indicatif::HumanBytes;
use schemars::JsonSchema;
use serde::Serialize;

use crate::emulation::{Emulated, Emulation};
use crate::job_setup::JobSetup;
use crate::on_close::RunHandlingArguments;
use crate::options::deadline::DeadlineArguments;
use crate::options::job::JobArguments;
use crate::options::staging::JobStagingArguments;
use crate::{effective_config, on_close, preview, profile, status};

#[derive(Debug, Args)]
pub struct RunArguments {
    /// Keep the allocation after the job
    #[arg(long)]
    pub keep: bool,
    /// Show what would happen, with sizes; change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Write the job's standard output to FILE
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print one JSON object about the run; the job's own output goes to standard error
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub job: JobArguments,
    #[command(flatten, next_help_heading = "Time limit")]
    pub deadline: DeadlineArguments,
    /// Copy each matching file out as soon as it is closed, while the job runs; WHAT is
    /// PATTERN[,PATTERN...][:rate=500MB/s][:newest][:to=DIR]; may be repeated [default: the setting drain]
    #[arg(help_heading = "While the job runs", long, value_name = "WHAT", value_parser = DrainSpec::parse, conflicts_with = "no_burst_buffer")]
    pub drain: Vec<DrainSpec>,
    /// Drain all files below $PERSIST_DIR to $PFS_DIR, as Spectral does on Summit
    #[arg(help_heading = "While the job runs", long, conflicts_with = "no_burst_buffer")]
    pub spectral: bool,
    /// Run COMMAND for each matching file in the burst buffer as soon as its last writer closes it; {} is the file;
    /// may be repeated
    #[arg(help_heading = "While the job runs", long, value_name = "PATTERN=COMMAND", value_parser = OnClose::parse, conflicts_with = "no_burst_buffer")]
    pub on_close: Vec<OnClose>,
    #[command(flatten, next_help_heading = "While the job runs")]
    pub handling: RunHandlingArguments,
    #[command(flatten, next_help_heading = "Staging")]
    pub staging: JobStagingArguments,
    /// Do not record the I/O of the job's programs. MPICH_MPIIO_HINTS then has no effect, unless the script preloads
    /// libforebay_mpi itself
    #[arg(help_heading = "Recording", long)]
    pub no_profile: bool,
    /// Also record each I/O call
    #[arg(help_heading = "Recording", long, conflicts_with = "no_profile")]
    pub trace: bool,
}

/// The JSON object of `forebay run --json`.
#[derive(Serialize, JsonSchema)]
pub struct RunReport<'a> {
    #[serde(flatten)]
    outcome: &'a Outcome,
    /// What the emulation counted; null without one.
    emulated: Option<Emulated>,
}

/// The result of the command.
enum Done {
    Ran(Box<(Outcome, Option<Emulation>)>),
    Foreseen(Box<DryRun>),
}

pub fn run(arguments: &RunArguments) -> i32 {
    let progress = Progress::explaining(arguments.job.explain);
    match carry_out(arguments, &progress) {
        Ok(Done::Ran(ran)) => account(arguments, &ran.0, ran.1.as_ref()),
        Ok(Done::Foreseen(preview)) => preview::show(
            &preview,
            &arguments.on_close,
            arguments.handling.on_close_at_most,
            arguments.json,
        ),
        Err(error) => {
            let code = error.print_with_json(arguments.json, progress.record());
            if let Some(directory) = progress.record() {
                profile::print_why(directory, "the error is recorded");
            }
            code
        }
    }
}

fn carry_out(arguments: &RunArguments, progress: &Progress) -> Result<Done, CliError> {
    let (setup, caught) = JobSetup::of(&arguments.job)?;
    effective_config::print_used(arguments.job.explain);
    let output = match &arguments.output {
        Some(path) => Output::File(path),
        None if arguments.json => Output::Error,
        None => Output::Inherit,
    };
    let emulation = setup.emulation.as_ref();
    let emulated = emulation.map(|emulation| || emulation.report().as_value());
    let recording = Recording {
        libraries: observers(),
        trace: arguments.trace,
        emulated: emulated.as_ref().map(|emulated| emulated as _),
    };
    let mut spec = setup.spec(output, (!arguments.no_profile).then_some(recording));
    spec.keep = arguments.keep;
    spec.staging = arguments.staging.options_after(spec.staging);
    spec.deadline = arguments.deadline.options();
    spec.drain = requested_drains(arguments, &setup);
    let on_close = on_close::to_args(&arguments.on_close, &arguments.handling);
    spec.on_close = &on_close;
    spec.spectral = setup.spectral(arguments.spectral);
    if arguments.dry_run {
        return spec
            .preview(progress)
            .map(|preview| Done::Foreseen(Box::new(preview)))
            .map_err(CliError::of_job);
    }
    status::warn_of_leftovers();
    if arguments.no_profile && setup.hints_are_unused() {
        print_warning(
            "--no-profile: Open MPI and MPICH get no MPICH_MPIIO_HINTS, for libforebay_mpi is not loaded",
        );
        print_hint(
            "leave --no-profile out, or put libforebay_mpi.so into LD_PRELOAD in the script",
        );
    }
    let outcome = forebay_job::run(&spec, caught, progress).map_err(CliError::of_job)?;
    Ok(Done::Ran(Box::new((outcome, setup.emulation))))
}

/// The requested drains. Those of a configuration file do not concern a script without a burst buffer.
fn requested_drains<'a>(arguments: &'a RunArguments, setup: &JobSetup) -> &'a [DrainSpec] {
    let is_of_file = effective_config::is_of_file("drain");
    if arguments.job.no_burst_buffer || (is_of_file && !setup.wants_burst_buffer()) {
        return &[];
    }
    &arguments.drain
}

fn account(arguments: &RunArguments, outcome: &Outcome, emulation: Option<&Emulation>) -> i32 {
    if let Some(handled) = &outcome.on_close {
        on_close::print_summary(handled, on_close::COMMANDS);
    }
    let unnamed = outcome.unnamed.as_ref().filter(|unnamed| unnamed.files > 0);
    unnamed.into_iter().for_each(|unnamed| print_unnamed(unnamed, outcome));
    if let Some(kept) = &outcome.kept {
        print_failures(outcome.stage_out.as_ref());
        let none = || UnnamedFiles { complete: true, ..UnnamedFiles::default() };
        let others = outcome.unnamed.clone().unwrap_or_else(none);
        let place = if outcome.nodes.is_some() { "on the job's nodes" } else { "on this machine" };
        outcome.not_safe.iter().for_each(|not_safe| print_unsaved(not_safe, &others, place));
        print_hint(&hint_of_kept(outcome, &forebay_host::files::printable(kept)));
    }
    if let Some(requested) = &outcome.requested {
        let (read, written) = (requested.files_in, requested.files_out);
        let left = requested.left_to_stage_out;
        print_status(&format!(
            "staged for the job's programs: {} in, {written} out; {left} were left for its end",
            counted(read, "file")
        ));
    }
    print_write_failures(outcome);
    if let Some(directory) = &outcome.profile {
        let is_named = profile::print_record(directory, outcome.job_s, "job", outcome.exit_code);
        if !is_named && outcome.exit_code != 0 {
            profile::print_why(directory, "the job failed");
        }
    }
    if arguments.json {
        let emulated = emulation.map(Emulation::report);
        return print_json(&RunReport { outcome, emulated }, outcome.exit_code);
    }
    outcome.exit_code
}

/// Where the data are that were kept, and what can be done.
fn hint_of_kept(outcome: &Outcome, kept: &str) -> String {
    let id = &outcome.run_id;
    let nodes = outcome.nodes.as_ref().filter(|_| outcome.undelivered);
    let failed = nodes.and_then(|nodes| Some((nodes, nodes.failed.as_ref()?)));
    if let Some((nodes, why)) = failed {
        return if nodes.data_lost {
            format!(
                "the job's files are lost: they were in memory ({why}); forebay clean --discard {id} removes the rest"
            )
        } else {
            format!(
                "nothing was deleted: the data are on the nodes, and cannot be read now; forebay clean {id} starts the \
                 engine again, stages out and removes them; with --discard it gives them up"
            )
        };
    }
    if nodes.is_some_and(|nodes| nodes.data_lost) {
        return format!(
            "what was lost cannot be delivered; all else is in {kept}; forebay clean {id} stages out what is missing, \
             forebay clean --discard {id} gives up the lost files and removes the rest"
        );
    }
    let (why, clean) = if outcome.undelivered && outcome.store.is_none() {
        ("nothing was deleted", "stages out what is missing, with --discard it gives that up")
    } else if outcome.undelivered {
        (
            "nothing was deleted",
            "stages out what is missing and removes them; with --to DIR it copies all files there, with --discard it \
             gives them up",
        )
    } else {
        ("the allocation is kept", "removes them")
    };
    format!("{why}: the data are in {kept}; forebay clean {id} {clean}")
}

/// Prints what the job wrote and no line names, a warning where lines name other files.
fn print_unnamed(unnamed: &UnnamedFiles, outcome: &Outcome) {
    let UnnamedFiles { files, bytes, largest, complete } = unnamed;
    let largest: Vec<_> =
        largest.iter().map(|(path, bytes)| format!("{path} ({})", HumanBytes(*bytes))).collect();
    let at_least = if *complete { "" } else { "at least " };
    let fate = if outcome.kept.is_some() { "kept" } else { "deleted" };
    let text = format!(
        "written by the job and named by no stage_out line: {at_least}{}, {}; {fate} with the allocation; the largest: {}",
        counted(*files, "file"),
        HumanBytes(*bytes),
        largest.join(", ")
    );
    if outcome.stage_out.is_some() { print_warning(&text) } else { print_status(&text) }
}

/// Prints files that exist only in the allocation; the others do, too.
fn print_unsaved(not_safe: &UnsavedFiles, others: &UnnamedFiles, place: &str) {
    for path in &not_safe.first {
        print_error_line(&format!("not safe: {}", forebay_host::files::printable(path)));
    }
    let more = not_safe.files - not_safe.first.len() as u64;
    if more > 0 {
        print_error_line(&format!("not safe: and {}", counted(more, "more file")));
    }
    let files = counted(not_safe.files, "file");
    let bytes = HumanBytes(not_safe.bytes + others.bytes);
    let at_least = if others.complete { "" } else { "at least " };
    let list = forebay_host::files::printable(&not_safe.list);
    print_hint(&format!(
        "{place} only: {at_least}{bytes}; {list} says of {files} why it did not arrive"
    ));
}
