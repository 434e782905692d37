//! ioctl(2): the calls by which a program chooses lazy I/O. mpi/include/lazy_ioctl.h says what they do.

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::error::Errno;
use crate::protocol::{Answer, Request};
use crate::reply::{Outcome, Result};
use crate::server::Server;

const PATH_BYTES: u32 = 4096;
const KIND: u32 = 0xfb << 8;
/// `_IOW(0xfb, 1, struct lazy_path)`, as on x86-64 and aarch64.
const LAZY_BEGIN: u32 = 1 << 30 | PATH_BYTES << 16 | KIND | 1;
/// `_IO(0xfb, 2)`.
const LAZY_SYNC: u32 = KIND | 2;
/// `_IO(0xfb, 3)`.
const LAZY_END: u32 = KIND | 3;

/// `FUSE_IOCTL_UNRESTRICTED` and `FUSE_IOCTL_DIR`.
const UNRESTRICTED: u32 = 1 << 1;
const OF_DIRECTORY: u32 = 1 << 4;

impl Server {
    pub(crate) fn control(&self, request: &mut Request) -> Result {
        let body = &mut request.body;
        let (number, flags, command) = (body.u64()?, body.u32()?, body.u32()?);
        body.take(8)?; // the argument's address in the process
        let (size, _) = (body.u32()?, body.u32()?);
        let argument = body.take(size as usize)?;
        let is_known = matches!(command, LAZY_BEGIN | LAZY_SYNC | LAZY_END);
        if flags & (UNRESTRICTED | OF_DIRECTORY) != 0 || !is_known || !self.client.has_cache() {
            return Err(Errno(libc::ENOTTY));
        }
        let file = self.files.get(number)?;
        let is_lazy = match command {
            LAZY_BEGIN => file.begin_lazy(path_of(argument)?)?,
            LAZY_SYNC => file.sync_lazy()?,
            _ => file.end_lazy().map(|()| false)?,
        };
        let mut answer = Answer::default();
        answer.u32(is_lazy.into()).zeros(12);
        Ok(Outcome::Fields(answer))
    }
}

fn path_of(argument: &[u8]) -> Result<PathBuf> {
    let path = CStr::from_bytes_until_nul(argument).map_err(|_| Errno(libc::ENAMETOOLONG))?;
    Ok(OsStr::from_bytes(path.to_bytes()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers as the header for programs has them.
    const HEADER: &str = include_str!("../../../mpi/include/lazy_ioctl.h");

    #[test]
    fn calls_are_those_of_the_header() {
        for line in [
            "enum { LAZY_PATH_BYTES = 4096 };",
            "#define FOREBAY_LAZY_BEGIN _IOW(0xfb, 1, struct lazy_path)",
            "#define FOREBAY_LAZY_SYNC _IO(0xfb, 2)",
            "#define FOREBAY_LAZY_END _IO(0xfb, 3)",
        ] {
            assert!(HEADER.lines().any(|of_header| of_header == line), "{line}");
        }
        assert_eq!((LAZY_BEGIN, LAZY_SYNC, LAZY_END), (0x5000_fb01, 0xfb02, 0xfb03));
    }

    #[test]
    fn path_ends_with_a_zero() {
        assert_eq!(path_of(b"/a/b\0\0"), Ok(PathBuf::from("/a/b")));
        assert_eq!(path_of(b"/a/b"), Err(Errno(libc::ENAMETOOLONG)));
    }
}
