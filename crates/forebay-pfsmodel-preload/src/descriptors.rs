//! Tracks which descriptors are emulated files. An entry is *unknown* until used, then *foreign* or a *file*.
//! Hooked opens and closes reset it. Each use compares device and inode, as libc closes descriptors unseen.
//! Never waits: a generation protects entries from slow look-ups, a sequence number protects their details.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use forebay_pfsmodel::{Layout, State, Striping, kernel, paths};

use crate::session;

/// The number of table entries. Higher descriptors are looked up at each use.
const TABLE: usize = 65_536;

const KIND: u32 = 0b11;
const UNKNOWN: u32 = 0;
const FOREIGN: u32 = 1;
const FILE: u32 = 2;
const GENERATION: u32 = 4;

struct Details {
    sequence: AtomicU32,
    stripe_count: AtomicU32,
    first_target: AtomicU32,
    stripe_size_bytes: AtomicU64,
    device: AtomicU64,
    inode: AtomicU64,
}

static ENTRIES: [AtomicU32; TABLE] = [const { AtomicU32::new(UNKNOWN) }; TABLE];
static DETAILS: [Details; TABLE] = [const {
    Details {
        sequence: AtomicU32::new(0),
        stripe_count: AtomicU32::new(0),
        first_target: AtomicU32::new(0),
        stripe_size_bytes: AtomicU64::new(0),
        device: AtomicU64::new(0),
        inode: AtomicU64::new(0),
    }
}; TABLE];

/// An emulated regular file.
pub(crate) struct OpenFile {
    /// The layout of the file.
    pub(crate) layout: Layout,
    /// The current length of the file.
    pub(crate) size_bytes: u64,
    /// False if the layout is derived because the file has no attribute.
    pub(crate) is_bound: bool,
    device: u64,
    inode: u64,
}

/// What a descriptor is.
pub(crate) enum DescriptorKind {
    /// Not emulated.
    Foreign,
    /// An emulated file.
    File(OpenFile),
    /// An emulated directory.
    Directory,
}

fn entry(descriptor: c_int) -> Option<&'static AtomicU32> {
    ENTRIES.get(usize::try_from(descriptor).ok()?)
}

/// True if the descriptor is known to be foreign. For such files, a hook costs only this check.
#[inline(always)]
pub(crate) fn is_foreign(descriptor: c_int) -> bool {
    entry(descriptor).is_some_and(|entry| entry.load(Ordering::Relaxed) & KIND == FOREIGN)
}

/// Makes an entry unknown, because its descriptor was opened, closed or replaced.
pub(crate) fn forget(descriptor: c_int) {
    if let Some(entry) = entry(descriptor) {
        let unknown = |entry: u32| Some((entry & !KIND).wrapping_add(GENERATION));
        let _ = entry.fetch_update(Ordering::Relaxed, Ordering::Relaxed, unknown);
    }
}

/// Marks a descriptor as foreign permanently; only for processes without emulation.
pub(crate) fn ignore(descriptor: c_int) {
    if let Some(entry) = entry(descriptor) {
        entry.store(FOREIGN, Ordering::Relaxed);
    }
}

/// The emulated file behind a descriptor, if it is one.
pub(crate) fn file(state: &State, descriptor: c_int) -> Option<OpenFile> {
    match look_up(state, descriptor) {
        DescriptorKind::File(file) => Some(file),
        DescriptorKind::Foreign | DescriptorKind::Directory => None,
    }
}

