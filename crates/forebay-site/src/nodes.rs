//! Has nodes do work that takes long, and waits for it. Killing this process stops no work; the next call finds it.

use std::time::{Duration, Instant};

use forebay_host::{clock, system, threads};
use parking_lot::Mutex;

use crate::context::Context;
use crate::messages::{Operation, Outcome};
use crate::{Client, Error, NoAnswer, NodeAddress};

/// Nodes asked at the same time.
const ASKED_MAX: usize = 32;
/// Nodes that an error names.
const NAMED_MAX: usize = 5;
/// The first wait between two questions; it doubles up to the second.
const INTERVAL_MIN: Duration = Duration::from_millis(25);
const INTERVAL_MAX: Duration = Duration::from_secs(2);
/// The first wait before failed work is tried again; it doubles up to the second.
const RETRY_MIN: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(60);

/// A text that no other attempt has.
pub(crate) fn new_attempt() -> Result<String, Error> {
    Ok(system::random_text::<8>()?)
}

/// Waits that grow.
pub(crate) struct Pause(Duration, Duration);

impl Pause {
    pub(crate) fn usual() -> Self {
        Self(INTERVAL_MIN, INTERVAL_MAX)
    }

    pub(crate) fn next(&mut self) -> Duration {
        let now = self.0;
        self.0 = (self.0 * 2).min(self.1);
        now
    }
}

/// How long work is waited for and tried again.
pub(crate) struct Patience {
    /// Tries again for so long after the first failure.
    pub(crate) retry: Duration,
    /// Waits so long for a node that does not answer.
    pub(crate) silence: Duration,
    /// Gives up at this time.
    pub(crate) until: Option<Instant>,
}

/// What nodes are to do.
pub(crate) struct Work<'a> {
    /// The token of the allocation, for the log.
    pub(crate) token: &'a str,
    /// The request to a node, with the name of the attempt.
    pub(crate) operation: &'a dyn Fn(&NodeAddress, &str) -> Operation,
    /// Whether the work is still wanted; the error says why not.
    pub(crate) check: &'a dyn Fn(&Context) -> Result<(), Error>,
    /// Called when a node has done it.
    pub(crate) on_done: &'a mut dyn FnMut(&mut Context, &NodeAddress, Outcome) -> Result<(), Error>,
}

/// A node that has not done its work yet.
struct Pending {
    node: NodeAddress,
    attempt: String,
    pause: Pause,
    retry: Pause,
    silent_since: Option<Instant>,
    failing_since: Option<Instant>,
    due: Instant,
}

/// What follows from an answer.
enum Next {
    Done(Outcome),
    Wait(Duration),
    Failed(Error),
}

impl Pending {
    fn on(node: NodeAddress) -> Result<Self, Error> {
        Ok(Self {
            node,
            attempt: new_attempt()?,
            pause: Pause::usual(),
            retry: Pause(RETRY_MIN, RETRY_MAX),
            silent_since: None,
            failing_since: None,
            due: clock::now(),
        })
    }

    fn after(
        &mut self,
        answer: Result<Outcome, NoAnswer>,
        patience: &Patience,
        log: &dyn Fn(&str),
    ) -> Result<Next, Error> {
        let next = match answer {
            Ok(done @ Outcome::Done { .. }) => return Ok(Next::Done(done)),
            Ok(Outcome::Running) => {
                self.silent_since = None;
                self.pause.next()
            }
            Ok(Outcome::Failed { reason, is_final }) => {
                self.silent_since = None;
                let since = *self.failing_since.get_or_insert_with(clock::now);
                let wait = self.retry.next();
                if is_final || since.elapsed() + wait > patience.retry {
                    return Ok(Next::Failed(Error::new(reason)));
                }
                log(&format!("{reason}; trying again in {} s", wait.as_secs()));
                self.attempt = new_attempt()?;
                self.pause = Pause::usual();
                wait
            }
            Ok(_) => {
                let error = Error::new(format!("{} answered another question", self.node));
                return Ok(Next::Failed(error));
            }
            Err(NoAnswer::Wrong(error)) => return Ok(Next::Failed(error)),
            Err(NoAnswer::Unreachable(error) | NoAnswer::Lost(error)) => {
                let since = *self.silent_since.get_or_insert_with(clock::now);
                if since.elapsed() > patience.silence {
                    return Ok(Next::Failed(error));
                }
                self.pause.next()
            }
        };
        if patience.until.is_some_and(|until| clock::now() + next > until) {
            let error = Error::new(format!("{} has not finished yet", self.node));
            return Ok(Next::Failed(error.with_hint("it goes on, and will be asked for again")));
        }
        Ok(Next::Wait(next))
    }
}

impl Context {
    /// Has each node do its work, all at the same time. Returns the nodes that failed; the others have done it.
    ///
    /// # Errors
    /// If the work is not wanted any more, or the state cannot be written.
    pub(crate) fn carry_out(
        &mut self,
        nodes: Vec<NodeAddress>,
        patience: &Patience,
        work: &mut Work,
    ) -> Result<Vec<(NodeAddress, Error)>, Error> {
        let pending = nodes.into_iter().map(Pending::on);
        let (mut pending, mut failed) = (pending.collect::<Result<Vec<_>, _>>()?, Vec::new());
        while !pending.is_empty() {
            (work.check)(self)?;
            let now = clock::now();
            let (due, mut waiting): (Vec<_>, Vec<_>) =
                pending.into_iter().partition(|one| one.due <= now);
            let requests = due.iter().map(|one| {
                let operation = (work.operation)(&one.node, &one.attempt);
                (one.node.clone(), operation)
            });
            let answers = self.ask_all(requests.collect())?;
            for (mut one, answer) in due.into_iter().zip(answers) {
                let log = |text: &str| self.log.line(&format!("{}: {text}", work.token));
                match one.after(answer, patience, &log)? {
                    Next::Done(outcome) => (work.on_done)(self, &one.node, outcome)?,
                    Next::Failed(error) => failed.push((one.node, error)),
                    Next::Wait(wait) => {
                        one.due = clock::now() + wait;
                        waiting.push(one);
                    }
                }
            }
            pending = waiting;
            if let Some(first) = pending.iter().map(|one| one.due).min() {
                clock::sleep(first.saturating_duration_since(clock::now()));
            }
        }
        Ok(failed)
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

fn asked(client: &Client, requests: &[(NodeAddress, Operation)]) -> Vec<Result<Outcome, NoAnswer>> {
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
