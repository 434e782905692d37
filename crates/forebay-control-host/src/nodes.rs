//! Has nodes do work that takes long, and waits for it. Killing this process stops no work; the next call finds it.
//! Gives up on a node that stays silent. Without `until`, waits without limit for one that reports running work.

use std::path::Path;
use std::time::{Duration, Instant};

use forebay_host::{clock, system, threads};
use parking_lot::Mutex;

use crate::Session;
use crate::call::Call;
use crate::context::Context;
use crate::progress::{NodeProgress, ProgressFile};
use forebay_site::messages::{Operation, Outcome};
use forebay_site::{Client, Error, NoAnswer, NodeAddress, Site};

/// Nodes asked at the same time.
const ASKED_MAX: usize = 32;
/// Nodes that an error names.
const NAMED_MAX: usize = 5;
/// The first wait between two questions; it doubles up to the second.
const INTERVAL_MIN: Duration = Duration::from_millis(25);
const INTERVAL_MAX: Duration = Duration::from_secs(2);
/// The longest wait before failed work is tried again. The first is 1 s, and each next one twice as long.
const RETRY_MAX: Duration = Duration::from_secs(60);
/// How long a daemon may take to be started again. Slurm does not repeat a call that failed because of that.
pub(crate) const RESTART: Duration = Duration::from_secs(15);
/// How long a call waits that comes again.
const POLL: Duration = Duration::from_secs(3);

/// A text that no other attempt has.
pub(crate) fn new_attempt() -> Result<String, Error> {
    Ok(system::random_text::<8>()?)
}

/// Waits that grow.
pub(crate) struct Pause(Duration);

impl Pause {
    pub(crate) fn shortest() -> Self {
        Self(INTERVAL_MIN)
    }

    pub(crate) fn next(&mut self) -> Duration {
        let now = self.0;
        self.0 = (self.0 * 2).min(INTERVAL_MAX);
        now
    }
}

/// How long work is waited for and tried again.
pub(crate) struct TimeLimits {
    /// Tries again for so long after the first failure.
    pub(crate) retry: Duration,
    /// Waits so long for a node that does not answer.
    pub(crate) silence: Duration,
    /// Gives up at this time.
    pub(crate) until: Option<Instant>,
    /// Whether the caller comes again soon, so that what failed before counts, too.
    pub(crate) polls: bool,
}

impl TimeLimits {
    /// Waits for the end.
    pub(crate) fn of(site: &Site, retry: Duration) -> Self {
        Self { retry, silence: site.node_wait, until: None, polls: false }
    }

    /// As the caller wants it.
    pub(crate) fn of_call(call: &Call, site: &Site, retry: Duration) -> Self {
        let until = call.polls.then(|| clock::now() + POLL);
        Self { until, polls: call.polls, ..Self::of(site, retry) }
    }
}

/// The request to a node, with the name of the attempt.
pub(crate) type RequestTo<'a> = dyn Fn(&NodeAddress, &str) -> Operation + 'a;

/// What happens when a node has done it.
pub(crate) type OnDone<'a> =
    &'a mut dyn FnMut(&mut Context, &NodeAddress, Outcome) -> Result<(), Error>;

/// What nodes are to do.
pub(crate) struct Work<'a> {
    /// The allocation.
    pub(crate) session: &'a Session,
    pub(crate) operation: &'a RequestTo<'a>,
    /// Whether the work is still wanted; the error says why not.
    pub(crate) check: &'a dyn Fn(&Context) -> Result<(), Error>,
    /// Called when a node has done it.
    pub(crate) on_done: OnDone<'a>,
    /// Shows how far the nodes are.
    pub(crate) shown: Option<&'a mut ProgressFile>,
    /// Whether what a node reports as an error gets the name of the node.
    pub(crate) names_node: bool,
}

/// What came of the work on the nodes that are not named here: they have done it.
#[derive(Default)]
pub(crate) struct Unfinished {
    /// Nodes where it failed.
    pub(crate) failed: Vec<(NodeAddress, Error)>,
    /// Nodes where it goes on, although time is up.
    pub(crate) pending: Vec<NodeAddress>,
}

impl Unfinished {
    /// An error unless all nodes have done it.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match of_nodes(&self.failed) {
            Some(error) => Err(error),
            None if self.pending.is_empty() => Ok(()),
            None => Err(unfinished(&self.pending)),
        }
    }
}

/// A node that has not done its work yet.
struct Pending {
    node: NodeAddress,
    progress: NodeProgress,
    pause: Pause,
    due: Instant,
}

/// What follows from an answer.
enum Next {
    Done(Outcome),
    Wait(Duration),
    /// It failed for this reason, and is tried again.
    Retry(String, Duration),
    Failed(Error),
}

impl Pending {
    fn on(node: NodeAddress, shown: Option<&ProgressFile>) -> Result<Self, Error> {
        let progress = shown.map_or_else(
            || NodeProgress::new(&node.name),
            |shown| shown.node_progress(&node.name),
        )?;
        let due = clock::now() + progress.wait();
        Ok(Self { node, progress, pause: Pause::shortest(), due })
    }

