//! Carries out an engine's plan on the nodes: starts each step as soon as those before it are ready, and
//! continues with a node whose connection is lost. Never starts a step twice, and never stops one.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use forebay_engine::{EnginePlan, EngineStep};
use forebay_host::clock;

use crate::agent::protocol::{Answer, Request};
use crate::error::Error;
use crate::nodes::Nodes;
use crate::requests::{PendingRequest, RECONNECT_S_MAX, SILENT_S_MAX, WhenLost};

/// The agent reports a late step itself; this is the time for its report, and to connect it again.
const REPORT_MAX: Duration = Duration::from_secs(10 + SILENT_S_MAX + RECONNECT_S_MAX);
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// A step that was sent to its node.
struct Begun<'a> {
    step: &'a EngineStep,
    asked: PendingRequest,
    until: Instant,
}

/// Carries out the steps of a plan. `should_continue` is asked while they start.
///
/// # Errors
/// Names the first step that failed, with its node and the end of its log. Other steps may run.
pub(crate) fn carry_out(
    plan: &EnginePlan,
    nodes: &Arc<Nodes>,
    should_continue: &dyn Fn() -> bool,
) -> Result<(), Error> {
    plan.check(nodes.len()).map_err(Error::WrongPlan)?;
    let mut ready: HashSet<&str> = HashSet::new();
    let mut waiting: Vec<&EngineStep> = plan.steps.iter().collect();
    let mut begun: Vec<Begun> = Vec::new();
    while !(waiting.is_empty() && begun.is_empty()) {
        if !should_continue() {
            return Err(Error::EngineInterrupted);
        }
        let (can_start, others): (Vec<_>, Vec<_>) = waiting
            .into_iter()
            .partition(|step| step.after.iter().all(|name| ready.contains(name.as_str())));
        waiting = others;
        begun.extend(can_start.into_iter().map(|step| {
            let time_max = Duration::from_secs(step.ready_s_max.into()) + REPORT_MAX;
            let request = Request::Start(step.clone());
            let asked = PendingRequest::new(nodes, step.node, request, WhenLost::Repeat);
            Begun { step, asked, until: clock::now() + time_max }
        }));
        let before = ready.len();
        let mut still = Vec::new();
        for mut one in begun {
            match poll_step(&mut one, nodes)? {
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
fn poll_step(begun: &mut Begun, nodes: &Arc<Nodes>) -> Result<bool, Error> {
    let failed = |message: String, log: String| Error::StepFailed {
        node: nodes.name(begun.step.node).to_owned(),
        step: begun.step.id.clone(),
        message,
        log,
    };
    match begun.asked.poll(nodes) {
        None if clock::now() > begun.until => {
            Err(failed("the node does not answer".to_owned(), String::new()))
        }
        None => Ok(false),
        Some(Ok(Answer::Done)) => Ok(true),
        Some(Ok(Answer::Failed { message, log })) => Err(failed(message, log)),
        Some(Ok(_)) => Err(failed(crate::nodes::UNEXPECTED.to_owned(), String::new())),
        Some(Err(message)) => Err(failed(message, String::new())),
    }
}
