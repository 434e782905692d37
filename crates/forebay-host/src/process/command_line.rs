//! Shows another command line for a process than the one it was started with. Does not change its executable.

use std::ffi::CStr;
use std::path::Path;

use procfs_core::FromRead;
use procfs_core::process::Stat;

use crate::{Result, files, with_context};

/// The memory that the kernel shows as the command line of a process. See proc(5).
pub(crate) struct CommandLine {
    start: usize,
    end: usize,
}

impl CommandLine {
    /// That of this process, and of children that it forks.
    pub(crate) fn ours() -> Result<Self> {
        let path = Path::new("/proc/self/stat");
        let stat = Stat::from_read(files::open_to_read(path)?).map_err(std::io::Error::other);
        let stat = with_context(stat, "read", path)?;
        let address = |value: Option<u64>| usize::try_from(value.unwrap_or(0)).unwrap_or(0);
        Ok(Self { start: address(stat.arg_start), end: address(stat.arg_end) })
    }

    /// Shows as much of `name` as there is room for. Allocates no memory.
    ///
    /// # Safety
    /// This process must not read its arguments afterwards.
    pub(crate) unsafe fn replace(&self, name: &CStr) {
        let name = name.to_bytes().iter().copied().chain(std::iter::repeat(0));
        // The last byte stays 0: otherwise the kernel shows the environment, too.
        for (address, byte) in (self.start..self.end.saturating_sub(1)).zip(name) {
            // SAFETY: the kernel keeps the arguments here, on the stack, where the process may write. The caller
            // makes sure that nothing else uses them.
            unsafe { std::ptr::with_exposed_provenance_mut::<u8>(address).write_volatile(byte) };
        }
    }
}
