//! Makes the page in which programs sum the bytes that they move elsewhere than in recorded files: in
//! pipes, terminals, and files of the system. Without it, they could not be told from bytes that went
//! around the recording.
//! Assumes the layout of `struct page` in mpi/record/elsewhere.c.

use std::path::Path;

use forebay_host::{files, system};

use crate::error::Error;

const NAME: &str = "elsewhere";
const TEMPORARY_NAME: &str = "elsewhere.fresh";
const MAGIC: &[u8; 8] = b"fbyelse\n";
const PAGE_BYTES: usize = 4096;
/// With a zero at the end.
const HOST_BYTES: usize = 232;

/// Makes it for programs of this host. The kernel adds the bytes of this process's descendants to
/// those of this process.
pub(crate) fn make(directory: &Path) -> Result<(), Error> {
    let mut page = [0; PAGE_BYTES];
    let host = system::hostname();
    let length = host.len().min(HOST_BYTES - 1);
    page[..MAGIC.len()].copy_from_slice(MAGIC);
    page[MAGIC.len()..][..length].copy_from_slice(&host.as_bytes()[..length]);
    let numbers = [u64::from(std::process::id()), pid_namespace()?];
    let numbers: Vec<u8> = numbers.into_iter().flat_map(u64::to_ne_bytes).collect();
    page[MAGIC.len() + HOST_BYTES..][..numbers.len()].copy_from_slice(&numbers);
    Ok(files::write_atomically(&directory.join(NAME), &directory.join(TEMPORARY_NAME), &page)?)
}

/// Its inode; 0 if it is not known.
fn pid_namespace() -> Result<u64, Error> {
    let name = system::pid_namespace()?;
    Ok(name.trim_matches(|at: char| !at.is_ascii_digit()).parse().unwrap_or(0))
}
