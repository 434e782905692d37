//! Asks the daemon of a node, and limits each wait for it. Never repeats a request: the caller decides.
//! Never takes an answer that is old, is not from root, or lacks the nonce of the request.

use std::time::Duration;

use forebay_host::{system, tcp, threads};

use crate::messages::{self, Answer, LINE_BYTES_MAX, Operation, Outcome, Request, VERSION};
use crate::{Auth, Error, NodeAddress, Side, Site};

/// How long a node may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// How long the look-up of its address may take, and the connection after that.
const FIND: Duration = Duration::from_secs(15);
/// How long it may take to answer. It makes and checks directories meanwhile; longer work it only starts.
const ANSWER: Duration = Duration::from_secs(60);

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoAnswer {
    /// The node got no request.
    Unreachable(Error),
    /// The node got a request, and may have carried it out.
    Lost(Error),
    /// The request cannot be made, or the answer is not that of the node.
    Wrong(Error),
}

impl NoAnswer {
    /// The error.
    pub fn error(self) -> Error {
        match self {
            Self::Unreachable(error) | Self::Lost(error) | Self::Wrong(error) => error,
        }
    }
}

/// Asks daemons, as this process's user.
pub struct Client {
    auth: Auth,
}

impl Client {
    /// A client for the nodes of a site.
    ///
    /// # Errors
    /// As [`Auth::of`].
    pub fn new(site: &Site) -> Result<Self, Error> {
        Ok(Self { auth: Auth::of(site, Side::Control)? })
    }

    /// Sends one request to a node, and returns its answer.
    ///
    /// # Errors
    /// See [`NoAnswer`]. A refusal of the node is a [`NoAnswer::Wrong`].
    pub fn ask(&self, node: &NodeAddress, operation: Operation) -> Result<Outcome, NoAnswer> {
        let nonce = system::random_text::<16>().map_err(|error| NoAnswer::Wrong(error.into()))?;
        let request =
            Request { version: VERSION, node: node.name.clone(), nonce: nonce.clone(), operation };
        let content = messages::written(&request).map_err(NoAnswer::Wrong)?;
        let signed = self.auth.encode(&content, 0).map_err(NoAnswer::Wrong)?;
        let mut connection = connect(node).map_err(NoAnswer::Unreachable)?;
        let answered = connection
            .send(&signed, ANSWER)
            .and_then(|()| connection.receive(LINE_BYTES_MAX, ANSWER));
        let answered = answered.map_err(|error| NoAnswer::Lost(silent(node, &error)))?;
        self.outcome(node, &answered, &nonce).map_err(NoAnswer::Wrong)
    }

    fn outcome(&self, node: &NodeAddress, signed: &[u8], nonce: &str) -> Result<Outcome, Error> {
        let message = self
            .auth
            .decode_of_now(signed)
            .map_err(|error| Error { message: format!("{node}: {}", error.message), ..error })?;
        if message.user != 0 {
            let text =
                format!("the answer of {node} is from the user {}, not from root", message.user);
            return Err(Error::new(text)
                .with_hint(format!("look at who listens there: ss -tlnp on {}", node.name)));
        }
        let answer: Answer = messages::read(&message.content, &node.to_string())?;
        if answer.nonce != nonce {
            return Err(Error::new(format!("the answer of {node} belongs to another request")));
        }
        match answer.outcome {
            Outcome::Refused { reason } => Err(Error::new(format!("{node}: {reason}"))),
            outcome => Ok(outcome),
        }
    }
}

/// The name services may wait for a server of theirs for minutes, so another thread looks the name up.
fn connect(node: &NodeAddress) -> Result<tcp::Connection, Error> {
    let (sender, receiver) = std::sync::mpsc::sync_channel(1);
    let address = node.to_string();
    threads::spawn(move || {
        sender.send(tcp::connect(&address, CONNECT)).ok(); // nobody may wait any more
    })?;
    match receiver.recv_timeout(FIND) {
        Ok(connected) => connected.map_err(|error| silent(node, &error)),
        Err(_) => {
            let (name, seconds) = (&node.name, FIND.as_secs());
            let message = format!("the address of {name} was not found within {seconds} s");
            Err(Error::new(message).with_hint(format!("look at: getent hosts {name}")))
        }
    }
}

fn silent(node: &NodeAddress, error: &forebay_host::Error) -> Error {
    let name = &node.name;
    Error::new(format!("forebay-noded does not answer on {name}: {error}"))
        .with_hint(format!("start it there: systemctl start forebay-noded, and look at journalctl -u forebay-noded on {name}"))
}
