//! Lets the other nodes of a job help to stage: asks their agents, and answers their tasks on their side.

use std::sync::Arc;
use std::time::Duration;

use forebay_cluster::{NodeHandle, Session};
use forebay_mover::{RemoteAnswer, RemoteCopier, RemoteCopiers, RemoteRequest, serve_remote};
use forebay_onclose::{NodeTask, serve_closes};
use serde_json::Value;

/// A node copies at most one piece of a large file, or a batch of small ones, in this time.
const COPY_MAX: Duration = Duration::from_secs(300);

/// The agent of one other node.
struct NodeCopier(NodeHandle);

impl RemoteCopier for NodeCopier {
    fn node(&self) -> &str {
        self.0.name()
    }

    fn copy(&self, request: &RemoteRequest) -> Result<RemoteAnswer, String> {
        let text = |error: serde_json::Error| error.to_string();
        let task = NodeTask::Copy(serde_json::to_value(request).map_err(text)?);
        let answer = self.0.ask(serde_json::to_value(task).map_err(text)?, COPY_MAX)?;
        serde_json::from_value(answer).map_err(|error| error.to_string())
    }
}

/// The other nodes of a job.
pub(crate) fn remote_copiers(session: &Session) -> RemoteCopiers {
    let copier = |node| Arc::new(NodeCopier(node)) as Arc<dyn RemoteCopier>;
    RemoteCopiers(session.others().into_iter().map(copier).collect())
}

/// Carries out a task that `forebay run` on another node sent to this node's agent, until `should_continue` returns false.
///
/// # Errors
/// If it cannot be read, or this node cannot begin.
pub fn serve_task(
    task: Value,
    should_continue: &(dyn Fn() -> bool + Sync),
) -> Result<Value, String> {
    let text = |error: serde_json::Error| error.to_string();
    match serde_json::from_value(task).map_err(text)? {
        NodeTask::Copy(request) => {
            let request: RemoteRequest = serde_json::from_value(request).map_err(text)?;
            let answer =
                serve_remote(&request, should_continue).map_err(|error| error.to_string())?;
            serde_json::to_value(&answer).map_err(text)
        }
        NodeTask::Closes(request) => serde_json::to_value(serve_closes(request)?).map_err(text),
    }
}
