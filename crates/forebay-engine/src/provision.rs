//! Makes the allocation and the view of a job, and enters the view.

use std::path::{Path, PathBuf};

use forebay_directive::{AccessMode, JobDw};
use forebay_host::namespace::{self, Keeper, Mount};
use forebay_host::{files, machine};
use forebay_store::{Allocation, SHARED_MEMORY, Store};

use crate::error::Error;
use crate::options::{AllocationProgress, Chosen, ReservedBytes, StoreOptions, StoreUsed};
use crate::path_map::PathMap;
use crate::place::{Ledger, Place, Space, Step};

/// Where the job sees an allocation in memory. It is in the view only, so that nobody can remove it
/// from outside, and no job that clears its directory for temporary files comes near it.
pub const MOUNTED_BELOW: &str = "/mnt/forebay";

/// What a job has.
#[derive(Debug, Default)]
pub struct Provisioned {
    /// Holds the view.
    pub keeper: Option<Keeper>,
    /// The allocation.
    pub space: Option<Space>,
}

/// Who provisions a job, and with what.
pub struct Provisioner<'a> {
    /// What the user and the site say.
    pub options: &'a StoreOptions<'a>,
    /// Id of the job.
    pub id: &'a str,
    /// Where a view is built: no such directory exists yet.
    pub scratch: PathBuf,
    /// What the job needs beside its allocation, which no map may hide.
    pub needed: Vec<PathBuf>,
    /// Persistent allocations that the job uses, likewise.
    pub persistent: Vec<PathBuf>,
    /// Memory that the allocations of other jobs may still take.
    pub reserved_bytes: ReservedBytes<'a>,
    /// Receives messages.
    pub progress: &'a dyn AllocationProgress,
    /// The allocation asked for.
    pub asked: Option<&'a JobDw>,
    /// Where the job wants to see the private namespace too.
    pub node_local: Option<PathBuf>,
}

