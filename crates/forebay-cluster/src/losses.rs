//! Gives up the data of servers that have no copy, so that the nodes go on with the rest. Only where the engine has
//! steps for it, and all other servers serve.

use std::sync::Arc;
use std::time::Duration;

use forebay_engine::{EngineStep, Loss, NodesUse, ServerGroup, serve_without};
use forebay_host::files;
use parking_lot::Mutex;

use crate::agent::protocol::{Answer, Request};
use crate::monitor::Findings;
use crate::nodes::Nodes;

/// The time in which the agent of a node answers, beyond that of the step.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// What can be given up, and what was.
pub(crate) struct Losses {
    pub(crate) nodes: Arc<Nodes>,
    pub(crate) losses: Vec<Loss>,
    /// For each node.
    pub(crate) tell: Vec<EngineStep>,
    pub(crate) servers: Vec<ServerGroup>,
    pub(crate) findings: Arc<Mutex<Findings>>,
    pub(crate) nodes_use: NodesUse,
}

impl Losses {
    /// Gives up the data of a node's server, which ended or whose node is lost. None: the engine cannot, or other
    /// servers are missing, too.
    pub(crate) fn give_up(&self, node: usize) -> Option<Result<(), String>> {
        let gone = self.findings.lock().gone.clone();
        let mut without = gone.clone();
        let loss = self.losses.iter().find(|loss| loss.node == node)?;
        let is_new = without.given_up.insert(loss.server.clone());
        if !is_new || !serve_without(&self.servers, &without) {
            return None;
        }
        Some(self.carry_out(loss, gone.lost.contains(&node)))
    }

    fn carry_out(&self, loss: &Loss, is_node_lost: bool) -> Result<(), String> {
        if is_node_lost {
            self.take(&[&loss.fence])?;
        }
        self.take(&[&loss.prepare])?;
        let lost = self.findings.lock().gone.lost.clone();
        // An agent that took over does not repeat a step of the same name.
        let of_this = |step: &EngineStep| {
            let id = format!("{}-{}", step.id, loss.node + 1);
            EngineStep { id, ..step.clone() }
        };
        let tell = self.tell.iter().filter(|step| !lost.contains(&step.node)).map(of_this);
        let tell: Vec<_> = tell.collect();
        self.take(&tell.iter().collect::<Vec<_>>())?;
        self.take(&[&loss.finish])?;
        let mut findings = self.findings.lock();
        findings.gone.given_up.insert(loss.server.clone());
        findings.are_data_lost = true;
        let path = self.nodes_use.given_up();
        let given_up = &findings.gone.given_up;
        let written = files::write_json(&path, &path.with_extension("fresh"), given_up);
        written.map_err(|error| error.to_string())
    }

    /// Carries out steps at the same time.
    pub(crate) fn take(&self, steps: &[&EngineStep]) -> Result<(), String> {
        let requests = steps.iter().map(|&step| (step.node, Request::Start(step.clone())));
        let step_s_max = steps.iter().map(|step| step.ready_s_max).max().unwrap_or_default();
        let time_max = Duration::from_secs(step_s_max.into()) + ANSWER_MAX;
        let answers = self.nodes.ask(requests.collect(), time_max, &|| true);
        let failed = |(step, answer): (&&EngineStep, Result<Answer, String>)| match answer {
            Ok(Answer::Done) => None,
            Ok(Answer::Failed { message, log }) => Some(format!("{}: {message}\n{log}", step.id)),
            Ok(_) => Some(format!("{}: {}", step.id, crate::nodes::UNEXPECTED)),
            Err(message) => Some(format!("{}: {message}", step.id)),
        };
        match steps.iter().zip(answers).find_map(failed) {
            None => Ok(()),
            Some(message) => Err(message.trim_end().to_owned()),
        }
    }
}