/// Looks up a descriptor in the table and, if it is unknown there, in the kernel.
pub(crate) fn look_up(state: &State, descriptor: c_int) -> DescriptorKind {
    let known = entry(descriptor).map_or(UNKNOWN, |entry| entry.load(Ordering::Relaxed));
    match known & KIND {
        FOREIGN => return DescriptorKind::Foreign,
        FILE => {
            if let Some(file) = recall(descriptor) {
                return DescriptorKind::File(file);
            }
        }
        _ => {}
    }
    let kind = query_kernel(state, descriptor);
    if session::owns_memory() {
        let kind = match &kind {
            Some(DescriptorKind::Foreign) => FOREIGN,
            Some(DescriptorKind::File(file)) if remember_details(descriptor, file) => FILE,
            // Directories are looked up each time: they have no data calls.
            _ => UNKNOWN,
        };
        if let Some(entry) = entry(descriptor) {
            let _ = entry.compare_exchange(
                known,
                known & !KIND | kind,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
        }
    }
    kind.unwrap_or(DescriptorKind::Foreign)
}

/// Updates the entry of a file whose layout was just bound.
pub(crate) fn rebind(descriptor: c_int, file: &mut OpenFile, layout: Layout) {
    file.layout = layout;
    file.is_bound = true;
    if session::owns_memory() && !remember_details(descriptor, file) {
        forget(descriptor);
    }
}

/// `None` if the kernel does not know the descriptor: then the table stays unchanged.
fn query_kernel(state: &State, descriptor: c_int) -> Option<DescriptorKind> {
    let mut path = [0; paths::PATH_MAX];
    let length = kernel::descriptor_path(descriptor, &mut path).ok()?;
    if !state.covers(&path[..length]) {
        return Some(DescriptorKind::Foreign);
    }
    let status = kernel::status(descriptor).ok()?;
    match status.st_mode & libc::S_IFMT {
        libc::S_IFREG => {}
        libc::S_IFDIR => return Some(DescriptorKind::Directory),
        // Sockets, pipes and devices have no file data, wherever they are.
        _ => return Some(DescriptorKind::Foreign),
    }
    let bound = Striping::of_descriptor(descriptor)
        .ok()
        .flatten()
        .and_then(|striping| state.bound(striping));
    Some(DescriptorKind::File(OpenFile {
        layout: bound.unwrap_or_else(|| state.unbound_layout(status.st_ino)),
        size_bytes: u64::try_from(status.st_size).unwrap_or(0),
        is_bound: bound.is_some(),
        device: status.st_dev,
        inode: status.st_ino,
    }))
}

/// The file of a known descriptor, unless the descriptor was replaced unseen.
fn recall(descriptor: c_int) -> Option<OpenFile> {
    let details = DETAILS.get(usize::try_from(descriptor).ok()?)?;
    let before = details.sequence.load(Ordering::Acquire);
    let layout = Layout {
        stripe_count: details.stripe_count.load(Ordering::Relaxed),
        stripe_size_bytes: details.stripe_size_bytes.load(Ordering::Relaxed),
        first_target: details.first_target.load(Ordering::Relaxed),
    };
    let (device, inode) =
        (details.device.load(Ordering::Relaxed), details.inode.load(Ordering::Relaxed));
    fence(Ordering::Acquire);
    if before % 2 == 1 || details.sequence.load(Ordering::Relaxed) != before {
        return None;
    }
    let status = kernel::status(descriptor).ok()?;
    let size_bytes = u64::try_from(status.st_size).unwrap_or(0);
    (status.st_dev == device && status.st_ino == inode).then_some(OpenFile {
        layout,
        size_bytes,
        is_bound: true,
        device,
        inode,
    })
}

/// False if another thread is writing the same details, or a signal interrupted such a thread.
fn remember_details(descriptor: c_int, file: &OpenFile) -> bool {
    let Some(details) = usize::try_from(descriptor).ok().and_then(|index| DETAILS.get(index))
    else {
        return false;
    };
    let before = details.sequence.load(Ordering::Relaxed);
    let odd = before.wrapping_add(1);
    if before % 2 == 1
        || details
            .sequence
            .compare_exchange(before, odd, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
    {
        return false;
    }
    fence(Ordering::Release);
    details.stripe_count.store(file.layout.stripe_count, Ordering::Relaxed);
    details.stripe_size_bytes.store(file.layout.stripe_size_bytes, Ordering::Relaxed);
    details.first_target.store(file.layout.first_target, Ordering::Relaxed);
    details.device.store(file.device, Ordering::Relaxed);
    details.inode.store(file.inode, Ordering::Relaxed);
    details.sequence.store(odd.wrapping_add(1), Ordering::Release);
    true
}
