//! Layouts of new files and directories by their names, and of files that stay on the node that creates them.
//! Assumes a file that was just created: CephFS refuses another layout for one with data.
//! Never fails the creation: a layout that is refused is printed, and the file keeps that of its directory.

use std::ffi::CStr;
use std::str::FromStr;

use forebay_ceph::{DATA_POOL, LOCAL_POOL};
use glob::Pattern;

use crate::client::LAYOUT as OF_FILE;
use crate::server::Server;

/// The layout of a directory, as text (the CephFS documents, "File layouts").
const OF_DIRECTORY: &CStr = c"ceph.dir.layout";
/// The pool of a file. A new file has that of its directory.
const POOL_OF_FILE: &CStr = c"ceph.file.layout.pool";
/// The longest name of a pool that is looked at.
const POOL_BYTES_MAX: usize = 64;

/// The layout of what has some names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedLayout {
    names: Pattern,
    is_of_directories: bool,
    is_local: bool,
    stripe_unit_bytes: u64,
}

/// The layouts of what is created.
#[derive(Debug, Clone, Default)]
pub struct Layouts {
    /// The first that matches the name counts.
    pub named: Vec<NamedLayout>,
    /// The pool of this node, for files that stay on it; none: no file does.
    pub local_pool: Option<String>,
}

impl FromStr for NamedLayout {
    type Err = String;

    /// Reads `names:striped:BYTES:PATTERN`, with `directories` and `local` as the other choices.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.splitn(4, ':');
        let mut part = || parts.next().ok_or("write KIND:PLACEMENT:BYTES:PATTERN");
        let (kind, placement, bytes, names) = (part()?, part()?, part()?, part()?);
        let one_of = |word: &str, no: &str, yes: &str| match word {
            _ if word == yes => Ok(true),
            _ if word == no => Ok(false),
            _ => Err(format!("{word}: write {no} or {yes}")),
        };
        Ok(Self {
            is_of_directories: one_of(kind, "names", "directories")?,
            is_local: one_of(placement, "striped", "local")?,
            stripe_unit_bytes: bytes.parse().map_err(|error| format!("{bytes}: {error}"))?,
            names: Pattern::new(names).map_err(|error| error.to_string())?,
        })
    }
}

impl NamedLayout {
    fn matches(&self, name: &CStr) -> bool {
        self.names.matches(&name.to_string_lossy())
    }

    /// Each unit is an object of its own, as in the layout of the namespace.
    fn value(&self, local_pool: Option<&str>) -> String {
        let (bytes, pool) = (self.stripe_unit_bytes, local_pool.unwrap_or(DATA_POOL));
        format!("stripe_unit={bytes} stripe_count=1 object_size={bytes} pool={pool}")
    }
}

impl Layouts {
    fn of(&self, name: &CStr, is_directory: bool) -> Option<&NamedLayout> {
        let mut all = self.named.iter();
        all.find(|layout| layout.is_of_directories == is_directory && layout.matches(name))
    }
}

impl Server {
    /// Gives a file that was just created the layout of its name or directory. A file that another node has filled
    /// meanwhile keeps its own.
    pub(crate) fn set_layout_of_file(&self, name: &CStr, node: u64) {
        let local_pool = self.layouts.local_pool.as_deref();
        if let Some(layout) = self.layouts.of(name, false) {
            let pool = local_pool.filter(|_| layout.is_local);
            self.set_layout(name, node, (OF_FILE, &layout.value(pool)));
        } else if let Some(pool) = local_pool.filter(|_| self.has_local_directory(node)) {
            self.set_layout(name, node, (POOL_OF_FILE, pool));
        }
        if let Some(pool) = self.inodes.lost.pool_instead(&self.client, node) {
            self.set_layout(name, node, (POOL_OF_FILE, &pool));
        }
    }

    /// Gives a directory that was just created the layout of its name.
    pub(crate) fn set_layout_of_directory(&self, name: &CStr, node: u64) {
        if let Some(layout) = self.layouts.of(name, true) {
            let pool = layout.is_local.then_some(LOCAL_POOL);
            self.set_layout(name, node, (OF_DIRECTORY, &layout.value(pool)));
        }
    }

    /// Whether a new file has the pool of a directory whose files stay on their node. The client knows it without a
    /// message to a server.
    fn has_local_directory(&self, node: u64) -> bool {
        let mut buffer = [0; POOL_BYTES_MAX];
        let length = self.client.own_attribute(node, POOL_OF_FILE, &mut buffer);
        length.is_ok_and(|length| buffer.get(..length) == Some(LOCAL_POOL.as_bytes()))
    }

    /// As root: the creator of a file need not be allowed to write it.
    fn set_layout(&self, name: &CStr, node: u64, (attribute, value): (&CStr, &str)) {
        if let Err(error) = self.client.set_own_attribute(node, attribute, value.as_bytes()) {
            eprintln!("cannot set the layout of {}: error {}", name.to_string_lossy(), error.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_read_and_match_whole_names() {
        let layout: NamedLayout = "names:striped:65536:*.h5".parse().expect("a layout");
        assert!(layout.matches(c"a.h5") && !layout.matches(c"a.h5.part"));
        assert_eq!(
            layout.value(None),
            "stripe_unit=65536 stripe_count=1 object_size=65536 pool=data"
        );
        for wrong in [
            "*.h5",
            "names:striped:x:*.h5",
            "names:striped:1:[x",
            "names:near:1:x",
            "files:local:1:x",
        ] {
            wrong.parse::<NamedLayout>().expect_err(wrong);
        }
    }

    #[test]
    fn first_layout_of_the_kind_counts() {
        let read = |text: &str| text.parse().expect(text);
        let named =
            ["directories:local:65536:a:*", "names:local:1048576:a*", "names:striped:65536:*"];
        let layouts = Layouts { named: named.map(read).to_vec(), local_pool: None };
        let found = |name, is_directory| {
            let layout = layouts.of(name, is_directory);
            layout.map(|layout| (layout.is_local, layout.stripe_unit_bytes))
        };
        assert_eq!(found(c"a:1", true), Some((true, 65536)));
        assert_eq!(found(c"b", true), None);
        assert_eq!(found(c"a:1", false), Some((true, 1 << 20)));
        assert_eq!(found(c"b", false), Some((false, 65536)));
        let value = named.map(read)[1].value(Some("local.2"));
        assert!(value.ends_with("object_size=1048576 pool=local.2"), "{value}");
    }
}