    fn after(
        &mut self,
        answer: Result<Outcome, NoAnswer>,
        limits: &TimeLimits,
        names_node: bool,
    ) -> Result<Next, Error> {
        Ok(match answer {
            Ok(done @ Outcome::Done { .. }) => Next::Done(done),
            Ok(Outcome::Running { progress }) => {
                self.progress.answered(Some(progress));
                Next::Wait(self.pause.next())
            }
            Ok(Outcome::Failed { reason, is_final }) => {
                self.progress.answered(None);
                self.pause = Pause::shortest();
                let reason = match names_node {
                    true => format!("{}: {reason}", self.node.name),
                    false => reason,
                };
                let wait = Duration::from_secs(1 << self.progress.failures.min(6)).min(RETRY_MAX);
                if is_final || self.progress.failed() + wait > limits.retry {
                    return Ok(Next::Failed(Error::new(reason)));
                }
                self.progress.try_again_after(wait)?;
                Next::Retry(reason, wait)
            }
            Ok(_) => Next::Failed(Error::new(format!("{} answered another question", self.node))),
            Err(NoAnswer::Wrong(error)) => Next::Failed(error),
            Err(NoAnswer::Unreachable(error) | NoAnswer::Lost(error)) => {
                match self.progress.note_silence() > limits.silence {
                    true => Next::Failed(error),
                    false => Next::Wait(self.pause.next()),
                }
            }
        })
    }
}

impl Context {
    /// Has each node do its work, all at the same time.
    ///
    /// # Errors
    /// If the work is not wanted any more, or the state cannot be written.
    pub(crate) fn carry_out(
        &mut self,
        nodes: Vec<NodeAddress>,
        limits: &TimeLimits,
        work: &mut Work,
    ) -> Result<Unfinished, Error> {
        let pending = nodes.into_iter().map(|node| Pending::on(node, work.shown.as_deref()));
        let mut pending = pending.collect::<Result<Vec<_>, _>>()?;
        let mut failed: Vec<(Pending, Error)> = Vec::new();
        while let Some(first) = pending.iter().map(|one| one.due).min() {
            let is_over = limits.until.is_some_and(|until| first > until);
            if let Some(shown) = &mut work.shown {
                let nodes = pending.iter().chain(failed.iter().map(|(one, _)| one));
                shown.show(nodes.map(|one| one.progress.clone()), is_over && limits.polls);
            }
            if is_over {
                break;
            }
            clock::sleep(first.saturating_duration_since(clock::now()));
            (work.check)(self)?;
            pending = self.ask_due(pending, &mut failed, limits, work)?;
        }
        Ok(Unfinished {
            failed: failed.into_iter().map(|(one, error)| (one.node, error)).collect(),
            pending: pending.into_iter().map(|one| one.node).collect(),
        })
    }

    /// Asks the nodes whose time has come. Returns those that are still to be asked.
    fn ask_due(
        &mut self,
        pending: Vec<Pending>,
        failed: &mut Vec<(Pending, Error)>,
        limits: &TimeLimits,
        work: &mut Work,
    ) -> Result<Vec<Pending>, Error> {
        let now = clock::now();
        let (due, mut waiting): (Vec<_>, Vec<_>) =
            pending.into_iter().partition(|one| one.due <= now);
        let requests = due.iter().map(|one| {
            let operation = (work.operation)(&one.node, &one.progress.attempt);
            (one.node.clone(), operation)
        });
        let answers = self.ask_all(requests.collect())?;
        let session = work.session;
        for (mut one, answer) in due.into_iter().zip(answers) {
            let wait = match one.after(answer, limits, work.names_node)? {
                Next::Done(outcome) => {
                    (work.on_done)(self, &one.node, outcome)?;
                    continue;
                }
                Next::Failed(error) => {
                    failed.push((one, error));
                    continue;
                }
                Next::Wait(wait) => wait,
                Next::Retry(reason, wait) => {
                    self.database.set_problem(session.id, Some(&reason))?;
                    let (token, seconds) = (&session.token, wait.as_secs());
                    self.log.line(&format!("{token}: {reason}; trying again in {seconds} s"));
                    wait
                }
            };
            one.due = clock::now() + wait;
            waiting.push(one);
        }
        Ok(waiting)
    }

    /// The node that stages and removes the data of an allocation. One that the site has taken out of the pool and that
    /// cannot be reached is gone for good, and another one takes over: what is done is in the allocation's own journals.
    ///
    /// # Errors
    /// If the state cannot be read or written, or a node gives a wrong answer.
    pub(crate) fn staging_node(&mut self, session: &Session) -> Result<NodeAddress, Error> {
        let node = self.node_named(&session.node)?;
        // Where the pool is gone or was moved, the node may still know it.
        let pool = self.site.pool(&session.pool).ok().cloned();
        let Some(pool) = pool.filter(|pool| {
            pool.node(&node.name).is_none() && pool.path == Path::new(&session.path)
        }) else {
            return Ok(node);
        };
        let (began, mut pause) = (clock::now(), Pause::shortest());
        while !self.probe_node(&node, session)? {
            if began.elapsed() > self.site.node_wait.min(RESTART) {
                return self.taken_over(session, node, &pool.staging_nodes);
            }
            clock::sleep(pause.next());
        }
        Ok(node) // it may still stage
    }

