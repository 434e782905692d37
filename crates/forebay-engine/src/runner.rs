//! Carries out plans on this node. Assumes a process without threads, because it enters the view.
//! Never creates anything that the ledger does not record.

use std::path::{Path, PathBuf};

use forebay_host::messages::Messages;
use forebay_host::namespace::{self, Keeper, Mount};
use forebay_host::{files, system};
use forebay_store::Allocation;

use crate::driver::{Plan, PlannedAllocation};
use crate::error::Error;
use crate::ledger::{Ledger, Step};
use crate::path_map::PathMap;

/// Carries out plans.
pub(crate) struct Runner<'a> {
    /// Id of the job.
    pub(crate) id: &'a str,
    /// The directory for building the view. It does not exist yet.
    pub(crate) scratch: &'a Path,
    /// Paths that no map may hide.
    pub(crate) needed: Vec<&'a Path>,
    pub(crate) maps: &'a [PathMap],
    pub(crate) messages: &'a dyn Messages,
}

impl Runner<'_> {
    /// Creates the allocation and the view, and enters the view. The ledger always records what must be
    /// removed.
    ///
    /// # Errors
    /// If either is impossible. What was created is then removed or in the ledger.
    pub(crate) fn carry_out(
        &self,
        plan: &Plan,
        ledger: &mut dyn Ledger,
    ) -> Result<(Option<Allocation>, Option<Keeper>), Error> {
        let allocation = plan.allocation.as_ref();
        let allocation = allocation.map(|planned| self.allocate(planned, ledger));
        let allocation = allocation.transpose()?;
        match self.view(&plan.mounts, allocation.as_ref(), ledger) {
            Ok(keeper) => Ok((allocation, keeper)),
            Err(error) => {
                // An allocation in memory is removed with its view.
                if let Some(allocation) = allocation.filter(|one| !one.is_mounted()) {
                    allocation.free()?;
                }
                Err(error)
            }
        }
    }

    fn allocate(
        &self,
        planned: &PlannedAllocation,
        ledger: &mut dyn Ledger,
    ) -> Result<Allocation, Error> {
        if let Some(store) = &planned.store {
            Allocation::check_unused(store, self.id)?;
        }
        ledger.record_step(Step::Allocation(planned.place.clone()))?;
        match &planned.store {
            Some(store) => Ok(Allocation::in_directory(store, self.id, &planned.namespaces)?),
            None => Ok(Allocation::found(planned.place.root.clone(), true)),
        }
    }

    fn view(
        &self,
        mounts: &[Mount],
        allocation: Option<&Allocation>,
        ledger: &mut dyn Ledger,
    ) -> Result<Option<Keeper>, Error> {
        if mounts.is_empty() {
            return Ok(None);
        }
        self.check_map_hides_nothing(allocation.map(Allocation::root))?;
        for (index, map) in self.maps.iter().enumerate() {
            let directory = PathMap::resolve(&self.maps[..index], &map.directory);
            files::make_directories(&directory, 0o755)?;
        }
        files::make_directory(self.scratch, 0o700)?;
        let mut keeper = Keeper::start(self.scratch, mounts).map_err(Error::View)?;
        let identity = keeper.identity();
        let entered = ledger
            .record_step(Step::Keeper(identity))
            .and_then(|()| keeper.pin())
            .map_err(Error::from)
            .and_then(|()| namespace::enter(identity, None).map_err(Error::View));
        if let Err(error) = entered {
            keeper.end();
            ledger.record_step(Step::KeeperEnded)?;
            return Err(error);
        }
        for mount in mounts {
            if let Mount::Directory { at, from } = mount {
                let (at, from) = (at.display(), from.display());
                self.messages.explain(&format!("the job sees {from} as {at}"));
            }
        }
        Ok(Some(keeper))
    }

    /// Refuses maps that hide paths that the job needs.
    fn check_map_hides_nothing(&self, root: Option<&Path>) -> Result<(), Error> {
        let program = system::program_directory()?;
        let needed = self.needed.iter().copied();
        let needed = needed.chain([program.as_path()]).chain(root);
        for map in self.maps {
            let path = files::final_path(&map.path)?;
            if let Some(hidden) = needed.clone().find(|needed| needed.starts_with(&path)) {
                return Err(Error::MapHides {
                    at: map.path.clone(),
                    hidden: PathBuf::from(hidden),
                });
            }
        }
        Ok(())
    }
}
