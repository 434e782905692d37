//! What mounts tell each other: which nodes have lazy files, and that some node needs a file strict.
//!
//! Announcements are extended attributes of the root. CephFS lets each node keep them until another node changes one, so
//! that looking at them sends no message. Who sees a change asks for the locks of its own files.

use std::ffi::{CStr, CString};
use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::client::Client;
use crate::error::Errno;

/// What the names of all announcements begin with.
const PREFIX: &[u8] = b"user.forebay.";
/// A node has lazy files as long as it has an attribute whose name begins so. The name changes with each lazy file.
const LAZY_PREFIX: &[u8] = b"user.forebay.lazy.";
/// Some node needs a file strict. The value changes each time. It is never removed: clients keep attributes only if
/// there are some.
const STRICT: &CStr = c"user.forebay.strict";
/// `XATTR_CREATE`.
const ONLY_NEW: i32 = 1;
/// The names of some hundred nodes, and the longest list of the kernel.
const NAMES_BYTES: usize = 4096;
const NAMES_BYTES_MAX: usize = 64 << 10;

/// What this node announces, and what it sees of others.
pub(crate) struct Announcements {
    client: Arc<Client>,
    own: Mutex<Own>,
}

#[derive(Default)]
struct Own {
    /// Lazy files of this node.
    lazy_files: u64,
    /// The attribute that says so.
    name: Option<CString>,
    last: u64,
}

impl Announcements {
    /// Makes what nodes look at, if no node has done so.
    pub(crate) fn begin(client: &Arc<Client>) -> Result<Self, Errno> {
        match client.set_root_attribute(STRICT, b"0", ONLY_NEW) {
            Ok(()) | Err(Errno(libc::EEXIST)) => {}
            Err(error) => return Err(error),
        }
        Ok(Self { client: Arc::clone(client), own: Mutex::default() })
    }

    /// Announces one more lazy file of this node. When it returns, no node has an older list.
    pub(crate) fn begin_lazy(&self) -> Result<(), Errno> {
        let mut own = self.own.lock();
        own.last += 1;
        let text = [LAZY_PREFIX, self.unique(own.last).as_bytes()].concat();
        let name = CString::new(text).map_err(|_| Errno(libc::EINVAL))?;
        self.client.set_root_attribute(&name, b"1", 0)?;
        own.lazy_files += 1;
        self.remove(own.name.replace(name));
        Ok(())
    }

    /// A lazy file of this node is strict again, and written back.
    pub(crate) fn end_lazy(&self) {
        let mut own = self.own.lock();
        own.lazy_files = own.lazy_files.saturating_sub(1);
        if own.lazy_files == 0 {
            let name = own.name.take();
            self.remove(name);
        }
    }

    /// One that stays only makes other nodes ask more often.
    fn remove(&self, name: Option<CString>) {
        if let Some(name) = name
            && let Err(error) = self.client.remove_root_attribute(&name)
        {
            eprintln!("cannot remove an announcement: error {}", error.0);
        }
    }

    /// A text that no node has used.
    fn unique(&self, number: u64) -> String {
        format!("{}.{number}", self.client.instance())
    }

    /// A number for the list of all lazy files, which changes with it; 0: no node has any.
    pub(crate) fn lazy_files(&self) -> Result<u64, Errno> {
        let mut names = [0; NAMES_BYTES];
        match self.client.root_attribute_names(&mut names) {
            Ok(length) => Ok(list_number(&names[..length])),
            Err(Errno(libc::ERANGE)) => {
                let mut names = vec![0; NAMES_BYTES_MAX];
                let length = self.client.root_attribute_names(&mut names)?;
                Ok(list_number(&names[..length]))
            }
            Err(error) => Err(error),
        }
    }

    /// Announces that this node needs a file strict.
    pub(crate) fn announce_strict(&self) -> Result<(), Errno> {
        let mut own = self.own.lock();
        own.last += 1;
        let value = self.unique(own.last);
        self.client.set_root_attribute(STRICT, value.as_bytes(), 0)
    }

    /// A number for the last announcement that a node needs a file strict.
    pub(crate) fn strict_version(&self) -> Result<u64, Errno> {
        let mut value = [0; 64];
        let length = self.client.root_attribute(STRICT, &mut value)?;
        Ok(number_of([&value[..length]]))
    }
}

fn list_number(names: &[u8]) -> u64 {
    let all = names.split(|byte| *byte == 0);
    let mut lazy = all.filter(|name| name.starts_with(LAZY_PREFIX)).peekable();
    if lazy.peek().is_none() { 0 } else { number_of(lazy) }
}

/// Never 0.
fn number_of<'a>(texts: impl IntoIterator<Item = &'a [u8]>) -> u64 {
    let mut hasher = DefaultHasher::new();
    for text in texts {
        hasher.write(text);
        hasher.write_u8(0);
    }
    hasher.finish().max(1)
}

/// Removes the names of our own attributes from the names of all, and returns the new length.
pub(crate) fn without_announcements(names: &mut [u8]) -> usize {
    let all = names.split_inclusive(|byte| *byte == 0);
    let others = all.filter(|name| !name.starts_with(PREFIX));
    let kept: Vec<u8> = others.flat_map(|name| name.iter().copied()).collect();
    names[..kept.len()].copy_from_slice(&kept);
    kept.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn announcements_are_not_among_the_names() {
        let mut names = b"user.a\0user.forebay.lazy.4.1\0user.b\0user.forebay.strict\0".to_vec();
        let length = without_announcements(&mut names);
        assert_eq!(&names[..length], b"user.a\0user.b\0");
        assert_eq!(without_announcements(&mut []), 0);
    }

    #[test]
    fn list_of_lazy_files_has_a_number() {
        let lazy = |text: &str| list_number(format!("user.forebay.strict\0{text}").as_bytes());
        assert_eq!(lazy(""), 0);
        assert_eq!(lazy("user.a\0"), 0);
        let one = lazy("user.forebay.lazy.4.1\0");
        assert_ne!(one, 0);
        assert_eq!(one, lazy("user.a\0user.forebay.lazy.4.1\0"));
        assert_ne!(one, lazy("user.forebay.lazy.4.2\0"));
        assert_ne!(one, lazy("user.forebay.lazy.4.1\0user.forebay.lazy.5.1\0"));
    }
}
