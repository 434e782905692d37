//! Chooses the store of a job's allocation and carries out the plan of its driver.
//! Assumes a process without threads if the plan has a view, which the process enters.

use std::path::{Path, PathBuf};

use forebay_directive::JobDw;
use forebay_host::namespace::Keeper;
use forebay_store::Store;

use crate::driver::{JobFacts, NodeFacts, Plan, driver_of, without_allocation};
use crate::error::Error;
use crate::ledger::{JobAllocation, Ledger};
use crate::options::{AllocationProgress, ReservedBytes, StoreOptions, StoreUsed};
use crate::runner::Runner;

/// The allocation and the view of a job.
#[derive(Debug, Default)]
pub struct Provisioned {
    /// The process that holds the view.
    pub keeper: Option<Keeper>,
    /// The allocation.
    pub allocation: Option<JobAllocation>,
}

/// Provisions a job.
pub struct Provisioner<'a> {
    /// The options of the user and the site.
    pub options: &'a StoreOptions<'a>,
    /// Id of the job.
    pub id: &'a str,
    /// The directory for building the view. It does not exist yet.
    pub scratch: PathBuf,
    /// Paths that the job needs besides its allocation. No map may hide them.
    pub needed: Vec<PathBuf>,
    /// Persistent allocations of the job. No map may hide them.
    pub persistent: Vec<PathBuf>,
    /// Memory that the allocations of other jobs may still use.
    pub reserved_bytes: ReservedBytes<'a>,
    /// Receives messages.
    pub progress: &'a dyn AllocationProgress,
    /// The requested allocation.
    pub asked: Option<&'a JobDw>,
    /// The second path of the private namespace.
    pub node_local: Option<PathBuf>,
}

impl Provisioner<'_> {
    /// Creates the allocation and the view, and enters it. The ledger always records what must be removed.
    ///
    /// # Errors
    /// If either is impossible. What was created is then removed or in the ledger.
    pub fn provision(&self, ledger: &mut dyn Ledger) -> Result<Provisioned, Error> {
        self.check()?;
        let job = self.job_facts();
        let Some(asked) = self.asked else {
            return self.carry_out(&without_allocation(&job), None, ledger);
        };
        let (options, reserved) = (self.options, self.reserved_bytes);
        let node = options.choose(asked, reserved, self.progress)?;
        let carry_out = |node: NodeFacts, ledger: &mut dyn Ledger| {
            let plan = driver_of(&node.store)(&job, &node);
            self.carry_out(&plan, Some(node.used), ledger)
        };
        let store = node.store.clone();
        match carry_out(node, ledger) {
            // If only the memory store needs the view, shared memory can replace it.
            Err(Error::View(error))
                if !self.needs_view() && matches!(store, Store::Memory { .. }) =>
            {
                let why = error.to_string();
                let node = options.shared_memory(asked, &store, &why, reserved, self.progress)?;
                carry_out(node, ledger)
            }
            provisioned => provisioned,
        }
    }

    fn job_facts(&self) -> JobFacts<'_> {
        JobFacts {
            id: self.id,
            access: self.asked.map_or(&[], |asked| &asked.access),
            node_local: self.node_local.as_deref(),
            maps: self.options.maps,
        }
    }

    fn carry_out(
        &self,
        plan: &Plan,
        used: Option<StoreUsed>,
        ledger: &mut dyn Ledger,
    ) -> Result<Provisioned, Error> {
        let needed = self.needed.iter().chain(&self.persistent);
        let runner = Runner {
            id: self.id,
            scratch: &self.scratch,
            needed: needed.map(PathBuf::as_path).collect(),
            maps: self.options.maps,
            messages: self.progress,
        };
        let (allocation, keeper) = runner.carry_out(plan, ledger)?;
        let allocation = allocation.zip(used);
        if let Some((allocation, used)) = &allocation {
            self.progress.allocated(used);
            self.warn_of_blanks(allocation.root());
        }
        Ok(Provisioned {
            keeper,
            allocation: allocation.map(|(allocation, used)| JobAllocation { allocation, used }),
        })
    }

    fn warn_of_blanks(&self, root: &Path) {
        let root = root.to_string_lossy();
        if root.contains(char::is_whitespace) {
            self.progress.warning(&format!(
                "there are blanks in the allocation's path, {root}: scripts must quote \
                 \"$DW_JOB_STRIPED\", or --store be without"
            ));
        }
    }

    /// Reports impossible requests before anything is created.
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
}
