//! Registers the user's persistent allocations as links in the state directory. The links help to
//! find allocations in unnamed stores and to detect missing ones. Allocations work without them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use forebay_host::{clock, files, filesystem, state, system};
use forebay_store::persistent::Persistent;

use crate::error::MissingAllocation;

const DIRECTORY: &str = "persistent";

/// Separates the host name at the end of a link's name; machines may share a state directory.
const HOST_SEPARATOR: char = '@';

/// A link to an allocation.
pub(crate) struct Entry {
    link: PathBuf,
    pub(crate) root: PathBuf,
}

impl Entry {
    /// The machine that created the allocation, if it is another one.
    fn other_host(&self) -> Option<String> {
        let link = self.link.file_name()?.to_str()?;
        let (_, host) = link.rsplit_once(HOST_SEPARATOR)?;
        (host != system::hostname()).then(|| host.to_owned())
    }
}

/// All links, oldest first.
pub(crate) fn all() -> forebay_host::Result<Vec<Entry>> {
    let mut all = Vec::new();
    for directory in state::directories() {
        let directory = directory.join(DIRECTORY);
        let names: Vec<OsString> = match files::names_in(&directory) {
            Err(error) if error.is_absent() || error.is_denied() => continue,
            names => names?,
        };
        for name in names {
            let link = directory.join(name);
            match files::read_link(&link) {
                // Another process has just removed it.
                Err(error) if error.is_not_found() => {}
                root => all.push(Entry { link, root: root? }),
            }
        }
    }
    Ok(all)
}

/// Allocations whose link target does not exist.
pub(crate) fn missing() -> forebay_host::Result<Vec<MissingAllocation>> {
    let mut missing = Vec::new();
    for known in all()? {
        let host = known.other_host();
        let root = known.root;
        let gone = files::status_of_name(&root).is_err_and(|error| error.is_not_found());
        let name = root.file_name().and_then(|name| name.to_str());
        let name = name.and_then(|name| name.strip_prefix("forebay-persistent-"));
        if let (true, Some(name)) = (gone, name) {
            let store = files::parent_of(&root);
            missing.push(MissingAllocation {
                name: name.to_owned(),
                in_memory: filesystem::is_in_memory(store).unwrap_or(false), // the store may be missing too
                root,
                host,
            });
        }
    }
    Ok(missing)
}

/// Creates the link to an allocation.
pub(crate) fn register(made: &Persistent) -> forebay_host::Result<()> {
    let mut refused = None;
    for directory in state::create_directories() {
        let linked = directory.and_then(|directory| {
            let directory = directory.join(DIRECTORY);
            files::make_directories(&directory, 0o700)?;
            let (now, host) = (clock::unix_milliseconds(), system::hostname());
            let link = format!("{now}-{}{HOST_SEPARATOR}{host}", made.name);
            files::make_link(made.root(), &directory.join(link))
        });
        match linked {
            Ok(()) => return Ok(()),
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    refused.map_or(Ok(()), Err)
}

/// Removes the links to an allocation of this machine.
pub(crate) fn unregister(root: &Path) -> forebay_host::Result<()> {
    let is_it = |known: &Entry| known.root == root && known.other_host().is_none();
    for known in all()?.into_iter().filter(is_it) {
        files::remove_if_present(&known.link)?;
    }
    Ok(())
}
