//! Messages that are signed with a secret of the site: HMAC-SHA-256, RFC 2104 and FIPS 198-1. A line is
//! `HMAC:TAG:TIME:NONCE:CONTENT`, with the time in milliseconds since 1970. The tag is that of the name of the side that
//! sends it, a line feed, and all that follows the tag. The content is not encrypted.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use forebay_host::files::{self, Kind};
use forebay_host::users::{self, Account};
use forebay_host::{clock, system};
use hmac::{Hmac, Mac};
use parking_lot::Mutex;
use sha2::Sha256;

use crate::auth::{Message, Side};
use crate::{Error, changeable_parent};

const PREFIX: &[u8] = b"HMAC:";
/// Bytes of a tag in hexadecimal digits.
const TAG_BYTES: usize = 64;
/// Bytes of the secret.
const BYTES_MIN: usize = 32;
const BYTES_MAX: u64 = 4096;
/// How far the time of a message may be from that of its receiver, as with MUNGE.
const AGE_MAX: Duration = Duration::from_secs(300);

/// A secret that the hosts of a site share.
pub struct Secret {
    keyed: Hmac<Sha256>,
    shown: String,
    side: Side,
    slurm_user: u32,
    began: Instant,
    /// Times and nonces of the messages that a repetition would have.
    seen: Mutex<BTreeSet<(u64, String)>>,
}

impl Secret {
    /// Reads the file. On the control host `slurm_user` reads it, on a node root.
    ///
    /// # Errors
    /// If it is missing, too short, or other users could read or exchange it.
    pub fn load(file: &Path, slurm_user: &Account, side: Side) -> Result<Self, Error> {
        let bytes = read(file, slurm_user)?;
        let keyed = Hmac::new_from_slice(&bytes).map_err(|error| Error::new(error.to_string()))?;
        Ok(Self {
            keyed,
            shown: file.display().to_string(),
            side,
            slurm_user: slurm_user.user,
            began: clock::now(),
            seen: Mutex::default(),
        })
    }

    /// A signed line.
    pub(crate) fn encode(&self, content: &[u8]) -> Result<Vec<u8>, Error> {
        let nonce = system::random_text::<16>()?;
        let mut signed = format!("{}:{nonce}:", clock::unix_milliseconds()).into_bytes();
        signed.extend_from_slice(content);
        let tag = self.signing(self.side, &signed).finalize().into_bytes();
        let tag: String = tag.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok([PREFIX, tag.as_bytes(), b":", &signed].concat())
    }

    /// Checks a line of the other side.
    pub(crate) fn decode(&self, line: &[u8]) -> Result<Message, Error> {
        let (other, user) = match self.side {
            Side::Control => (Side::Node, 0),
            Side::Node => (Side::Control, self.slurm_user),
        };
        let wrong = || {
            let shown = &self.shown;
            Error::new(format!("the message is not signed with the secret {shown} of this host"))
                .with_hint(format!(
                    "compare on both hosts: sha256sum {shown}; and restart forebay-noded"
                ))
        };
        let (tag, signed) = split(line).ok_or_else(wrong)?;
        // It takes as long for each wrong tag.
        self.signing(other, signed).verify_slice(&tag).map_err(|_| wrong())?;
        let mut parts = signed.splitn(3, |byte| *byte == b':');
        let mut next = || parts.next().ok_or_else(wrong);
        let (time, nonce, content) = (text(next()?), text(next()?), next()?.to_vec());
        let time_ms: u64 = time.parse().map_err(|_| wrong())?;
        let age = match i128::from(time_ms) - now_ms() {
            ahead if ahead > ms(AGE_MAX) => Some("from the future"),
            ahead if ahead < -ms(AGE_MAX) => Some("too old"),
            _ => None,
        };
        let clock_error =
            age.map(|age| format!("the message is {age}: the clocks of two hosts differ"));
        Ok(Message { content, user, clock_error, stamp: Some((time_ms, nonce)) })
    }

    /// Refuses a message that came before. What came before the program started is not known any more, so messages of
    /// that time are refused, too: a sender without an answer sends again.
    pub(crate) fn reject_replay(&self, time_ms: u64, nonce: &str) -> Result<(), Error> {
        if now_ms() - i128::from(time_ms) > ms(self.began.elapsed()) {
            let message = "the message was sent before this program started";
            return Err(Error::new(message).with_hint("it comes again; else compare the clocks"));
        }
        let mut seen = self.seen.lock();
        let is_kept = |time_ms: u64| now_ms() - i128::from(time_ms) <= ms(AGE_MAX);
        while seen.first().is_some_and(|(time_ms, _)| !is_kept(*time_ms)) {
            seen.pop_first();
        }
        match seen.insert((time_ms, nonce.to_owned())) {
            true => Ok(()),
            false => Err(Error::new("the message came before: somebody sends it again")),
        }
    }

