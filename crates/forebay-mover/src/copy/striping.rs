//! Creates a large file on Lustre with stripes that suit its size, before the first byte is written.
//! Never changes a layout that the user or the site set. If stripes cannot be set, the file is copied without them.

use std::ffi::OsStr;
use std::fs::File;
use std::path::Path;

use forebay_host::files::parent_of;
use forebay_host::{files, lustre};

use crate::copy::blocks::BLOCK_BYTES;
use crate::copy::context::CopyContext;
use crate::copy::striping_cache::{LayoutOwner, stripes};
use crate::copy::target::OWNER_ONLY_MODE;

use crate::model::item::Item;
use crate::model::reason::Reason;

const FAILED: &str = "its stripes could not be set, so it has those of its directory";

impl CopyContext<'_> {
    /// Creates a partial file. On Lustre, sets stripes by file size, unless the directory has a layout of
    /// its own. If that fails, the file is copied without them.
    pub(crate) fn make_striped_part(
        &self,
        item: &Item,
        temporary: &Path,
        size_bytes: u64,
    ) -> Result<File, Reason> {
        let directory = parent_of(temporary);
        let Some(stripes) = stripes(size_bytes) else {
            return self.make_part(temporary, OWNER_ONLY_MODE);
        };
        let should_continue = || !self.is_stopped();
        let owner = self.striping.of(directory, &should_continue);
        self.check_stopped()?; // after a stop, the owner can be wrong
        match owner {
            LayoutOwner::Forebay => {}
            LayoutOwner::Others => return self.make_part(temporary, OWNER_ONLY_MODE),
            LayoutOwner::Unknown(why) => {
                self.warn_once(&format!("{FAILED}: {why}"), &item.source);
                return self.make_part(temporary, OWNER_ONLY_MODE);
            }
        }
        match files::remove_file(temporary) {
            Err(error) if !error.is_not_found() => return Err(error.into()),
            _ => {}
        }
        let (stripes, bytes) = (stripes.to_string(), BLOCK_BYTES.to_string());
        let words = ["setstripe", "-c", &stripes, "-S", &bytes].map(OsStr::new);
        let said = lustre::lfs(&[&words[..], &[temporary.as_os_str()]].concat(), &should_continue);
        // `lfs` creates the file with mode 0600, but a default ACL of the directory can change that (acl(5)).
        let made = files::open_existing_rw(temporary).and_then(|file| {
            files::set_mode_of(&file, temporary, OWNER_ONLY_MODE)?;
            Ok(file)
        });
        made.or_else(|_| {
            let why =
                said.map_or_else(|error| error.to_string(), |_| "lfs setstripe refuses".to_owned());
            self.warn_once(&format!("{FAILED}: {why}"), &item.source);
            self.make_part(temporary, OWNER_ONLY_MODE)
        })
    }
}
