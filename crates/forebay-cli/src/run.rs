//! `forebay run`.

use forebay_control::{FAILED_BEFORE_THE_JOB, JobScript, Order, Outcome, Output};
use forebay_host::process::Events;
use serde::Serialize;

use crate::arguments::{RunArguments, store};
use crate::emulation::{self, Emulated, Emulation};
use crate::messages::{self, fail, say};
use crate::progress::Progress;

/// Failures named one by one; `--json` has all.
const FAILURES_SHOWN: usize = 10;
const LAUNCHERS: [&str; 3] = ["mpiexec", "mpirun", "srun"];
const LAUNCHERS_AND_LFS: [&str; 4] = ["mpiexec", "mpirun", "srun", "lfs"];

/// The one JSON object of `forebay run --json`.
#[derive(Serialize)]
struct Account<'a> {
    #[serde(flatten)]
    outcome: &'a Outcome,
    emulated: Option<Emulated>,
}

pub fn run(arguments: &RunArguments) -> i32 {
    let emulation = match emulation::enter(&arguments.emulation) {
        Ok(emulation) => emulation,
        Err((message, hint)) => return fail(&message, hint.as_deref(), FAILED_BEFORE_THE_JOB),
    };
    if let Some(emulation) = &emulation {
        if let Err((message, hint)) = emulation.check_store(store(arguments.store.as_ref())) {
            return fail(&message, hint.as_deref(), FAILED_BEFORE_THE_JOB);
        }
        let model = &emulation.model().name;
        say(&format!("the parallel file system is emulated: {model}"));
    }
    match carry_out(arguments, emulation.is_some()) {
        Ok(outcome) => account(arguments, &outcome, emulation.as_ref()),
        Err(error) => fail(
            &error.to_string(),
            error.hint().as_deref(),
            error.exit_code(),
        ),
    }
}

fn carry_out(arguments: &RunArguments, emulated: bool) -> Result<Outcome, forebay_control::Error> {
    let events = Events::listen()?;
    let script = JobScript::read(&arguments.script)?;
    let unused = &script.header.without_effect;
    if !unused.is_empty() {
        say(&format!(
            "#SBATCH options without effect here: {}",
            unused.join(" ")
        ));
    }
    let output = match &arguments.output {
        Some(path) => Output::File(path),
        None if arguments.json => Output::Error,
        None => Output::Inherit,
    };
    let store = store(arguments.store.as_ref());
    let order = Order {
        script: &script,
        arguments: &arguments.arguments,
        store: store.as_deref(),
        burst_buffer: !arguments.no_burst_buffer,
        output,
        shims: if emulated {
            &LAUNCHERS_AND_LFS
        } else {
            &LAUNCHERS
        },
    };
    forebay_control::run(&order, &events, &Progress::default())
}

fn account(arguments: &RunArguments, outcome: &Outcome, emulation: Option<&Emulation>) -> i32 {
    if let Some(kept) = &outcome.kept {
        let failures = outcome.stage_out.iter().flat_map(|staged| &staged.failures);
        let count = failures.clone().count();
        for (path, reason) in failures.take(FAILURES_SHOWN) {
            messages::error(&format!("stage out: {path}: {reason}"));
        }
        if count > FAILURES_SHOWN {
            messages::error(&format!("stage out: and {} more", count - FAILURES_SHOWN));
        }
        let kept = kept.display();
        let text = "nothing was deleted: the data are in";
        messages::hint(&format!("{text} {kept}; copy them, then rm -r {kept}"));
    }
    if arguments.json {
        let emulated = emulation.map(Emulation::report);
        return match serde_json::to_string(&Account { outcome, emulated }) {
            Ok(line) => messages::data(&line, outcome.exit_code),
            Err(error) => fail(&format!("cannot write JSON: {error}"), None, 1),
        };
    }
    outcome.exit_code
}
