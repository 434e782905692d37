//! The waiting time of a call: before it, or after it if its size is known only then.
//! A call that fails after its wait stays charged. Never changes errno.

use std::ffi::{c_char, c_int};

use forebay_pfsmodel::{Op, State, kernel};

use crate::descriptors::{self, DescriptorKind, OpenFile};
use crate::{errno, names, session};

/// The maximum size of one call in the kernel.
const CALL_BYTES_MAX: u64 = 0x7fff_f000;

/// Where a data call begins.
#[derive(Clone, Copy)]
pub(crate) enum FileOffset {
    /// The position of the descriptor.
    Position,
    /// The offset that the call gives.
    Offset(i64),
}

/// Waits for a read of up to `length` bytes; true if the file is emulated.
#[inline(always)]
pub(crate) fn read(descriptor: c_int, length: usize, at: FileOffset) -> bool {
    !descriptors::is_foreign(descriptor) && data(descriptor, Op::Read, length as u64, at)
}

/// Waits for a write of `length` bytes; true if the file is emulated.
#[inline(always)]
pub(crate) fn write(descriptor: c_int, length: usize, at: FileOffset) -> bool {
    !descriptors::is_foreign(descriptor) && data(descriptor, Op::Write, length as u64, at)
}

/// After the real call: records the delay, which the next call subtracts.
#[inline(always)]
pub(crate) fn end_call(is_emulated: bool) {
    if is_emulated {
        session::note_oversleep();
    }
}

/// Waits for a vectored call; true if the file is emulated.
///
/// # Safety
/// `vector` points to `count` structs, as the call itself requires.
#[inline(always)]
pub(crate) unsafe fn vector(
    descriptor: c_int,
    op: Op,
    vector: *const libc::iovec,
    count: c_int,
    at: FileOffset,
) -> bool {
    // SAFETY: guaranteed by the caller.
    !descriptors::is_foreign(descriptor)
        && data(descriptor, op, unsafe { total_length(vector, count) }, at)
}

/// Sum of the lengths; 0 for counts that the kernel rejects.
unsafe fn total_length(vector: *const libc::iovec, count: c_int) -> u64 {
    let count = match usize::try_from(count) {
        Ok(count) if count <= 1024 && !vector.is_null() => count,
        _ => return 0,
    };
    // SAFETY: the caller guarantees `count` structs.
    let vector = unsafe { std::slice::from_raw_parts(vector, count) };
    vector.iter().fold(0, |sum: u64, part| sum.saturating_add(part.iov_len as u64))
}

#[cold]
#[inline(never)]
fn data(descriptor: c_int, op: Op, length: u64, at: FileOffset) -> bool {
    errno::kept(|| {
        let Some(state) = session::state() else {
            if session::is_off() {
                descriptors::ignore(descriptor);
            }
            return false;
        };
        let Some(file) = descriptors::file(state, descriptor) else {
            return false;
        };
        let (offset, length) = extent(descriptor, &file, op, length, at);
        charge(state, &file, op, offset, length);
        length > 0
    })
}

/// The range to transfer: reads end at the end of the file, appended writes begin there.
fn extent(descriptor: c_int, file: &OpenFile, op: Op, length: u64, at: FileOffset) -> (u64, u64) {
    let length = length.min(CALL_BYTES_MAX);
    let appends = op == Op::Write
        && kernel::open_flags(descriptor).is_ok_and(|flags| flags & libc::O_APPEND != 0);
    let offset = if appends { file.size_bytes } else { start(descriptor, at).unwrap_or(0) };
    match op {
        Op::Read => (offset, length.min(file.size_bytes.saturating_sub(offset))),
        Op::Write => (offset, length),
    }
}

/// `None` if the kernel will reject the call.
fn start(descriptor: c_int, at: FileOffset) -> Option<u64> {
    match at {
        FileOffset::Offset(offset) => u64::try_from(offset).ok(),
        FileOffset::Position => kernel::position(descriptor).ok(),
    }
}

fn charge(state: &State, file: &OpenFile, op: Op, offset: u64, length: u64) {
    let now_ns = session::now_ns();
    let finish_ns = state.charge_data(now_ns, &file.layout, session::client(), op, offset, length);
    session::sleep(state, now_ns, finish_ns);
}