    /// The first node that can be reached, in the order of the allocation, from now on its own. If there is none, the one
    /// of before: the call then names it.
    fn taken_over(
        &mut self,
        session: &Session,
        gone: NodeAddress,
        nodes: &[NodeAddress],
    ) -> Result<NodeAddress, Error> {
        let turn = usize::try_from(session.id).unwrap_or_default() % nodes.len().max(1);
        for next in nodes[turn..].iter().chain(&nodes[..turn]) {
            if self.probe_node(next, session)? {
                self.database.set_node(session.id, &next.to_string())?;
                let (token, gone, pool) = (&session.token, &gone.name, &session.pool);
                self.log.line(&format!(
                    "{token}: {next} takes over from {gone}, which is no node of the pool {pool} any more"
                ));
                return Ok(next.clone());
            }
        }
        Ok(gone)
    }

    /// Whether a node can be reached, even if it does not answer in time.
    fn probe_node(&mut self, node: &NodeAddress, session: &Session) -> Result<bool, Error> {
        let list = Operation::List { pool: session.pool.clone(), path: session.path.clone() };
        match self.ask(node, list) {
            Ok(_) | Err(NoAnswer::Lost(_)) => Ok(true),
            Err(NoAnswer::Unreachable(_)) => Ok(false),
            Err(NoAnswer::Wrong(error)) => Err(error),
        }
    }

    /// Asks nodes, several at a time, and remembers which of them answered. The answers have the order of the requests.
    ///
    /// # Errors
    /// If no node can be asked at all.
    pub(crate) fn ask_all(
        &mut self,
        requests: Vec<(NodeAddress, Operation)>,
    ) -> Result<Vec<Result<Outcome, NoAnswer>>, Error> {
        let answers = asked(self.client()?, &requests);
        for ((node, _), answer) in requests.iter().zip(&answers) {
            self.note_answer(node, answer);
        }
        Ok(answers)
    }
}

/// Asks nodes, several at a time. The answers have the order of the requests.
pub(crate) fn asked(
    client: &Client,
    requests: &[(NodeAddress, Operation)],
) -> Vec<Result<Outcome, NoAnswer>> {
    let (next, answers) = (Mutex::new(requests.iter().enumerate()), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let Some((place, (node, operation))) = next.lock().next() else { return };
            let answer = client.ask(node, operation.clone());
            answers.lock().push((place, answer));
        }
    };
    std::thread::scope(|scope| {
        // Where no further thread can be started, this one does the work.
        for _ in 1..requests.len().min(ASKED_MAX) {
            if threads::spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        work();
    });
    let mut answers = answers.into_inner();
    answers.sort_by_key(|(place, _)| *place);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

/// The error of the first node, with the names of all that failed, or of the first few.
pub(crate) fn of_nodes(failed: &[(NodeAddress, Error)]) -> Option<Error> {
    let (_, first) = failed.first()?;
    if failed.len() == 1 {
        return Some(first.clone());
    }
    let nodes = format!("{} nodes ({})", failed.len(), names_of(failed.iter().map(|one| &one.0)));
    Some(Error { message: format!("{nodes}: {}", first.message), ..first.clone() })
}

/// The error of a call that does not wait longer for these nodes.
pub(crate) fn unfinished(nodes: &[NodeAddress]) -> Error {
    let verb = if nodes.len() == 1 { "has" } else { "have" };
    Error::new(format!("{} {verb} not finished yet", names_of(nodes.iter())))
        .with_hint("it goes on, and will be asked for again")
}

/// The names of nodes, or of the first few.
pub(crate) fn names_of<'a>(nodes: impl ExactSizeIterator<Item = &'a NodeAddress>) -> String {
    let more = if nodes.len() > NAMED_MAX { ", ..." } else { "" };
    let names: Vec<_> = nodes.take(NAMED_MAX).map(|node| node.name.as_str()).collect();
    format!("{}{more}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_names_failed_nodes_and_dots_stand_only_for_more() {
        let failed = |count: usize| {
            let node = |number| NodeAddress { name: format!("n{number}"), port: 1 };
            let nodes = (1..=count).map(|number| (node(number), Error::new("down")));
            of_nodes(&nodes.collect::<Vec<_>>()).map(|error| error.to_string())
        };
        assert_eq!(failed(0), None);
        assert_eq!(failed(1).expect("error"), "down");
        assert_eq!(failed(2).expect("error"), "2 nodes (n1, n2): down");
        assert_eq!(failed(6).expect("error"), "6 nodes (n1, n2, n3, n4, n5, ...): down");
    }
}
