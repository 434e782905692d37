//! The placement of data, and calls for the whole instance.
//! Assumes that /proc is mounted. Never changes a layout except on CephFS: a plain directory has only one.

use std::ffi::{CString, c_char, c_int, c_uint};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use forebay_host::files::{self, Kind};
use forebay_requests::{Answer, Name, Question};

use crate::ceph_layout::CephLayout;
use crate::query::{errno, name, path, query_job};
use crate::{ErrnoResult, status, value};

/// The number of servers of a plain directory: only the node itself.
const WIDTH: c_int = 1;
const FIRST: c_int = 0;
/// The variables with the namespaces of a job that have a layout.
const NAMESPACES: [&str; 2] = ["DW_JOB_STRIPED", "DW_PERSISTENT_STRIPED_"];

/// The placement of a plain directory: the stripe size in bytes, and whether it can be set.
fn layout(about: &Name) -> ErrnoResult<(c_int, bool)> {
    match query_job(&Question::Layout(about.clone()), about)? {
        Answer::Layout { stripe_bytes, may_be_set } => {
            Ok((c_int::try_from(stripe_bytes).unwrap_or(c_int::MAX), may_be_set))
        }
        _ => Err(-libc::EIO),
    }
}

/// The placement of an open file or directory.
struct Placement {
    stripe_bytes: c_int,
    width: c_int,
    first: c_int,
    may_be_set: bool,
    ceph: Option<CephLayout>,
}

impl Placement {
    fn of(fd: c_int) -> ErrnoResult<Self> {
        let path = path_of_open_file(fd)?;
        let ceph = CephLayout::of(fd, &path).map_err(|error| errno(&error.source))?;
        let answer = match layout(&Name::from(path.as_path())) {
            // The job's socket is on its first node. The layout is visible on the others, too.
            Err(refused) if refused == -libc::ENOTCONN && ceph.is_some() && is_in_job(&path) => {
                (0, may_be_set(fd)?)
            }
            // The open file has no name in a namespace: it is removed, a pipe or a socket.
            Err(refused) if refused == -libc::ENOENT => return Err(-libc::EINVAL),
            answer => answer?,
        };
        let (plain_bytes, may_be_set) = answer;
        Ok(match ceph {
            None => Self {
                stripe_bytes: plain_bytes,
                width: WIDTH,
                first: FIRST,
                may_be_set,
                ceph: None,
            },
            Some(ceph) => Self {
                stripe_bytes: c_int::try_from(ceph.unit_bytes).unwrap_or(c_int::MAX),
                width: c_int::try_from(ceph.servers).unwrap_or(c_int::MAX),
                first: c_int::try_from(ceph.first_server).unwrap_or(c_int::MAX),
                may_be_set,
                ceph: Some(ceph),
            },
        })
    }
}

/// The path of an open file.
fn path_of_open_file(fd: c_int) -> ErrnoResult<PathBuf> {
    match files::read_link(&of_descriptor(fd)) {
        Ok(path) => Ok(path),
        Err(error) if error.is_not_found() => Err(-libc::EBADF),
        Err(error) => Err(errno(&error.source)),
    }
}

/// A path that leads to an open file whatever its name.
pub(crate) fn of_descriptor(fd: c_int) -> PathBuf {
    Path::new("/proc/self/fd").join(fd.to_string())
}

/// Is the path in a striped namespace of the job?
fn is_in_job(path: &Path) -> bool {
    std::env::vars_os().any(|(name, value)| {
        let name = name.to_string_lossy();
        let is_namespace = name == NAMESPACES[0] || name.starts_with(NAMESPACES[1]);
        is_namespace && files::real_path(Path::new(&value)).is_ok_and(|root| path.starts_with(root))
    })
}

fn may_be_set(fd: c_int) -> ErrnoResult<bool> {
    let status = files::status(&of_descriptor(fd)).map_err(|error| errno(&error.source))?;
    let is_empty = status.kind == Kind::File && status.size_bytes == 0;
    Ok(is_empty || status.kind == Kind::Directory)
}