    fn signing(&self, side: Side, signed: &[u8]) -> Hmac<Sha256> {
        let name: &[u8] = match side {
            Side::Control => b"request\n",
            Side::Node => b"answer\n",
        };
        self.keyed.clone().chain_update(name).chain_update(signed)
    }
}

fn now_ms() -> i128 {
    i128::try_from(clock::unix_milliseconds()).unwrap_or(i128::MAX)
}

fn ms(duration: Duration) -> i128 {
    i128::try_from(duration.as_millis()).unwrap_or(i128::MAX)
}

/// The tag of a line, and what it is the tag of.
fn split(line: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let rest = line.strip_prefix(PREFIX)?;
    let (digits, signed) = (rest.get(..TAG_BYTES)?, rest.get(TAG_BYTES..)?.strip_prefix(b":")?);
    let digits = std::str::from_utf8(digits).ok()?;
    let pairs = (0..TAG_BYTES).step_by(2).map(|at| digits.get(at..at + 2));
    let tag = pairs.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect::<Option<_>>()?;
    Some((tag, signed))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn read(path: &Path, slurm_user: &Account) -> Result<Vec<u8>, Error> {
    let (shown, name) = (path.display(), &slurm_user.name);
    let error =
        |what: &str, hint: String| Error::new(format!("the secret {shown} {what}")).with_hint(hint);
    let file = match files::open_source(path, false) {
        Err(denied) if denied.is_denied() => {
            let hint = format!("as root on the control host: chown {name} {shown}");
            return Err(error(&format!("cannot be read: {}", denied.source), hint));
        }
        Err(missing) if missing.is_not_found() => {
            let hint = "make it on one host and copy it to all: openssl rand -hex 32".to_owned();
            return Err(error("is missing", hint));
        }
        opened => opened?,
    };
    let found = files::status_of(&file, path)?;
    if found.kind != Kind::File {
        return Err(error("is no regular file", "put the file itself there".to_owned()));
    }
    if ![0, slurm_user.user].contains(&found.owner) {
        let owner = users::user_named(found.owner);
        let hint = format!("as root: chown root {shown}, and {name} on the control host");
        return Err(error(&format!("belongs to {owner}"), hint));
    }
    if found.mode & 0o077 != 0 {
        let why = format!("is open to other users (mode {:04o})", found.mode);
        return Err(error(
            &why,
            format!("make a new one: others may have read it; chmod 600 {shown}"),
        ));
    }
    if let Some(open) = changeable_parent(path, &[0, slurm_user.user])? {
        let open = open.display();
        let hint = format!("as root: chown root {open}; chmod go-w {open}");
        return Err(error(&format!("could be exchanged by the users who can write {open}"), hint));
    }
    let mut bytes = Vec::new();
    let read = file.take(BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|failed| {
        error(&format!("cannot be read: {failed}"), "look at its disk".to_owned())
    })?;
    if bytes.len() < BYTES_MIN || bytes.len() as u64 > BYTES_MAX {
        let why =
            format!("has {} bytes; from {BYTES_MIN} to {BYTES_MAX} are possible", bytes.len());
        return Err(error(&why, "make it with: openssl rand -hex 32".to_owned()));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn account() -> Account {
        let user = users::user_id();
        Account { user, name: "slurm".to_owned(), group: 0, groups: Vec::new() }
    }

    /// A file in a directory that nobody else can change.
    fn written(bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let scratch = tempfile::tempdir().expect("tempdir");
        let path = scratch.path().join("secret");
        files::write_atomically(&path, &scratch.path().join("fresh"), bytes).expect("written");
        files::set_mode(&path, 0o600).expect("closed");
        (scratch, path)
    }

    fn sides(bytes: &[u8]) -> (Secret, Secret) {
        let (_scratch, path) = written(bytes);
        let side = |side| Secret::load(&path, &account(), side).expect("loaded");
        (side(Side::Control), side(Side::Node))
    }

    fn error_of<T>(result: Result<T, Error>) -> String {
        result.err().expect("refused").to_string()
    }

    #[test]
    fn message_is_accepted_once_and_as_that_of_its_side() {
        let (control, node) = sides(&[7; 32]);
        clock::sleep(Duration::from_millis(2)); // a message of the millisecond of the start may count as older
        let line = control.encode(b"a:b:c").expect("signed");
        let message = node.decode(&line).expect("true");
        assert_eq!((message.content.as_slice(), message.user), (&b"a:b:c"[..], users::user_id()));
        assert_eq!(message.clock_error, None);
        let (time_ms, nonce) = message.stamp.expect("stamp");
        node.reject_replay(time_ms, &nonce).expect("first");
        assert!(error_of(node.reject_replay(time_ms, &nonce)).contains("came before"));
        // A request is no answer.
        assert!(error_of(control.decode(&line)).contains("is not signed with the secret"));
        let answer = node.encode(b"x").expect("signed");
        assert_eq!(control.decode(&answer).expect("true").user, 0);
    }

    #[test]
    fn message_of_another_secret_or_with_a_change_is_refused() {
        let (control, node) = sides(&[7; 32]);
        let (other, _) = sides(&[8; 32]);
        let line = control.encode(b"content").expect("signed");
        for at in 0..line.len() {
            let mut changed = line.clone();
            changed[at] ^= 1;
            assert!(node.decode(&changed).is_err(), "{at}");
        }
        let short = &line[..line.len() - 1];
        for wrong in
            [short, b"", b"HMAC:", b"MUNGE:AAAA:", &other.encode(b"content").expect("signed")]
        {
            let error = error_of(node.decode(wrong));
            assert!(error.contains("of this host; compare on both hosts: sha256sum "), "{error}");
        }
    }

    #[test]
    fn message_of_another_time_is_named_and_one_of_before_the_start_refused() {
        let (control, node) = sides(&[7; 32]);
        for (time_ms, wanted) in [
            (0, Some("the message is too old: the clocks of two hosts differ")),
            (u64::MAX, Some("the message is from the future: the clocks of two hosts differ")),
        ] {
            let signed = format!("{time_ms}:n:x").into_bytes();
            let tag = control.signing(Side::Control, &signed).finalize().into_bytes();
            let tag: String = tag.iter().map(|byte| format!("{byte:02x}")).collect();
            let line = [PREFIX, tag.as_bytes(), b":", &signed].concat();
            assert_eq!(node.decode(&line).expect("true").clock_error.as_deref(), wanted);
        }
        let now = u64::try_from(now_ms()).expect("now");
        assert!(
            error_of(node.reject_replay(now - 60_000, "n")).contains("before this program started")
        );
        node.reject_replay(now + 60_000, "n").expect("a clock that is ahead");
    }

    #[test]
    fn tag_is_that_of_the_standard() {
        // RFC 4231, test case 2, with this key and text.
        let keyed = Hmac::<Sha256>::new_from_slice(b"Jefe").expect("key");
        let tag = keyed.chain_update(b"what do ya want for nothing?").finalize().into_bytes();
        assert_eq!(tag[..4], [0x5b, 0xdc, 0xc1, 0x46]);
    }

    #[test]
    fn file_that_others_could_read_or_exchange_is_refused() {
        let (scratch, path) = written(&[7; 31]);
        let load = |path: &Path| Secret::load(path, &account(), Side::Node);
        assert!(error_of(load(&path)).contains("has 31 bytes; from 32 to 4096 are possible"));
        let (_kept, whole) = written(&[7; 32]);
        load(&whole).expect("loaded");
        for mode in [0o640, 0o604, 0o620] {
            files::set_mode(&whole, mode).expect("set");
            assert!(error_of(load(&whole)).contains("is open to other users (mode 06"));
        }
        files::set_mode(&whole, 0o400).expect("set");
        load(&whole).expect("loaded");
        files::set_mode(scratch.path(), 0o777).expect("set");
        let error = error_of(load(&path));
        assert!(error.contains("could be exchanged by the users who can write"), "{error}");
        assert!(
            error_of(load(&scratch.path().join("none")))
                .contains("is missing; make it on one host")
        );
        files::make_link(&whole, &scratch.path().join("link")).expect("linked");
        assert!(load(&scratch.path().join("link")).is_err(), "a link");
        assert!(error_of(load(Path::new("/"))).contains("is no regular file"));
    }
}
