//! What each function of the protocol works with.

use std::cell::OnceCell;

use forebay_host::process::{Credentials, become_user};
use forebay_host::users;

use crate::log::Log;
use crate::messages::{Operation, Outcome};
use crate::{Client, Database, Error, NoAnswer, NodeAddress, Session, Site};

/// The site and its state, open.
pub(crate) struct Context {
    pub(crate) site: Site,
    pub(crate) database: Database,
    pub(crate) log: Log,
    client: OnceCell<Client>,
}

impl Context {
    /// Reads the configuration, becomes SlurmUser if this is root, and opens the state.
    ///
    /// # Errors
    /// If the configuration or the state cannot be used.
    pub(crate) fn open() -> Result<Self, Error> {
        let site = Site::load()?;
        Self::of(site)
    }

    /// The same with a configuration that was read.
    pub(crate) fn of(site: Site) -> Result<Self, Error> {
        if users::is_root() {
            let user = &site.slurm_user;
            become_user(&Credentials {
                user: user.user,
                group: user.group,
                groups: user.groups.clone(),
            })?;
        }
        let database = Database::open(&site)?;
        let log = Log::of(&site);
        Ok(Self { site, database, log, client: OnceCell::new() })
    }

    /// What asks nodes.
    pub(crate) fn client(&self) -> Result<&Client, Error> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let client = Client::new(&self.site)?;
        Ok(self.client.get_or_init(|| client))
    }

    /// Asks a node, and remembers whether it answered.
    pub(crate) fn ask(
        &mut self,
        node: &NodeAddress,
        operation: Operation,
    ) -> Result<Outcome, NoAnswer> {
        let answered = self.client().map_err(NoAnswer::Wrong)?.ask(node, operation);
        self.note_answer(node, &answered);
        answered
    }

    /// Remembers whether a node answered.
    pub(crate) fn note_answer(&mut self, node: &NodeAddress, answer: &Result<Outcome, NoAnswer>) {
        let is_online = match answer {
            Ok(_) => true,
            Err(NoAnswer::Unreachable(_)) => false,
            Err(NoAnswer::Lost(_) | NoAnswer::Wrong(_)) => return,
        };
        if let Err(error) = self.database.note_node(&node.name, is_online) {
            self.log.line(&format!("cannot remember {}: {error}", node.name));
        }
    }

    /// The allocation of a job or a persistent one.
    ///
    /// # Errors
    /// If there is none. The text must not be one that Slurm takes for success.
    pub(crate) fn session(&self, token: &str) -> Result<Session, Error> {
        self.database.session(token)?.ok_or_else(|| {
            Error::new(format!("{token} has no allocation here")).with_hint(
                "it was removed, or the state was lost: scancel the job and submit it again",
            )
        })
    }

    /// A node as the state names it.
    ///
    /// # Errors
    /// If its name cannot be read.
    pub(crate) fn node_named(&self, text: &str) -> Result<NodeAddress, Error> {
        NodeAddress::parse(text, self.site.node_port).map_err(Error::new)
    }

    /// The node that stages and removes the data of an allocation. One that the site has taken out of the pool is gone
    /// for good if it does not answer, and another one takes over: what is done is in the allocation's own journals.
    ///
    /// # Errors
    /// If the state cannot be read or written, or the node gives a wrong answer.
    pub(crate) fn staging_node(&mut self, session: &Session) -> Result<NodeAddress, Error> {
        let node = self.node_named(&session.node)?;
        // Where the pool is gone, the node may still know it.
        let pool = self.site.pool(&session.pool).ok().cloned();
        let Some(pool) = pool.filter(|pool| pool.node(&node.name).is_none()) else {
            return Ok(node);
        };
        let list = Operation::List { pool: pool.name.clone(), path: session.path.clone() };
        match self.ask(&node, list) {
            Ok(_) => return Ok(node), // it may still stage
            Err(NoAnswer::Wrong(error)) => return Err(error),
            Err(NoAnswer::Unreachable(_) | NoAnswer::Lost(_)) => {}
        }
        let turn =
            usize::try_from(session.id).unwrap_or_default() % pool.staging_nodes.len().max(1);
        let Some(next) = pool.staging_nodes.get(turn).cloned() else { return Ok(node) };
        self.database.set_node(session.id, &next.to_string())?;
        let (token, gone, pool) = (&session.token, &node.name, &pool.name);
        self.log.line(&format!(
            "{token}: {next} takes over from {gone}, which is no node of the pool {pool} any more"
        ));
        Ok(next)
    }
}
