//! `forebay run`.

use forebay_control::{
    DRAIN_VARIABLE, DrainWish, FAILED_BEFORE_THE_JOB, Outcome, Output, Preview, Recording,
};
use serde::Serialize;

use crate::arguments::RunArguments;
use crate::emulation::{Emulated, Emulation};
use crate::libraries;
use crate::messages::{self, fail, hint, warn};
use crate::prepared::{Prepared, Refused, refused};
use crate::progress::Progress;
use crate::{deadline, on_close, preview, profile, status};

/// The one JSON object of `forebay run --json`.
#[derive(Serialize)]
struct Account<'a> {
    #[serde(flatten)]
    outcome: &'a Outcome,
    emulated: Option<Emulated>,
}

/// What became of the command.
enum Done {
    Ran(Box<(Outcome, Option<Emulation>)>),
    Foreseen(Box<Preview>),
}

pub fn run(arguments: &RunArguments) -> i32 {
    let progress = Progress::explaining(arguments.job.explain);
    match carry_out(arguments, &progress) {
        Ok(Done::Ran(ran)) => account(arguments, &ran.0, ran.1.as_ref()),
        Ok(Done::Foreseen(preview)) => preview::show(&preview, arguments),
        Err((message, hint, exit_code)) => {
            fail(&message, hint.as_deref(), exit_code);
            if arguments.json {
                return messages::refusal(&message, hint.as_deref(), progress.record(), exit_code);
            }
            exit_code
        }
    }
}

fn carry_out(arguments: &RunArguments, progress: &Progress) -> Result<Done, Refused> {
    let (prepared, caught) = Prepared::of(&arguments.job)?;
    let output = match &arguments.output {
        Some(path) => Output::File(path),
        None if arguments.json => Output::Error,
        None => Output::Inherit,
    };
    let emulation = prepared.emulation.as_ref();
    let emulated = emulation.map(|emulation| || emulation.report().as_value());
    let recording = Recording {
        libraries: libraries::observers(),
        trace: arguments.trace,
        emulated: emulated.as_ref().map(|emulated| emulated as _),
    };
    let mut order = prepared.order(output, (!arguments.no_profile).then_some(recording));
    order.keep = arguments.keep;
    order.staging = arguments.staging.wish(order.staging);
    order.deadline = arguments.deadline.wishes();
    let drain = wished(arguments)?;
    order.drain = &drain;
    let on_close = on_close::words(arguments);
    order.on_close = &on_close;
    order.spectral = prepared.spectral(arguments.spectral);
    if arguments.dry_run {
        return order
            .preview(progress)
            .map(|preview| Done::Foreseen(Box::new(preview)))
            .map_err(refused);
    }
    status::warn_of_leftovers();
    if arguments.no_profile && prepared.gives_hints_to_nobody() {
        warn(
            "--no-profile: Open MPI and MPICH get no MPICH_MPIIO_HINTS, for libforebay_mpi is not loaded",
        );
        hint("leave --no-profile out, or put libforebay_mpi.so into LD_PRELOAD in the script");
    }
    let outcome = forebay_control::run(&order, caught, progress).map_err(refused)?;
    Ok(Done::Ran(Box::new((outcome, prepared.emulation))))
}

/// What is to be drained: the options, else the variable.
fn wished(arguments: &RunArguments) -> Result<Vec<DrainWish>, Refused> {
    let named = std::env::var(DRAIN_VARIABLE).ok();
    let named = named.filter(|text| !text.is_empty() && !arguments.job.no_burst_buffer);
    match named {
        Some(text) if arguments.drain.is_empty() => {
            let wish = DrainWish::parse(&text);
            let wish = wish.map_err(|error| {
                (
                    format!("{DRAIN_VARIABLE}: {error}"),
                    None,
                    FAILED_BEFORE_THE_JOB,
                )
            });
            wish.map(|wish| vec![wish])
        }
        _ => Ok(arguments.drain.clone()),
    }
}

fn account(arguments: &RunArguments, outcome: &Outcome, emulation: Option<&Emulation>) -> i32 {
    if let Some(handled) = &outcome.on_close {
        on_close::tell(handled, on_close::COMMANDS);
    }
    if let Some(kept) = &outcome.kept {
        messages::failures(outcome.stage_out.as_ref());
        outcome.not_safe.iter().for_each(deadline::tell);
        let kept = kept.display();
        let id = &outcome.run_id;
        let (why, clean) = if outcome.undelivered && outcome.store.is_none() {
            (
                "nothing was deleted",
                "stages out what is missing, with --discard it gives that up",
            )
        } else if outcome.undelivered {
            (
                "nothing was deleted",
                "stages out what is missing and removes them, with --discard it gives that up",
            )
        } else {
            ("the allocation is kept", "removes them")
        };
        messages::hint(&format!(
            "{why}: the data are in {kept}; forebay clean {id} {clean}"
        ));
    }
    if let Some(requested) = &outcome.requested {
        let (read, written) = (requested.files_in, requested.files_out);
        let left = requested.left_to_stage_out;
        messages::say(&format!(
            "staged for the job's programs: {read} files in, {written} out; {left} were left for its end"
        ));
    }
    if let Some(directory) = &outcome.profile {
        profile::tell(directory, outcome.job_s, "job", outcome.exit_code);
    }
    if arguments.json {
        let emulated = emulation.map(Emulation::report);
        return messages::json(&Account { outcome, emulated }, outcome.exit_code);
    }
    outcome.exit_code
}
