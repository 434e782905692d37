//! Answers one request of the control host, or serves an agent of an engine.
//! Never carries out a request that is old, repeated or for another node, or that neither root nor SlurmUser sent.

use std::sync::Arc;
use std::time::Duration;

use forebay_host::tcp::Connection;
use forebay_site::messages::{
    self, Answer, LINE_BYTES_MAX, Operation, Outcome, PoolAllocation, Request, VERSION,
};
use forebay_site::{Auth, Error, Message, Site, clock_error};

use crate::engine_proof::ASKS;
use crate::engines::Engines;
use crate::owner::Owners;
use crate::pool::{PoolDirectory, is_name};
use crate::tasks::Tasks;
use crate::work::Work;

/// How long a peer may take to send its request, or to take the answer.
const PEER: Duration = Duration::from_secs(10);

/// What requests are answered with.
pub(crate) struct Service {
    pub(crate) site: Site,
    pub(crate) auth: Auth,
    pub(crate) tasks: Tasks,
    pub(crate) owners: Arc<Owners>,
    pub(crate) engines: Arc<Engines>,
    /// The name of this node.
    pub(crate) name: String,
}

impl Service {
    /// Receives a request; `on_received` is called once it is whole. Sends the answer.
    ///
    /// # Errors
    /// If the peer sends nothing that can be answered.
    pub(crate) fn answer(
        &self,
        mut connection: Connection,
        on_received: impl FnOnce(),
    ) -> Result<(), Error> {
        let line = connection.receive(LINE_BYTES_MAX, PEER);
        if let Ok(line) = &line
            && let Some(asked) = line.strip_prefix(ASKS.as_bytes())
        {
            let proved = self.engines.prove(asked, &mut connection);
            on_received();
            return self.engines.serve_agent(&proved?, connection);
        }
        on_received();
        let decoded = self.auth.decode(&line?);
        if let (Err(_), Some(refusal)) = (&decoded, self.auth.refusal()) {
            connection.send(refusal, PEER).ok(); // the error of the line counts
        }
        let message = decoded?;
        // What is out of date is not carried out, and its sender learns why.
        if message.clock_error.is_none() {
            self.auth.reject_replay(&message)?;
        }
        let answer = self.answer_of(&message);
        let content = messages::written(&answer)?;
        let signed = self.auth.encode(&content, message.user)?;
        Ok(connection.send(&signed, PEER)?)
    }

    fn answer_of(&self, message: &Message) -> Answer {
        let (user, content) = (message.user, message.content.as_slice());
        let refused = |nonce: String, error: Error| Answer {
            version: VERSION,
            nonce,
            outcome: Outcome::Refused { reason: error.to_string() },
        };
        if user != 0 && user != self.site.slurm_user.user {
            let (user, ours) = (forebay_host::users::user_named(user), &self.site.slurm_user.name);
            let error = Error::new(format!("{user} may not ask: only {ours} and root may"));
            return refused(
                nonce_of(content),
                error.with_hint("is slurm_user the same on all hosts?"),
            );
        }
        // The answer is out of date for the control host, too, which then names the clocks itself.
        if let Some(error) = &message.clock_error {
            return refused(nonce_of(content), clock_error(error));
        }
        let request: Request = match messages::read(content, "the control host") {
            Ok(request) => request,
            Err(error) => return refused(nonce_of(content), error),
        };
        if !is_same_node(&request.node, &self.name) {
            let message =
                format!("this node is {}, the request is for {}", self.name, request.node);
            let hint = "give forebay-noded the name that Slurm uses: --name NAME";
            return refused(request.nonce, Error::new(message).with_hint(hint));
        }
        let outcome = self.carry_out(request.operation);
        let outcome = outcome
            .unwrap_or_else(|error| Outcome::Failed { reason: error.to_string(), is_final: false });
        Answer { version: VERSION, nonce: request.nonce, outcome }
    }

    fn carry_out(&self, operation: Operation) -> Result<Outcome, Error> {
        match operation {
            Operation::Create { place, capacity_bytes, key } => {
                check_place(&place)?;
                let _creating = self.tasks.begin_to_create(&place.name)?;
                let pool = PoolDirectory::open(&self.site, &place.pool, &place.path)?;
                pool.make(&place, capacity_bytes)?;
                if let Some(key) = &key {
                    pool.keep_key(&place.name, key)?;
                }
                let work = Work::Prepare {
                    namespace: place.namespace(),
                    key,
                    directory: place.directory(),
                    is_shared: place.is_shared,
                    quota: pool.ceph_quota(capacity_bytes),
                };
                self.owners.run(&place, &work)
            }
            Operation::Check { place, user, group } => {
                check_place(&place)?;
                PoolDirectory::open(&self.site, &place.pool, &place.path)?.check(&place)?;
                let namespace = place.namespace();
                self.owners
                    .run(&PoolAllocation { user, group, ..place }, &Work::Check { namespace })
            }
            Operation::Stage { place, staging, attempt } => {
                check_place(&place)?;
                for (_, place) in &staging.persistent {
                    check_place(place)?;
                }
                self.tasks.stage(&place, staging, attempt)
            }
            Operation::Start { place, nodes, capacity_bytes, redundancy, attempt } => {
                check_place(&place)?;
                self.tasks.start_engine(&place, nodes, (capacity_bytes, redundancy), attempt)
            }
            Operation::Remove { place, attempt, is_made } => {
                check_place(&place)?;
                self.tasks.remove(&place, is_made, attempt)
            }
            Operation::Count => Ok(Outcome::Counts { counts: self.tasks.counts() }),
            Operation::List { pool, path } => {
                let names = PoolDirectory::open(&self.site, &pool, &path)?.list()?;
                Ok(Outcome::Names { names })
            }
        }
    }
}

/// The name becomes a part of paths.
fn check_place(place: &PoolAllocation) -> Result<(), Error> {
    if place.user == 0 {
        return Err(Error::new("root cannot have an allocation"));
    }
    match is_name(&place.name) {
        true => Ok(()),
        false => Err(Error::new(format!("{:?} is no name of an allocation", place.name))),
    }
}

/// The answer to a request of another version repeats its nonce, too.
fn nonce_of(content: &[u8]) -> String {
    #[derive(serde::Deserialize)]
    struct Named {
        nonce: String,
    }
    serde_json::from_slice(content).map_or_else(|_| String::new(), |named: Named| named.nonce)
}

/// Slurm may use short names where hosts have long ones.
pub(crate) fn is_same_node(asked: &str, ours: &str) -> bool {
    let first = |name: &str| name.split('.').next().unwrap_or_default().to_ascii_lowercase();
    let is_short = |name: &str| !name.contains('.');
    asked.eq_ignore_ascii_case(ours)
        || ((is_short(asked) || is_short(ours)) && first(asked) == first(ours))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_long_names_of_one_node_are_the_same() {
        assert!(
            is_same_node("n1", "n1")
                && is_same_node("n1", "N1.site.org")
                && is_same_node("n1.site.org", "n1")
        );
        assert!(
            !is_same_node("n1", "n2")
                && !is_same_node("n1.a.org", "n1.b.org")
                && !is_same_node("", "n1")
        );
    }
}
