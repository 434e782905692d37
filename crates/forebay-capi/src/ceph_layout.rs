//! The layout of files and directories on CephFS, which the client shows as extended attributes. A file system
//! without them has no such layout.

use std::ffi::c_int;
use std::path::Path;

use forebay_host::files::{self, Kind};

use crate::ErrnoResult;
use crate::layout::of_descriptor;
use crate::query::errno;

/// CephFS accepts multiples of the first. Storage daemons accept objects of at most the second.
const UNIT_BYTES: u64 = 64 << 10;
const OBJECT_BYTES_MAX: u64 = 128 << 20;
/// The engine ceph notes the number of its storage daemons at its mount.
const SERVERS: &str = "user.forebay.servers";
/// Its pool of directories whose files are placed on the node that creates them. The pool of such files has the number
/// of the node behind a `.`.
const LOCAL_POOL: &str = "local";

/// A layout in effect.
pub(crate) struct CephLayout {
    /// Bytes that are next to each other on one server.
    pub unit_bytes: u64,
    /// The number of servers that a file is spread over at most.
    pub servers: u64,
    /// The number of the first server, from 0 on; 0 where there is none.
    pub first_server: u64,
    /// CephFS's own count of objects that a file is written to in turn.
    stripe_count: u64,
    kind: Kind,
}

impl CephLayout {
    /// The layout of an open file, or that which a directory gives to new files; none on another file system.
    pub(crate) fn of(fd: c_int, path: &Path) -> forebay_host::Result<Option<Self>> {
        let descriptor = of_descriptor(fd);
        let kind = files::status(&descriptor)?.kind;
        let found = match kind {
            Kind::File => read(&descriptor, "ceph.file.layout")?,
            // A directory without a layout of its own has that of the nearest directory above.
            Kind::Directory => match read(&descriptor, "ceph.dir.layout")? {
                None => nearest_above(path, |directory| read(directory, "ceph.dir.layout"))?,
                own => own,
            },
            _ => None,
        };
        let Some(StripeAttributes { unit_bytes, stripe_count, pool }) = found else {
            return Ok(None);
        };
        let all = nearest_above(path, |directory| number(directory, SERVERS))?;
        let (servers, first_server) = match (all, server_of(&pool)) {
            (None, _) => (stripe_count, 0),
            (Some(all), None) => (all, 0),
            (Some(_), Some(server)) => (1, server),
        };
        Ok(Some(Self { unit_bytes, servers, first_server, stripe_count, kind }))
    }

    /// Sets the unit of an empty file or a directory. Each unit is an object of its own.
    pub(crate) fn set(&self, fd: c_int, unit_bytes: u64) -> ErrnoResult<()> {
        if unit_bytes == 0
            || !unit_bytes.is_multiple_of(UNIT_BYTES)
            || unit_bytes > OBJECT_BYTES_MAX
        {
            return Err(-libc::EINVAL);
        }
        let name = match self.kind {
            Kind::Directory => "ceph.dir.layout",
            _ => "ceph.file.layout",
        };
        let count = self.stripe_count;
        let layout =
            format!("stripe_unit={unit_bytes} stripe_count={count} object_size={unit_bytes}");
        files::set_extended_attribute_of_path(&of_descriptor(fd), name, layout.as_bytes())
            .map_err(|error| errno(&error.source))
    }
}

/// A layout as the client shows it.
struct StripeAttributes {
    unit_bytes: u64,
    stripe_count: u64,
    pool: String,
}

fn read(path: &Path, layout: &str) -> forebay_host::Result<Option<StripeAttributes>> {
    let unit_bytes = number(path, &format!("{layout}.stripe_unit"))?;
    let stripe_count = number(path, &format!("{layout}.stripe_count"))?;
    let pool = text(path, &format!("{layout}.pool"))?;
    let numbers = unit_bytes.zip(stripe_count);
    Ok(numbers.map(|(unit_bytes, stripe_count)| StripeAttributes {
        unit_bytes,
        stripe_count,
        pool: pool.unwrap_or_default(),
    }))
}

/// The only server of files in this pool of the engine ceph, from 0 on; none: they are spread over all. The files of a
/// directory have that of the node that creates them.
fn server_of(pool: &str) -> Option<u64> {
    match pool.strip_prefix(LOCAL_POOL)? {
        "" => Some(0),
        number => number.strip_prefix('.')?.parse::<u64>().ok()?.checked_sub(1),
    }
}

/// What the nearest directory above a path has.
fn nearest_above<T>(
    path: &Path,
    read: impl Fn(&Path) -> forebay_host::Result<Option<T>>,
) -> forebay_host::Result<Option<T>> {
    for directory in path.ancestors().skip(1) {
        match read(directory) {
            Ok(None) => {}
            // Directories outside of the job may be closed to it.
            Err(_) => return Ok(None),
            found => return found,
        }
    }
    Ok(None)
}

fn number(path: &Path, name: &str) -> forebay_host::Result<Option<u64>> {
    Ok(text(path, name)?.and_then(|value| value.trim().parse().ok()))
}

fn text(path: &Path, name: &str) -> forebay_host::Result<Option<String>> {
    Ok(files::extended_attribute(path, name)?.and_then(|value| String::from_utf8(value).ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_pools_have_one_server() {
        for (pool, server) in [
            ("local", Some(0)),
            ("local.1", Some(0)),
            ("local.12", Some(11)),
            ("local.0", None),
            ("local.", None),
            ("locals", None),
            ("data", None),
            ("", None),
        ] {
            assert_eq!(server_of(pool), server, "{pool}");
        }
    }
}
