//! Where a job's allocation lies, and the view of the file system in which the job sees it.

use std::path::{Path, PathBuf};

use forebay_directive::{AccessMode, JobDw, Request};
use forebay_host::files::{self, Kind};
use forebay_host::machine;
use forebay_host::messages::Messages;
use forebay_host::namespace::{self, Keeper, Mount};
use forebay_store::{Allocation, Reason, SHARED_MEMORY, Store};
use indicatif::HumanBytes;

use crate::{Error, StoreUsed};
use forebay_record::{JobDirectory, Place, Recorded, promised_bytes};

/// Where the job sees an allocation in memory. It is in the view only, so that nobody can remove it
/// from outside, and no job that clears its directory for temporary files comes near it.
pub const MOUNTED_BELOW: &str = "/mnt/forebay";

/// What a Summit node had in local NVMe: wanted at most where a script asks for "the" local storage.
const NODE_LOCAL_BYTES: u64 = 1_600_000_000_000;

/// Receives messages, and hears of the allocation.
pub trait AllocationProgress: Messages {
    /// The allocation was made.
    fn allocated(&self, used: &StoreUsed);
}

/// What the user and the site say about where allocations lie.
#[derive(Debug, Clone, Default)]
pub struct Wishes<'a> {
    /// `--store`.
    pub store: Option<&'a Path>,
    /// The site's setting.
    pub site_store: Option<&'a Path>,
    /// Instead of the script's capacity, in bytes.
    pub capacity_bytes: Option<u64>,
    /// Refuse to start with less than was asked for.
    pub strict_capacity: bool,
    /// Why there shall be no private view; none if there may be one.
    pub no_view: Option<&'a str>,
    /// Directories shown under other paths.
    pub maps: &'a [Map],
}

/// A directory that the job sees under another path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Map {
    /// The path in the script.
    pub at: PathBuf,
    /// The directory that is there.
    pub from: PathBuf,
}

impl Map {
    /// What a job finds under a path, seen from outside of its view.
    pub(crate) fn behind(maps: &[Self], path: &Path) -> PathBuf {
        // A later one covers an earlier one.
        let shown = maps.iter().rev().find_map(|map| {
            let rest = path.strip_prefix(&map.at).ok()?;
            Some(map.from.join(rest))
        });
        shown.unwrap_or_else(|| path.to_owned())
    }
}

/// The store and the size that a job gets.
#[derive(Debug, Clone)]
pub struct Chosen {
    /// Where.
    pub store: Store,
    /// What will be given.
    pub used: StoreUsed,
}

impl Wishes<'_> {
    /// Can these directories be shown?
    pub(crate) fn check_maps(&self) -> Result<(), Error> {
        for (index, map) in self.maps.iter().enumerate() {
            for path in [&map.at, &map.from] {
                let found = files::status(path);
                if found.is_ok_and(|status| status.kind != Kind::Directory) {
                    return Err(Error::MapOfFile(path.clone()));
                }
            }
            let before = &self.maps[..index];
            let shown = Map::behind(before, &map.at);
            let within_another = before.iter().any(|other| map.at.starts_with(&other.at));
            let can_be = if within_another {
                files::status(&shown).map(drop) // nothing is made in what is shown
            } else {
                namespace::check_addition(&map.at)
            };
            can_be.map_err(|error| Error::MapInTheWay { at: shown, error })?;
        }
        Ok(())
    }

    /// Chooses the store and the size of an allocation.
    ///
    /// # Errors
    /// If the store cannot be used, has no room beside the application, or has less than was asked and
    /// that is not to be.
    pub fn choose(&self, asked: &JobDw, watcher: &dyn AllocationProgress) -> Result<Chosen, Error> {
        let (store, reason) = Store::choose(self.store, self.site_store)?;
        let why = match reason {
            Reason::Named => "named with --store".to_owned(),
            Reason::Site => "the site's setting, FOREBAY_STORE".to_owned(),
            Reason::Nvme { device } => format!("local NVMe: {device}"),
            Reason::Default => "no local NVMe was found, so memory".to_owned(),
        };
        watcher.explain(&format!("store {store}: {why}"));
        match (self.no_view, &store) {
            (Some(why), Store::Memory { .. }) => self.shared_memory(asked, &store, why, watcher),
            _ => self.grant(asked, store, watcher),
        }
    }

    /// Memory that is not the job's alone, where there can be no private view.
    fn shared_memory(
        &self,
        asked: &JobDw,
        store: &Store,
        why: &str,
        watcher: &dyn AllocationProgress,
    ) -> Result<Chosen, Error> {
        if *store == (Store::Memory { huge: true }) {
            return Err(Error::NoView(why.to_owned()));
        }
        watcher.warning(&format!(
            "no memory of the job's own ({why}): the allocation is a directory in {SHARED_MEMORY}, \
             and its capacity is watched but not enforced"
        ));
        self.grant(asked, Store::directory(Path::new(SHARED_MEMORY))?, watcher)
    }

    fn grant(
        &self,
        asked: &JobDw,
        store: Store,
        watcher: &dyn AllocationProgress,
    ) -> Result<Chosen, Error> {
        let asked_bytes = self.capacity_bytes.or(asked.capacity_bytes);
        let promised_bytes = if store.in_memory() {
            promised_bytes()?
        } else {
            0
        };
        let grant = store.grant(asked_bytes.unwrap_or(NODE_LOCAL_BYTES), promised_bytes)?;
        let more = asked_bytes.filter(|asked| *asked > grant.capacity_bytes);
        if let (Some(asked_bytes), true) = (more, self.strict_capacity) {
            return Err(Error::LessThanAsked {
                asked_bytes,
                usable_bytes: grant.usable_bytes,
                store: store.to_string(),
            });
        }
        let usable = HumanBytes(grant.usable_bytes);
        let limit = if store.enforces_capacity() {
            "a hard limit: writes beyond it fail with ENOSPC"
        } else {
            "watched, not enforced: another file system's space"
        };
        let used = StoreUsed {
            store: store.to_string(),
            in_memory: store.in_memory(),
            enforced: store.enforces_capacity(),
            capacity_bytes: grant.capacity_bytes,
            asked_bytes,
        };
        let asked = used.asked();
        watcher.explain(&format!(
            "capacity: {asked} asked, at most {usable} to be had; {limit}"
        ));
        Ok(Chosen { store, used })
    }
}

