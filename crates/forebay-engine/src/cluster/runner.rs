//! Carries out an engine's plan on the nodes: starts each step as soon as those before it are ready.
//! Never starts a step twice, and never stops one.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use forebay_host::clock;

use super::connection::Sent;
use super::nodes::Nodes;
use crate::agent::protocol::{Answer, Request};
use crate::error::Error;
use crate::steps::{EnginePlan, EngineStep};

/// The agent reports a late step itself; this is the time for its report.
const REPORT_MAX: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// A step that was sent to its node.
struct Begun<'a> {
    step: &'a EngineStep,
    sent: Sent,
    until: Instant,
}

/// Carries out the steps of a plan. `go_on` is asked while they start.
///
/// # Errors
/// Names the first step that failed, with its node and the end of its log. Other steps may run.
pub(super) fn carry_out(
    plan: &EnginePlan,
    nodes: &Nodes,
    go_on: &dyn Fn() -> bool,
) -> Result<(), Error> {
    plan.check(nodes.len()).map_err(Error::WrongPlan)?;
    let mut ready: HashSet<&str> = HashSet::new();
    let mut waiting: Vec<&EngineStep> = plan.steps.iter().collect();
    let mut begun: Vec<Begun> = Vec::new();
    while !(waiting.is_empty() && begun.is_empty()) {
        if !go_on() {
            return Err(Error::EngineInterrupted);
        }
        let (can_start, others): (Vec<_>, Vec<_>) = waiting
            .into_iter()
            .partition(|step| step.after.iter().all(|name| ready.contains(name.as_str())));
        waiting = others;
        begun.extend(can_start.into_iter().map(|step| {
            let time_max = Duration::from_secs(step.ready_s_max.into()) + REPORT_MAX;
            let sent = nodes.send(step.node, &Request::Start(step.clone()));
            Begun { step, sent, until: clock::now() + time_max }
        }));
        let before = ready.len();
        let mut still = Vec::new();
        for one in begun {
            match look(&one, nodes)? {
                true => {
                    ready.insert(&one.step.id);
                }
                false => still.push(one),
            }
        }
        begun = still;
        if ready.len() == before {
            clock::sleep(POLL_INTERVAL);
        }
    }
    Ok(())
}

/// Whether a step is ready.
fn look(begun: &Begun, nodes: &Nodes) -> Result<bool, Error> {
    let failed = |message: String, log: String| Error::StepFailed {
        node: nodes.name(begun.step.node).to_owned(),
        step: begun.step.id.clone(),
        message,
        log,
    };
    match begun.sent.poll() {
        None if clock::now() > begun.until => {
            Err(failed("the node does not answer".to_owned(), String::new()))
        }
        None => Ok(false),
        Some(Ok(Answer::Done)) => Ok(true),
        Some(Ok(Answer::Failed { message, log })) => Err(failed(message, log)),
        Some(Ok(_)) => Err(failed(super::nodes::UNEXPECTED.to_owned(), String::new())),
        Some(Err(message)) => Err(failed(message, String::new())),
    }
}
