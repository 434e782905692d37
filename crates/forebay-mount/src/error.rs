//! Errors: those of a request, which its process gets, and those that end the mount.

use std::path::PathBuf;

/// The error number that a request fails with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Errno(pub(crate) i32);

impl Errno {
    /// A request that is not what the protocol says.
    pub(crate) const MALFORMED: Self = Self(libc::EIO);

    /// The number for the kernel, which takes those below 512 only.
    pub(crate) fn answer(self) -> i32 {
        if (1..512).contains(&self.0) { -self.0 } else { -libc::EIO }
    }
}

/// Why there is no mount.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// libcephfs cannot be used, or the cluster does not answer.
    #[error(transparent)]
    Ceph(#[from] forebay_ceph::Error),
    /// The client of libcephfs was not created, or refused a part of its configuration.
    #[error("cannot use {what} for a mount: error {errno}")]
    Configuration {
        /// The file or option.
        what: String,
        /// The error number.
        errno: i32,
    },
    /// The file system has no such directory, or its servers do not answer.
    #[error("cannot mount {root} of the file system in {config}: {source}", config = .config.display())]
    Mount {
        /// The directory in the file system.
        root: String,
        /// The configuration file.
        config: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The operating system failed.
    #[error(transparent)]
    Host(#[from] forebay_host::Error),
}

impl Error {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Ceph(error) => error.hint(),
            Self::Configuration { .. } => {
                Some("check that the file exists and is a Ceph configuration".to_owned())
            }
            Self::Mount { .. } => {
                Some("check that the daemons run and that the key may use the directory".to_owned())
            }
            Self::Host(error) => match error.is_denied() {
                true => Some("as root: chmod 666 /dev/fuse; install fuse3".to_owned()),
                false => error.hint().map(str::to_owned),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_numbers_are_those_of_the_kernel() {
        assert_eq!(Errno(libc::EDQUOT).answer(), -122);
        assert_eq!(Errno(libc::ESHUTDOWN).answer(), -108);
        assert_eq!(Errno(5000).answer(), -libc::EIO);
        assert_eq!(Errno(0).answer(), -libc::EIO);
    }
}