/// What a job has.
#[derive(Debug, Default)]
pub(crate) struct Placement {
    pub(crate) keeper: Option<Keeper>,
    pub(crate) space: Option<Space>,
}

/// The job's allocation and what is known of it.
#[derive(Debug)]
pub(crate) struct Space {
    pub(crate) allocation: Allocation,
    pub(crate) used: StoreUsed,
}

impl Space {
    /// Directories of all namespaces.
    pub(crate) fn roots(&self, request: &Request) -> Vec<PathBuf> {
        let modes = request.job.iter().flat_map(|job| &job.access);
        let root = |mode: &AccessMode| self.allocation.namespace(mode.directory());
        modes.map(root).collect()
    }
}

/// Who makes a placement, and of what.
pub(crate) struct Placing<'a> {
    pub(crate) wishes: &'a Wishes<'a>,
    pub(crate) directory: &'a JobDirectory,
    pub(crate) watcher: &'a dyn AllocationProgress,
    /// The allocation asked for.
    pub(crate) asked: Option<&'a JobDw>,
    /// Where the job wants to see the private namespace too.
    pub(crate) node_local: Option<PathBuf>,
}

impl Placing<'_> {
    /// Makes the allocation and the view, and enters it. The record says at every moment what there
    /// is to be taken away.
    pub(crate) fn place(&self, record: &mut Recorded) -> Result<Placement, Error> {
        self.check()?;
        let Some(asked) = self.asked else {
            let keeper = self.view(self.shown(None), record)?;
            let space = None;
            return Ok(Placement { keeper, space });
        };
        let namespaces: Vec<_> = asked.access.iter().map(|m| m.directory()).collect();
        let chosen = self.wishes.choose(asked, self.watcher)?;
        if let Store::Directory { path, .. } = &chosen.store {
            return self.in_directory(path, chosen.used.clone(), &namespaces, record);
        }
        match self.in_memory(&chosen, &namespaces, record) {
            // Only what memory itself needs: without it there is another way.
            Err(Error::View(error)) if !self.needs_view() => {
                let why = error.to_string();
                let chosen = self
                    .wishes
                    .shared_memory(asked, &chosen.store, &why, self.watcher)?;
                let path = Path::new(SHARED_MEMORY);
                self.in_directory(path, chosen.used, &namespaces, record)
            }
            placed => placed,
        }
    }

    fn in_memory(
        &self,
        chosen: &Chosen,
        namespaces: &[&str],
        record: &mut Recorded,
    ) -> Result<Placement, Error> {
        let at = Path::new(MOUNTED_BELOW).join(self.directory.id());
        let huge = chosen.store == Store::Memory { huge: true };
        let size = chosen.used.capacity_bytes;
        let mut mounts = vec![Allocation::mount(&at, size, huge, namespaces)];
        mounts.extend(self.shown(Some(&at)));
        let allocation = Allocation::found(at, true);
        let placed = self.note(&allocation, &chosen.used, record);
        self.announce(&allocation, &chosen.used);
        let keeper = placed.and_then(|()| self.view(mounts, record))?;
        let used = chosen.used.clone();
        let space = Some(Space { allocation, used });
        Ok(Placement { keeper, space })
    }

    fn in_directory(
        &self,
        store: &Path,
        used: StoreUsed,
        namespaces: &[&str],
        record: &mut Recorded,
    ) -> Result<Placement, Error> {
        let id = self.directory.id();
        let planned = Allocation::planned_in(store, id)?;
        self.note(&planned, &used, record)?;
        let allocation = Allocation::in_directory(store, id, namespaces)?;
        self.announce(&allocation, &used);
        let viewed = self.view(self.shown(Some(allocation.root())), record);
        match viewed {
            Ok(keeper) => {
                let space = Some(Space { allocation, used });
                Ok(Placement { keeper, space })
            }
            Err(error) => {
                allocation.free()?;
                Err(error)
            }
        }
    }

    fn announce(&self, allocation: &Allocation, used: &StoreUsed) {
        self.watcher.allocated(used);
        let root = allocation.root().to_string_lossy();
        if root.contains(char::is_whitespace) {
            self.watcher.warning(&format!(
                "there are blanks in the allocation's path, {root}: scripts must quote \
                 \"$DW_JOB_STRIPED\", or --store be without"
            ));
        }
    }

    /// Before the allocation is made: whenever we are killed, it is known where it lies.
    fn note(
        &self,
        allocation: &Allocation,
        used: &StoreUsed,
        record: &mut Recorded,
    ) -> Result<(), Error> {
        let place = Place {
            root: allocation.root().to_owned(),
            mounted: allocation.is_mounted(),
            capacity_bytes: used.capacity_bytes,
        };
        Ok(record.update(|record| record.place = Some(place))?)
    }

    /// What the job sees under other paths.
    fn shown(&self, allocation: Option<&Path>) -> Vec<Mount> {
        let private = AccessMode::Private.directory();
        let local = self.node_local.iter().zip(allocation);
        let local = local.map(|(at, root)| Mount::Directory {
            at: at.clone(),
            from: root.join(private),
        });
        let maps = self.wishes.maps.iter().map(|map| Mount::Directory {
            at: map.at.clone(),
            from: map.from.clone(),
        });
        maps.chain(local).collect()
    }

    /// What the user asks for and cannot have is said before anything is made.
    fn check(&self) -> Result<(), Error> {
        self.wishes.check_maps()?;
        match self.wishes.no_view {
            Some(why) if self.needs_view() => Err(Error::NoView(why.to_owned())),
            _ => Ok(()),
        }
    }

    /// Are there paths that only a view can show?
    fn needs_view(&self) -> bool {
        !self.wishes.maps.is_empty() || self.node_local.is_some()
    }

    /// What the job needs itself must not vanish behind what it is shown.
    fn check_hidden(&self, record: &Recorded) -> Result<(), Error> {
        let place = record.record.place.as_ref();
        let program = machine::program_directory()?;
        let needed = [self.directory.path(), record.path(), &program];
        let needed = needed.into_iter().chain(place.map(|p| p.root.as_path()));
        let persistent = record.record.persistent.iter();
        let needed = needed.chain(persistent.map(|one| one.root.as_path()));
        for map in self.wishes.maps {
            let at = files::final_path(&map.at)?;
            if let Some(hidden) = needed.clone().find(|path| path.starts_with(&at)) {
                return Err(Error::Hides {
                    at: map.at.clone(),
                    hidden: hidden.to_owned(),
                });
            }
        }
        Ok(())
    }

    fn view(&self, mounts: Vec<Mount>, record: &mut Recorded) -> Result<Option<Keeper>, Error> {
        if mounts.is_empty() {
            return Ok(None);
        }
        self.check_hidden(record)?;
        let maps = self.wishes.maps;
        for (index, map) in maps.iter().enumerate() {
            files::make_directories(&Map::behind(&maps[..index], &map.from), 0o755)?;
        }
        let scratch = self.directory.scratch()?;
        let mut keeper = Keeper::start(&scratch, &mounts).map_err(Error::View)?;
        let identity = keeper.identity();
        let entered = record
            .update(|record| record.keeper = Some(identity))
            .map_err(Error::from)
            .and_then(|()| Ok(keeper.hold()?))
            .and_then(|()| namespace::enter(identity).map_err(Error::View));
        if let Err(error) = entered {
            keeper.end();
            record.update(|record| record.keeper = None)?;
            return Err(error);
        }
        for mount in &mounts {
            if let Mount::Directory { at, from } = mount {
                let (at, from) = (at.display(), from.display());
                self.watcher
                    .explain(&format!("the job sees {from} as {at}"));
            }
        }
        Ok(Some(keeper))
    }
}
