//! Striping requests, stored as text in the extended attribute [`LAYOUT_XATTR`] of directories and
//! files: `v1 count=4 size=1048576 first=-1`. The values of a file are complete. Those of a directory
//! may be open: count `-1` (all targets) or `0` (default), size `0` (default), first target `-1` (any).

use std::ffi::{CStr, c_int};
use std::io;

use crate::kernel;
use crate::layout::Layout;

/// The extended attribute with the striping of a file or, for new files, of a directory.
pub const LAYOUT_XATTR: &CStr = c"user.forebay.pfs.layout";

/// The maximum length of the text: the prefix and three full numbers.
const TEXT_MAX: usize = 80;

/// A request for striping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Striping {
    /// Number of targets; -1: all targets, 0: the default of the machine.
    pub stripe_count: i32,
    /// Size of a stripe in bytes; 0: the default of the machine.
    pub stripe_size_bytes: u64,
    /// First target; -1: any.
    pub first_target: i32,
}

impl Striping {
    /// Uses the defaults of the machine file.
    pub const DEFAULT: Self = Self { stripe_count: 0, stripe_size_bytes: 0, first_target: -1 };

    /// Parses an attribute value; `None` if it is not valid.
    pub fn from_bytes(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?.strip_prefix("v1 count=")?;
        let (count, rest) = text.split_once(" size=")?;
        let (size, first) = rest.split_once(" first=")?;
        let striping = Self {
            stripe_count: count.parse().ok()?,
            stripe_size_bytes: size.parse().ok()?,
            first_target: first.parse().ok()?,
        };
        (striping.stripe_count >= -1 && striping.first_target >= -1).then_some(striping)
    }

    /// Writes the attribute value without allocation, because the preload runs inside other programs.
    fn write_to(self, text: &mut [u8; TEXT_MAX]) -> usize {
        let mut cursor = io::Cursor::new(&mut text[..]);
        // TEXT_MAX holds the longest value, so this cannot fail. from_bytes rejects a truncated value.
        let _ = io::Write::write_fmt(
            &mut cursor,
            format_args!(
                "v1 count={} size={} first={}",
                self.stripe_count, self.stripe_size_bytes, self.first_target
            ),
        );
        cursor.position() as usize
    }

    /// Reads the attribute of an open file or directory; `None` without one.
    ///
    /// # Errors
    /// The errors of `fgetxattr`, except "no attribute" and "not supported".
    pub fn of_descriptor(descriptor: c_int) -> io::Result<Option<Self>> {
        let mut text = [0; TEXT_MAX];
        absent_is_none(kernel::descriptor_attribute(descriptor, LAYOUT_XATTR, &mut text), &text)
    }

    /// Reads the attribute of a file or directory by path. Follows symlinks.
    ///
    /// # Errors
    /// The errors of `getxattr`, except "no attribute" and "not supported".
    pub fn of_path(path: &CStr) -> io::Result<Option<Self>> {
        let mut text = [0; TEXT_MAX];
        absent_is_none(kernel::path_attribute(path, LAYOUT_XATTR, &mut text), &text)
    }

    /// Stores the request on an open file that has none.
    ///
    /// # Errors
    /// `EEXIST` if the file has one; `ENOTSUP` on a file system without user attributes.
    pub fn bind_descriptor(self, descriptor: c_int) -> io::Result<()> {
        let mut text = [0; TEXT_MAX];
        let length = self.write_to(&mut text);
        kernel::create_descriptor_attribute(descriptor, LAYOUT_XATTR, &text[..length])
    }

    /// Stores the request on a directory or file by path. Replaces an existing one.
    ///
    /// # Errors
    /// The errors of `setxattr`, for example `ENOTSUP` on a file system without user attributes.
    pub fn store_at_path(self, path: &CStr) -> io::Result<()> {
        let mut text = [0; TEXT_MAX];
        let length = self.write_to(&mut text);
        kernel::set_path_attribute(path, LAYOUT_XATTR, &text[..length])
    }

    /// Removes the request from a directory, if it has one.
    ///
    /// # Errors
    /// The errors of `removexattr`, except "no attribute".
    pub fn remove_from_path(path: &CStr) -> io::Result<()> {
        match kernel::remove_path_attribute(path, LAYOUT_XATTR) {
            Err(error) if error.raw_os_error() == Some(libc::ENODATA) => Ok(()),
            other => other,
        }
    }
}

impl From<Layout> for Striping {
    fn from(layout: Layout) -> Self {
        // Counts and targets are at most TARGETS_MAX, far below i32::MAX.
        Self {
            stripe_count: layout.stripe_count as i32,
            stripe_size_bytes: layout.stripe_size_bytes,
            first_target: layout.first_target as i32,
        }
    }
}

fn absent_is_none(length: io::Result<usize>, text: &[u8]) -> io::Result<Option<Striping>> {
    match length {
        Ok(length) => Ok(text.get(..length).and_then(Striping::from_bytes)),
        Err(error)
            if matches!(
                error.raw_os_error(),
                Some(libc::ENODATA | libc::ENOTSUP | libc::ERANGE)
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::{Striping, TEXT_MAX};

    #[test]
    fn striping_text_is_parsed_back() {
        let extremes = Striping {
            stripe_count: i32::MAX,
            stripe_size_bytes: u64::MAX,
            first_target: i32::MAX,
        };
        for striping in [Striping::DEFAULT, Striping { stripe_count: -1, ..extremes }, extremes] {
            let mut text = [0; TEXT_MAX];
            let length = striping.write_to(&mut text);
            assert_eq!(Striping::from_bytes(&text[..length]), Some(striping));
        }
    }

    #[test]
    fn foreign_text_is_refused() {
        for text in [
            "",
            "v2 count=1 size=1 first=0",
            "v1 count=1",
            "v1 count=-2 size=1 first=0",
            "v1 count=1 size=-1 first=0",
        ] {
            assert_eq!(Striping::from_bytes(text.as_bytes()), None, "{text}");
        }
    }
}