/// See `datawarp.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dw_get_stripe_configuration(
    fd: c_int,
    stripe_size: *mut c_int,
    stripe_width: *mut c_int,
    starting_index: *mut c_int,
) -> c_int {
    status(|| {
        let into = [stripe_size, stripe_width, starting_index];
        if into.iter().any(|pointer| pointer.is_null()) {
            return Err(-libc::EINVAL);
        }
        let placement = Placement::of(fd)?;
        let values = [placement.stripe_bytes, placement.width, placement.first];
        for (into, value) in into.into_iter().zip(values) {
            // SAFETY: not NULL, and the header requires a pointer to an int.
            unsafe { *into = value };
        }
        Ok(())
    })
}

/// See `datawarp.h`. A plain directory accepts only its own values, because there is one server. On CephFS
/// the size can be set; a file is spread over all servers.
#[unsafe(no_mangle)]
pub extern "C" fn dw_set_stripe_configuration(
    fd: c_int,
    stripe_size: c_int,
    stripe_width: c_int,
) -> c_int {
    status(|| {
        let placement = Placement::of(fd)?;
        if !placement.may_be_set || stripe_width != placement.width {
            return Err(-libc::EINVAL);
        }
        match placement.ceph {
            None if stripe_size == placement.stripe_bytes => Ok(()),
            None => Err(-libc::EINVAL),
            Some(ceph) => {
                let unit_bytes = u64::try_from(stripe_size).map_err(|_| -libc::EINVAL)?;
                ceph.set(fd, unit_bytes)
            }
        }
    })
}

/// See `datawarp.h`. There is one metadata server, so each key returns the root.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dw_get_mds_path(root: *const c_char, _key: u64) -> *mut c_char {
    let path = value(|| {
        // SAFETY: the header requires a valid argument.
        let root = unsafe { path(root) }?;
        layout(&Name::from(root.as_path()))?;
        let text = CString::new(root.as_os_str().as_bytes()).map_err(|_| -libc::EINVAL)?;
        allocated(&text)
    });
    path.unwrap_or_else(|refused| {
        // SAFETY: the address of this thread's errno.
        unsafe { *libc::__errno_location() = -refused };
        std::ptr::null_mut()
    })
}

/// See `datawarp.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dw_set_stage_concurrency(instance: *const c_char, most: c_uint) -> c_int {
    status(|| {
        // SAFETY: the header requires a valid argument.
        let instance = unsafe { name(instance) }?;
        query_job(&Question::Concurrency(instance.clone(), most), &instance).map(drop)
    })
}

/// See `datawarp.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dw_get_accounting_data_json(
    instance: *const c_char,
    ecode: *mut c_int,
) -> *mut c_char {
    let text = value(|| {
        // SAFETY: the header requires a valid argument.
        let instance = unsafe { name(instance) }?;
        let Answer::Accounting(text) =
            query_job(&Question::Accounting(instance.clone()), &instance)?
        else {
            return Err(-libc::EIO);
        };
        allocated(&CString::new(text).map_err(|_| -libc::EIO)?)
    });
    if !ecode.is_null() {
        // SAFETY: not NULL, and the header requires a pointer to an int.
        unsafe { *ecode = text.err().unwrap_or(0) };
    }
    text.unwrap_or(std::ptr::null_mut())
}

/// See `datawarp.h`. The function is for files in a cache. Forebay has no cache, so there is no
/// copy to wait for.
#[unsafe(no_mangle)]
pub extern "C" fn dw_wait_sync_complete(fd: c_int) -> c_int {
    status(|| {
        path_of_open_file(fd)?;
        Err(-libc::EINVAL)
    })
}

/// A copy of the text that the caller frees with free(3).
fn allocated(text: &CString) -> ErrnoResult<*mut c_char> {
    // SAFETY: the text is zero-terminated.
    let copy = unsafe { libc::strdup(text.as_ptr()) };
    match copy.is_null() {
        true => Err(-libc::ENOMEM),
        false => Ok(copy),
    }
}
