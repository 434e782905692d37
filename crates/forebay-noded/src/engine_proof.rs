//! How the two ends of a connection to an agent prove that they have the key of the engine. The daemon checks it before
//! it starts an agent, which carries out commands. Each proof is for one node, one allocation and one connection, so
//! nobody between the two can use it elsewhere; the key itself is never sent.

use std::time::Duration;

use forebay_host::system;
use forebay_host::tcp::Connection;
use forebay_site::Error;
use hmac::{Hmac, Mac};
use sha2::Sha256;

/// The begin of the line that asks for an agent: `ENGINE NAME NODE RANDOM`.
pub(crate) const ASKS: &str = "ENGINE ";
/// How long the peer of a connection may take to answer.
pub(crate) const PEER: Duration = Duration::from_secs(10);
/// Bytes of a key. A shorter one was not written to its end.
const KEY_BYTES_MIN: usize = 32;
/// Bytes of a line.
const LINE_BYTES_MAX: usize = 1024;
/// What the daemon says when it has seen the proof.
const ACCEPTED: &[u8] = b"accepted";

/// A request for an agent.
pub(crate) struct AgentRequest {
    /// The name of the allocation.
    pub(crate) name: String,
    /// The node, as its peer names it.
    pub(crate) node: String,
    random: String,
}

impl AgentRequest {
    /// Reads what follows [`ASKS`].
    pub(crate) fn read(line: &[u8]) -> Result<Self, Error> {
        let text = std::str::from_utf8(line).unwrap_or_default();
        let words: Vec<_> = text.split(' ').map(str::to_owned).collect();
        let [name, node, random] = <[String; 3]>::try_from(words)
            .map_err(|_| Error::new("it asks for an agent in the wrong form"))?;
        Ok(Self { name, node, random })
    }

    /// What the side `role` proves, with the random text of the daemon.
    fn keyed(&self, key: &str, role: &str, random: &str) -> Result<Hmac<Sha256>, Error> {
        let key = key.trim();
        if key.len() < KEY_BYTES_MIN {
            return Err(Error::new(format!("{} has no key", self.name)));
        }
        let keyed = Hmac::<Sha256>::new_from_slice(key.as_bytes());
        let keyed = keyed.map_err(|error| Error::new(error.to_string()))?;
        let words = [role, &self.node, &self.name, &self.random, random];
        Ok(words.iter().fold(keyed, |keyed, word| keyed.chain_update(word).chain_update([0])))
    }

    fn tag(&self, key: &str, role: &str, random: &str) -> Result<String, Error> {
        Ok(hex::encode(self.keyed(key, role, random)?.finalize().into_bytes()))
    }

    fn check(&self, key: &str, role: &str, random: &str, tag: &str) -> Result<(), Error> {
        let tag = hex::decode(tag).unwrap_or_default();
        let wrong = |_| Error::new(format!("it does not have the key of {}", self.name));
        self.keyed(key, role, random)?.verify_slice(&tag).map_err(wrong)
    }

    /// Asks for an agent: the side of the first process.
    ///
    /// # Errors
    /// If the peer does not have the key.
    pub(crate) fn ask(
        (name, node, key): (&str, &str, &str),
        peer: &mut Connection,
    ) -> Result<(), Error> {
        let random = system::random_text::<16>()?;
        let asked = Self { name: name.to_owned(), node: node.to_owned(), random };
        let line = format!("{ASKS}{name} {node} {}", asked.random);
        peer.send(line.as_bytes(), PEER)?;
        let answer = peer.receive(LINE_BYTES_MAX, PEER)?;
        let answer = String::from_utf8_lossy(&answer);
        let (random, tag) = answer.split_once(' ').unwrap_or_default();
        asked.check(key, "agent", random, tag)?;
        peer.send(asked.tag(key, "relay", random)?.as_bytes(), PEER)?;
        match peer.receive(LINE_BYTES_MAX, PEER)? == ACCEPTED {
            true => Ok(()),
            false => Err(Error::new(format!("{node} does not accept the key"))),
        }
    }

    /// Answers such a request: the side of the daemon.
    ///
    /// # Errors
    /// If the peer does not have the key.
    pub(crate) fn answer(&self, key: &str, peer: &mut Connection) -> Result<(), Error> {
        let random = system::random_text::<16>()?;
        let line = format!("{random} {}", self.tag(key, "agent", &random)?);
        peer.send(line.as_bytes(), PEER)?;
        let tag = peer.receive(LINE_BYTES_MAX, PEER)?;
        self.check(key, "relay", &random, &String::from_utf8_lossy(&tag))?;
        Ok(peer.send(ACCEPTED, PEER)?)
    }
}

#[cfg(test)]
mod tests {
    use forebay_host::tcp::{self, Acceptor};
    use forebay_host::threads;

    use super::*;

    /// What both sides say, with these keys, names and nodes; the middle may change the line.
    fn proved(relay: (&str, &str, &str), key: &str, change: fn(&mut AgentRequest)) -> (bool, bool) {
        let here = Acceptor::bind("127.0.0.1:0".parse().expect("address")).expect("bind");
        let mut one =
            tcp::connect(&here.address().expect("address").to_string(), PEER).expect("up");
        let mut other = here.accept().expect("accept");
        let key = key.to_owned();
        let answering = threads::spawn(move || {
            let line = other.receive(LINE_BYTES_MAX, PEER).expect("line");
            let mut asked = AgentRequest::read(line.strip_prefix(ASKS.as_bytes()).expect("asks"))
                .expect("form");
            change(&mut asked);
            asked.answer(&key, &mut other).is_ok()
        });
        let answering = answering.expect("thread");
        let asked = AgentRequest::ask(relay, &mut one).is_ok();
        drop(one);
        (asked, answering.join().expect("thread"))
    }

    #[test]
    fn both_sides_need_the_key_and_a_proof_is_for_one_node_and_one_allocation() {
        let key = "k".repeat(32);
        let relay = ("1.2", "n2", key.as_str());
        assert_eq!(proved(relay, &key, |_| {}), (true, true));
        assert_eq!(proved(relay, &"o".repeat(32), |_| {}), (false, false));
        assert_eq!(proved(relay, &key, |asked| asked.node = "n3".to_owned()), (false, false));
        assert_eq!(proved(relay, &key, |asked| asked.name = "1.3".to_owned()), (false, false));
        assert_eq!(proved(("1.2", "n2", ""), "", |_| {}), (false, false));
        for line in ["", "1.2", "1.2 n2", "1.2 n2 x y"] {
            assert!(AgentRequest::read(line.as_bytes()).is_err(), "{line}");
        }
    }
}