impl Provisioner<'_> {
    /// Makes the allocation and the view, and enters it. The ledger says at every moment what there is to
    /// be removed.
    ///
    /// # Errors
    /// If the job cannot have them; what was made is removed then, or is in the ledger.
    pub fn provision(&self, ledger: &mut dyn Ledger) -> Result<Provisioned, Error> {
        self.check()?;
        let Some(asked) = self.asked else {
            let keeper = self.view(self.extra_mounts(None), None, ledger)?;
            let space = None;
            return Ok(Provisioned { keeper, space });
        };
        let namespaces: Vec<_> = asked.access.iter().map(|m| m.directory()).collect();
        let chosen = self
            .options
            .choose(asked, self.reserved_bytes, self.progress)?;
        if let Store::Directory { path, .. } = &chosen.store {
            return self.in_directory(path, chosen.used.clone(), &namespaces, ledger);
        }
        match self.in_memory(&chosen, &namespaces, ledger) {
            // Only what memory itself needs: without it there is another way.
            Err(Error::View(error)) if !self.needs_view() => {
                let why = error.to_string();
                let chosen = self.options.shared_memory(
                    asked,
                    &chosen.store,
                    &why,
                    self.reserved_bytes,
                    self.progress,
                )?;
                let path = Path::new(SHARED_MEMORY);
                self.in_directory(path, chosen.used, &namespaces, ledger)
            }
            placed => placed,
        }
    }

    fn in_memory(
        &self,
        chosen: &Chosen,
        namespaces: &[&str],
        ledger: &mut dyn Ledger,
    ) -> Result<Provisioned, Error> {
        let at = Path::new(MOUNTED_BELOW).join(self.id);
        let huge = chosen.store == Store::Memory { huge: true };
        let size = chosen.used.capacity_bytes;
        let mut mounts = vec![Allocation::mount(&at, size, huge, namespaces)];
        mounts.extend(self.extra_mounts(Some(&at)));
        let allocation = Allocation::found(at, true);
        let placed = self.record_place(&allocation, &chosen.used, ledger);
        self.report_allocation(&allocation, &chosen.used);
        let keeper = placed.and_then(|()| self.view(mounts, Some(allocation.root()), ledger))?;
        let used = chosen.used.clone();
        let space = Some(Space { allocation, used });
        Ok(Provisioned { keeper, space })
    }

    fn in_directory(
        &self,
        store: &Path,
        used: StoreUsed,
        namespaces: &[&str],
        ledger: &mut dyn Ledger,
    ) -> Result<Provisioned, Error> {
        let id = self.id;
        let planned = Allocation::planned_in(store, id)?;
        self.record_place(&planned, &used, ledger)?;
        let allocation = Allocation::in_directory(store, id, namespaces)?;
        self.report_allocation(&allocation, &used);
        let viewed = self.view(
            self.extra_mounts(Some(allocation.root())),
            Some(allocation.root()),
            ledger,
        );
        match viewed {
            Ok(keeper) => {
                let space = Some(Space { allocation, used });
                Ok(Provisioned { keeper, space })
            }
            Err(error) => {
                allocation.free()?;
                Err(error)
            }
        }
    }

    fn report_allocation(&self, allocation: &Allocation, used: &StoreUsed) {
        self.progress.allocated(used);
        let root = allocation.root().to_string_lossy();
        if root.contains(char::is_whitespace) {
            self.progress.warning(&format!(
                "there are blanks in the allocation's path, {root}: scripts must quote \
                 \"$DW_JOB_STRIPED\", or --store be without"
            ));
        }
    }

    /// Before the allocation is made: whenever we are killed, it is known where it lies.
    fn record_place(
        &self,
        allocation: &Allocation,
        used: &StoreUsed,
        ledger: &mut dyn Ledger,
    ) -> Result<(), Error> {
        let place = Place {
            root: allocation.root().to_owned(),
            mounted: allocation.is_mounted(),
            capacity_bytes: used.capacity_bytes,
        };
        Ok(ledger.about_to(Step::Allocation(place))?)
    }

    /// What the job sees under other paths.
    fn extra_mounts(&self, allocation: Option<&Path>) -> Vec<Mount> {
        let private = AccessMode::Private.directory();
        let local = self.node_local.iter().zip(allocation);
        let local = local.map(|(at, root)| Mount::Directory {
            at: at.clone(),
            from: root.join(private),
        });
        let maps = self.options.maps.iter().map(|map| Mount::Directory {
            at: map.at.clone(),
            from: map.from.clone(),
        });
        maps.chain(local).collect()
    }

    /// What the user asks for and cannot have is said before anything is made.
    fn check(&self) -> Result<(), Error> {
        self.options.check_maps()?;
        match self.options.no_view {
            Some(why) if self.needs_view() => Err(Error::NoView(why.to_owned())),
            _ => Ok(()),
        }
    }

    /// Are there paths that only a view can show?
    fn needs_view(&self) -> bool {
        !self.options.maps.is_empty() || self.node_local.is_some()
    }

    /// What the job needs itself must not vanish behind what it is shown.
    fn check_map_hides_nothing(&self, root: Option<&Path>) -> Result<(), Error> {
        let program = machine::program_directory()?;
        let needed = self.needed.iter().map(PathBuf::as_path);
        let needed = needed.chain([program.as_path()]).chain(root);
        let needed = needed.chain(self.persistent.iter().map(PathBuf::as_path));
        for map in self.options.maps {
            let at = files::final_path(&map.at)?;
            if let Some(hidden) = needed.clone().find(|path| path.starts_with(&at)) {
                return Err(Error::MapHides {
                    at: map.at.clone(),
                    hidden: hidden.to_owned(),
                });
            }
        }
        Ok(())
    }

    fn view(
        &self,
        mounts: Vec<Mount>,
        root: Option<&Path>,
        ledger: &mut dyn Ledger,
    ) -> Result<Option<Keeper>, Error> {
        if mounts.is_empty() {
            return Ok(None);
        }
        self.check_map_hides_nothing(root)?;
        let maps = self.options.maps;
        for (index, map) in maps.iter().enumerate() {
            files::make_directories(&PathMap::behind(&maps[..index], &map.from), 0o755)?;
        }
        files::make_directory(&self.scratch, 0o700)?;
        let mut keeper = Keeper::start(&self.scratch, &mounts).map_err(Error::View)?;
        let identity = keeper.identity();
        let entered = ledger
            .about_to(Step::Keeper(identity))
            .and_then(|()| keeper.hold())
            .map_err(Error::from)
            .and_then(|()| namespace::enter(identity).map_err(Error::View));
        if let Err(error) = entered {
            keeper.end();
            ledger.about_to(Step::KeeperEnded)?;
            return Err(error);
        }
        for mount in &mounts {
            if let Mount::Directory { at, from } = mount {
                let (at, from) = (at.display(), from.display());
                self.progress
                    .explain(&format!("the job sees {from} as {at}"));
            }
        }
        Ok(Some(keeper))
    }
}
