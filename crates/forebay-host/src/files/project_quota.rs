//! Limits the size of a directory by project quotas of XFS and ext4.
//! Assumes CAP_SYS_ADMIN and Linux 5.14: ask `no_project_quota` first.
//! Never limits the number of files. What a directory has before `set_project` does not count.

use std::io;
use std::os::fd::AsRawFd;

use super::Directory;
use crate::{Result, with_context};

/// The kind of quota and its commands, from `linux/quota.h` and `linux/dqblk_xfs.h`.
const PROJECT: libc::c_long = 2;
const GET: libc::c_long = 0x80_0007;
const SET: libc::c_long = 0x80_0008;
const STATE: libc::c_long = (('X' as libc::c_long) << 8) + 8;
/// The version of [`State`], and its flag for enforced project quotas.
const STATE_VERSION: u8 = 1;
const IS_ENFORCED: u16 = 1 << 5;
/// Limits count blocks of this size.
const BLOCK_BYTES: u64 = 1024;
/// The requests for [`Attributes`], and their flag of a directory whose new files get its project.
const GET_ATTRIBUTES: libc::Ioctl = 0x801c_581f_u32 as libc::Ioctl;
const SET_ATTRIBUTES: libc::Ioctl = 0x401c_5820;
const INHERIT: u32 = 0x200;

/// `fs_quota_statv`, of which only the flags are read.
#[repr(C)]
struct State {
    version: u8,
    pad: u8,
    flags: u16,
    rest: [u64; 64],
}

/// `fsxattr`.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    flags: u32,
    extent_bytes: u32,
    extents: u32,
    project: u32,
    copy_on_write_bytes: u32,
    pad: [u8; 8],
}

/// Why directories cannot be limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoQuota {
    /// The file system enforces no project quotas.
    NotEnforced,
    /// This process may not set any.
    NotAllowed,
    /// The kernel is older than Linux 5.14.
    OldKernel,
}

impl Directory {
    /// Why directories in this one cannot be limited; none if they can.
    ///
    /// # Errors
    /// If the kernel does not say.
    pub fn no_project_quota(&self) -> Result<Option<NoQuota>> {
        let mut state = State { version: STATE_VERSION, pad: 0, flags: 0, rest: [0; 64] };
        // SAFETY: the kernel writes a `fs_quota_statv`, which is smaller than `State`.
        let asked = unsafe { self.quota(STATE, 0, (&raw mut state).cast()) };
        match asked.map_err(|error| error.raw_os_error()) {
            Ok(()) if state.flags & IS_ENFORCED != 0 => {}
            // Linux has the call for file systems without quotas, too, and then another error.
            Err(Some(libc::ENOSYS)) if !has_call() => return Ok(Some(NoQuota::OldKernel)),
            Ok(()) | Err(_) => return Ok(Some(NoQuota::NotEnforced)),
        }
        let mut limits = limits_of(0);
        // SAFETY: the kernel writes one `dqblk`.
        let read = unsafe { self.quota(GET, 0, (&raw mut limits).cast()) };
        match read {
            Err(error) if error.raw_os_error() == Some(libc::EPERM) => {
                Ok(Some(NoQuota::NotAllowed))
            }
            Err(error) if error.raw_os_error() != Some(libc::ENOENT) => {
                with_context(Err(error), "read the project quotas of", self.path())
            }
            _ => Ok(None),
        }
    }

    /// Limits what the directories of a project have in this file system; 0 ends the limit.
    ///
    /// # Errors
    /// That of the kernel.
    pub fn limit_project(&self, project: u32, bytes: u64) -> Result<()> {
        let mut limits = limits_of(bytes);
        // SAFETY: the kernel reads one `dqblk`.
        let set = unsafe { self.quota(SET, project, (&raw mut limits).cast()) };
        with_context(set, "limit the size of directories in", self.path())
    }

    /// Makes this directory one of a project, with all that is created in it from now on.
    ///
    /// # Errors
    /// That of the kernel.
    pub fn set_project(&self, project: u32) -> Result<()> {
        let mut attributes = Attributes::default();
        let number = self.opened.as_raw_fd();
        // SAFETY: the kernel writes one `fsxattr`.
        let read = unsafe { libc::ioctl(number, GET_ATTRIBUTES, &raw mut attributes) };
        with_context(result_of(read), "read the project of", self.path())?;
        attributes.project = project;
        attributes.flags |= INHERIT;
        // SAFETY: the kernel reads one `fsxattr`.
        let set = unsafe { libc::ioctl(number, SET_ATTRIBUTES, &raw const attributes) };
        with_context(result_of(set), "set the project of", self.path())
    }

    /// # Safety
    /// `data` must point to what the command reads or writes.
    unsafe fn quota(
        &self,
        command: libc::c_long,
        project: u32,
        data: *mut libc::c_void,
    ) -> io::Result<()> {
        let command = (command << 8) | PROJECT;
        let number = self.opened.as_raw_fd();
        // SAFETY: the caller's promise.
        let done = unsafe { libc::syscall(libc::SYS_quotactl_fd, number, command, project, data) };
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

/// Whether the kernel has `quotactl_fd`: it then refuses a file descriptor that there cannot be.
fn has_call() -> bool {
    let none = std::ptr::null_mut::<libc::c_void>();
    // SAFETY: no file is open under this number, so nothing is read or written.
    let done = unsafe { libc::syscall(libc::SYS_quotactl_fd, -1, 0, 0, none) };
    done == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::ENOSYS)
}

fn result_of(returned: libc::c_int) -> io::Result<()> {
    if returned == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn limits_of(bytes: u64) -> libc::dqblk {
    libc::dqblk {
        dqb_bhardlimit: bytes.div_ceil(BLOCK_BYTES),
        dqb_bsoftlimit: 0,
        dqb_curspace: 0,
        dqb_ihardlimit: 0,
        dqb_isoftlimit: 0,
        dqb_curinodes: 0,
        dqb_btime: 0,
        dqb_itime: 0,
        dqb_valid: libc::QIF_BLIMITS,
    }
}