/// One side of a transfer in the kernel: the emulated file, if it is one, and where the transfer begins.
pub(crate) struct Side(Option<(OpenFile, u64)>);

/// Records where a transfer will begin. It is charged afterwards: its size is unknown before, and
/// many programs fall back to read and write if it is refused.
///
/// # Safety
/// `offset` is null or points to an offset, as the call itself requires.
pub(crate) unsafe fn side(descriptor: c_int, offset: *const i64) -> Side {
    if descriptors::is_foreign(descriptor) {
        return Side(None);
    }
    // SAFETY: the caller guarantees that it is null or points to an offset.
    let at = unsafe { offset.as_ref() }
        .map_or(FileOffset::Position, |offset| FileOffset::Offset(*offset));
    errno::kept(|| {
        let file = session::state().and_then(|state| descriptors::file(state, descriptor));
        Side(file.and_then(|file| start(descriptor, at).map(|offset| (file, offset))))
    })
}

/// Waits for a transfer of `moved` bytes (-1: it failed and costs nothing). Charges both sides in parallel.
pub(crate) fn transfer(from: &Side, to: &Side, moved: isize) {
    let (Ok(moved), true) = (u64::try_from(moved), from.0.is_some() || to.0.is_some()) else {
        return;
    };
    errno::kept(|| {
        let Some(state) = session::state() else {
            return;
        };
        let now_ns = session::now_ns();
        let side = |side: &Side, op| match &side.0 {
            Some((file, offset)) => {
                state.charge_data(now_ns, &file.layout, session::client(), op, *offset, moved)
            }
            None => now_ns,
        };
        let finish_ns = side(from, Op::Read).max(side(to, Op::Write));
        session::sleep(state, now_ns, finish_ns);
    });
}

/// Waits for an fsync. For a directory, this is a metadata operation.
pub(crate) fn sync(descriptor: c_int) {
    with_descriptor(descriptor, |state, kind| match kind {
        DescriptorKind::File(file) => {
            let now_ns = session::now_ns();
            let finish_ns = state.charge_sync(now_ns, &file.layout, session::client());
            session::sleep(state, now_ns, finish_ns);
        }
        DescriptorKind::Directory => metadata(state),
        DescriptorKind::Foreign => {}
    });
}

/// Waits for a metadata operation on an open file or directory.
pub(crate) fn metadata_of(descriptor: c_int) {
    with_descriptor(descriptor, |state, kind| {
        if !matches!(kind, DescriptorKind::Foreign) {
            metadata(state);
        }
    });
}

fn with_descriptor(descriptor: c_int, then: impl FnOnce(&State, DescriptorKind)) {
    if !descriptors::is_foreign(descriptor) {
        errno::kept(|| {
            session::state().map(|state| then(state, descriptors::look_up(state, descriptor)))
        });
    }
}

/// Waits for a metadata operation on a path relative to `directory`. Without a path, on `directory`
/// itself (`AT_EMPTY_PATH`, or `utimensat` like `futimens`).
pub(crate) fn metadata_at(directory: c_int, path: *const c_char) {
    // SAFETY: a path that is not null is a C string, so it has a first byte.
    if path.is_null() || unsafe { *path } == 0 {
        return metadata_of(directory);
    }
    metadata_at_either((directory, path), (directory, std::ptr::null()));
}

/// Waits for one metadata operation if either path is emulated.
pub(crate) fn metadata_at_either(one: (c_int, *const c_char), other: (c_int, *const c_char)) {
    if session::is_off() {
        return;
    }
    errno::kept(|| {
        if let Some(state) = session::state()
            && (names::is_emulated(state, one.0, one.1)
                || names::is_emulated(state, other.0, other.1))
        {
            metadata(state);
        }
    });
}

fn metadata(state: &State) {
    let now_ns = session::now_ns();
    session::sleep(state, now_ns, state.charge_metadata(now_ns, session::client()));
}

/// Counts an emulated file whose data calls the model does not see.
pub(crate) fn unmodelled(descriptor: c_int) {
    with_descriptor(descriptor, |state, kind| {
        if matches!(kind, DescriptorKind::File(_)) {
            state.note_unmodelled();
        }
    });
}
