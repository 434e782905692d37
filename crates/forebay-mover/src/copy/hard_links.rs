//! Files with several names: the first name is copied, the others become hard links.
//! Assumes that all other files of the run are copied. Where hard links do not work, copies the file and notes that.

use forebay_host::files;

use crate::copy::context::CopyContext;
use crate::copy::durability::Syncing;
use crate::copy::target::target_status;
use crate::error::Error;
use crate::model::item::{HardLink, Item, Step};
use crate::model::partial_names::temporary;
use crate::model::reason::{Reason, is_unsupported};
use crate::model::state::State;

const ROWS: usize = 2048;

impl CopyContext<'_> {
    /// Creates the missing hard links, after all files are copied.
    pub(crate) fn make_hard_links(&self, block: &mut [u8]) -> Result<(), Error> {
        let mut last = 0;
        loop {
            let found = self.journal.hard_links_after(last, ROWS)?;
            let Some(end) = found.last().filter(|_| !self.is_stopped()) else {
                return Ok(());
            };
            last = end.item.id;
            // Before a partial name exists: only files in progress are cleaned up.
            let planned = found.iter().filter(|link| link.item.state == State::Planned);
            let begun: Vec<_> = planned.map(|link| Step::to(&link.item, State::Copying)).collect();
            self.journal.apply_updates(&begun)?;
            let mut made = Vec::new();
            for link in found {
                if self.is_stopped() {
                    return Ok(());
                }
                match self.make_hard_link(&link) {
                    Ok(true) => made.push(link.item),
                    Ok(false) => self.make_file_of_its_own(link.item, block)?,
                    Err(reason) => self.record_failed(&link.item, reason)?,
                }
            }
            let syncing = Syncing::of(self.options.syncs(), 1);
            if let Err(reason) = syncing.finish(made.iter().map(|item| item.target.as_path())) {
                for item in &made {
                    self.record_failed(item, reason.clone())?;
                }
                continue;
            }
            let steps: Vec<_> = made.iter().map(|item| Step::to(item, State::Placed)).collect();
            self.journal.apply_updates(&steps)?;
            made.iter().for_each(|_| self.record_delivered(0, false));
        }
    }

    fn make_file_of_its_own(&self, item: Item, block: &mut [u8]) -> Result<(), Error> {
        self.journal.apply_updates(&[Step::to(&item, State::Copying)])?;
        self.copy_batch(vec![item], &mut [], block)
    }

    /// Creates the hard link. Returns false if the file system of the destination does not support it.
    fn make_hard_link(&self, link: &HardLink) -> Result<bool, Reason> {
        let item = &link.item;
        if !link.first_has_arrived {
            return Err(Reason::new(
                &format!(
                    "the same file under its first name, {}, has not arrived",
                    link.first.display()
                ),
                "see why that one has not",
            ));
        }
        self.check_directory(item)?;
        let identity = |status: files::Status| (status.device, status.inode);
        let first = identity(files::status_of_name(&link.first)?);
        if target_status(&item.target)?.map(identity) == Some(first) {
            self.drop_part(item);
            return Ok(true);
        }
        let temporary = temporary(&item.target, &self.options.tag, item.id);
        let mut made = files::make_hard_link(&link.first, &temporary);
        if made.as_ref().is_err_and(forebay_host::Error::already_exists) {
            files::remove_file(&temporary)?;
            made = files::make_hard_link(&link.first, &temporary);
        }
        if let Err(error) = made {
            if !is_unsupported(&error) {
                return Err(error.into());
            }
            let why = error.source.kind();
            self.warn_once(&format!("a hard link became a file of its own: {why}"), &item.source);
            return Ok(false);
        }
        self.check_made_name(item, &temporary, false)?;
        self.put_in_place(&temporary, item).map(|()| true)
    }
}
