//! `forebay run`.

use forebay_control::{
    Error, FAILED_BEFORE_THE_JOB, JobScript, Order, Outcome, Output, Preview, Recording,
};
use forebay_host::process::Caught;
use serde::Serialize;

use crate::arguments::{RunArguments, site_store};
use crate::emulation::{self, Emulated, Emulation};
use crate::launchers;
use crate::libraries;
use crate::messages::{self, fail, say};
use crate::progress::Progress;
use crate::{preview, profile, status};

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

/// Message, hint and exit code.
type Refused = (String, Option<String>, i32);

pub fn run(arguments: &RunArguments) -> i32 {
    let progress = Progress::explaining(arguments.explain);
    match carry_out(arguments, &progress) {
        Ok(Done::Ran(ran)) => account(arguments, &ran.0, ran.1.as_ref()),
        Ok(Done::Foreseen(preview)) => preview::show(&preview, arguments.json),
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
    let refused = |(message, hint)| (message, hint, FAILED_BEFORE_THE_JOB);
    let site_store = site_store();
    let wishes = arguments
        .space
        .wishes(site_store.as_deref(), &arguments.map);
    let emulation = emulation::enter(&arguments.emulation, &arguments.map).map_err(refused)?;
    if let Some(emulation) = &emulation {
        emulation.check_store(&wishes).map_err(refused)?;
        let model = &emulation.model().name;
        say(&format!("the parallel file system is emulated: {model}"));
    }
    let refused = |error: Error| (error.to_string(), error.hint(), error.exit_code());
    let caught = Caught::listen().map_err(Error::from).map_err(refused)?;
    let burst_buffer = arguments.burst_buffer().map_err(Error::from);
    let burst_buffer = burst_buffer.map_err(refused)?;
    let mut script = JobScript::read(&arguments.script).map_err(refused)?;
    script.burst_buffer = burst_buffer.or(script.burst_buffer);
    script.header.notes().iter().for_each(|note| say(note));
    let own_limit = arguments.time.or(script.header.time_limit);
    let time_limit = own_limit.filter(|limit| !limit.is_zero());
    let output = match &arguments.output {
        Some(path) => Output::File(path),
        None if arguments.json => Output::Error,
        None => Output::Inherit,
    };
    let emulated = emulation
        .as_ref()
        .map(|emulation| || emulation.report().as_value());
    let recording = Recording {
        libraries: libraries::observers(),
        trace: arguments.trace,
        emulated: emulated.as_ref().map(|emulated| emulated as _),
    };
    let order = Order {
        script: &script,
        arguments: &arguments.arguments,
        wishes,
        burst_buffer: !arguments.no_burst_buffer,
        keep: arguments.keep,
        time_limit,
        output,
        shims: &launchers::names(emulation.is_some()),
        emulation: emulation.as_ref().map(Emulation::state_path),
        recording: (!arguments.no_profile).then_some(recording),
    };
    if arguments.dry_run {
        return order
            .preview(progress)
            .map(|preview| Done::Foreseen(Box::new(preview)))
            .map_err(refused);
    }
    status::warn_of_leftovers();
    let outcome = forebay_control::run(&order, caught, progress).map_err(refused)?;
    Ok(Done::Ran(Box::new((outcome, emulation))))
}

fn account(arguments: &RunArguments, outcome: &Outcome, emulation: Option<&Emulation>) -> i32 {
    if let Some(kept) = &outcome.kept {
        messages::failures(outcome.stage_out.iter().flat_map(|staged| &staged.failures));
        let kept = kept.display();
        let id = &outcome.run_id;
        let (why, clean) = if outcome.undelivered {
            (
                "nothing was deleted",
                "stages out what is missing and removes them",
            )
        } else {
            ("the allocation is kept", "removes them")
        };
        messages::hint(&format!(
            "{why}: the data are in {kept}; forebay clean {id} {clean}"
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
