//! Binds layouts to new files and directories, after the call that created them.
//! Never fails a call or changes its errno: without user attributes a file keeps a layout derived from its inode
//! number. Never binds a file that has data.

use std::ffi::{CStr, c_char, c_int};

use forebay_pfsmodel::{Layout, State, Striping, kernel, paths};

use crate::descriptors::{self, DescriptorKind, OpenFile};
use crate::names::{self, Buffer};
use crate::{errno, session};

/// What happened before an open.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opening {
    /// The name is emulated, and its metadata operation is charged.
    Charged,
    /// The name is not emulated; a symlink may still lead to an emulated file.
    ByForeignName,
}

/// Charges the open of an emulated name.
pub(crate) fn before_open(directory: c_int, path: *const c_char) -> Opening {
    errno::kept(|| match session::state() {
        Some(state) if names::is_emulated(state, directory, path) => {
            charge_metadata(state);
            Opening::Charged
        }
        _ => Opening::ByForeignName,
    })
}

/// Drops the old entry of the descriptor, binds the layout of a new file, and charges what
/// `before_open` did not charge.
pub(crate) fn after_open(descriptor: c_int, may_create: bool, opening: Opening) {
    if descriptor < 0 || session::is_off() {
        return;
    }
    descriptors::forget(descriptor);
    if opening == Opening::Charged || may_create {
        errno::kept(|| {
            session::state().map(|state| bind_opened(state, descriptor, may_create, opening))
        });
    }
}

fn bind_opened(state: &State, descriptor: c_int, may_create: bool, opening: Opening) {
    let kind = descriptors::look_up(state, descriptor);
    if opening == Opening::ByForeignName && !matches!(kind, DescriptorKind::Foreign) {
        charge_metadata(state);
    }
    let DescriptorKind::File(mut file) = kind else { return };
    if may_create && !file.is_bound && file.size_bytes == 0 {
        bind(state, descriptor, &mut file);
    }
    let now_ns = session::now_ns();
    session::sleep(state, now_ns, state.charge_open_stripes(now_ns, &file.layout));
}

/// Binds an empty file without layout to the layout of its directory or the default. If two
/// processes create it together, one attribute wins and both use it. If the attribute cannot be
/// stored (no permission, no user attributes), the derived layout stays.
fn bind(state: &State, descriptor: c_int, file: &mut OpenFile) {
    let striping = directory_of_descriptor(descriptor).unwrap_or(Striping::DEFAULT);
    let layout = state.complete(striping);
    match Striping::from(layout).bind_descriptor(descriptor) {
        Ok(()) => descriptors::rebind(descriptor, file, layout),
        Err(error) if error.raw_os_error() == Some(libc::EEXIST) => {
            if let Some(theirs) = stored_layout(state, descriptor) {
                descriptors::rebind(descriptor, file, theirs);
            }
        }
        Err(_) => {}
    }
}

fn stored_layout(state: &State, descriptor: c_int) -> Option<Layout> {
    state.bound(Striping::of_descriptor(descriptor).ok()??)
}

fn directory_of_descriptor(descriptor: c_int) -> Option<Striping> {
    let mut path: Buffer = [0; paths::PATH_MAX];
    let length = kernel::descriptor_path(descriptor, &mut path).ok()?;
    directory_striping(&mut path, length)
}

/// The striping of the directory of the path in `path[..length]`. Truncates the path.
fn directory_striping(path: &mut Buffer, length: usize) -> Option<Striping> {
    let cut = paths::parent_length(&path[..length]);
    *path.get_mut(cut)? = 0;
    Striping::of_path(CStr::from_bytes_until_nul(path).ok()?).ok()?
}

/// Copies the striping of the parent to a new directory.
pub(crate) fn after_mkdir(result: c_int, directory: c_int, path: *const c_char) {
    if result != 0 || session::is_off() || path.is_null() {
        return;
    }
    // SAFETY: mkdir succeeded, so this is a C string.
    let path = unsafe { CStr::from_ptr(path) }.to_bytes();
    errno::kept(|| session::state().and_then(|state| inherit(state, directory, path)));
}

fn inherit(state: &State, directory: c_int, path: &[u8]) -> Option<()> {
    let mut buffer: Buffer = [0; paths::PATH_MAX];
    let length = names::absolute(directory, path, &mut buffer)?;
    if !state.covers(&buffer[..length]) {
        return None;
    }
    let cut = paths::parent_length(&buffer[..length]);
    let striping = directory_striping(&mut buffer, length)?;
    *buffer.get_mut(cut)? = b'/';
    *buffer.get_mut(length)? = 0;
    let name = CStr::from_bytes_until_nul(&buffer).ok()?;
    // Without user attributes there is no striping to inherit.
    striping.store_at_path(name).ok()
}

fn charge_metadata(state: &State) {
    let now_ns = session::now_ns();
    session::sleep(state, now_ns, state.charge_metadata(now_ns, session::client()));
}
