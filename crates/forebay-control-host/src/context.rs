//! The open site: its configuration, state, log and client. Each function of the protocol works with it.
//! A process of root becomes SlurmUser before it opens the state, and stays so.
//! Never loads MUNGE or the secret before it asks a node.

use std::cell::OnceCell;

use forebay_host::process::{Credentials, become_user};
use forebay_host::users;

use crate::log::Log;
use crate::{Database, Session};
use forebay_site::messages::{Operation, Outcome};
use forebay_site::{Client, Error, NoAnswer, NodeAddress, Site};

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
}
