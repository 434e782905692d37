//! The client of libcephfs: its functions with checked results. Keeps no data and no names itself.
//! Assumes that the kernel names only nodes that it looked up and has not forgotten.

mod extended_attributes;
mod names;

pub(crate) use extended_attributes::LAYOUT;

use std::ffi::{CStr, c_int, c_uint};
use std::io;
use std::ptr::null_mut;
use std::sync::Arc;

use forebay_ceph::{
    Attributes, ClientFunctions, Connection, Inode, Mount, Permissions, PreloadFunctions, c_text,
};
use forebay_host::users;
use parking_lot::Mutex;

use crate::error::{Errno, Error};
use crate::moves::node_of;
use crate::opened::{CephFile, Directory};
use crate::protocol::{Caller, ROOT};

/// `CEPH_STATX_BASIC_STATS`: all attributes that the kernel knows.
pub(crate) const ALL_ATTRIBUTES: c_uint = 0x7ff;
/// `CEPH_STATX_MODE`, `_UID`, `_GID` and `_INO`: what decides who may use a node.
pub(crate) const ACCESS_ATTRIBUTES: c_uint = 0x1 | 0x4 | 0x8 | 0x100;
/// `CEPH_STATX_INO`.
pub(crate) const INO_ATTRIBUTE: c_uint = 0x100;
/// `CEPH_STATX_MODE` and `_NLINK`.
pub(crate) const LINKS_ATTRIBUTES: c_uint = 0x1 | 0x2;
/// `CEPH_STATX_SIZE`.
const SIZE_ATTRIBUTE: c_uint = 0x200;

/// Ceph's own least number of bytes to read ahead.
const READ_AHEAD_BYTES: &CStr = c"131072";

/// A mounted file system.
pub(crate) struct Client {
    pub(crate) functions: ClientFunctions,
    pub(crate) mount: Mount,
    root: Inode,
    /// Those of root, for what is not judged by its caller: a file was opened before.
    of_root: Permissions,
    /// Without it nothing is cached.
    pub(crate) preload: Option<PreloadFunctions>,
    /// One opening without reading ahead at a time.
    read_ahead_setting: Mutex<()>,
}

// SAFETY: libcephfs locks what its functions use; any thread may call them at any time.
unsafe impl Send for Client {}
// SAFETY: as above.
unsafe impl Sync for Client {}

/// Who asks, for libcephfs.
pub(crate) struct Identity<'a> {
    client: &'a Client,
    permissions: Permissions,
    /// The permissions point to them.
    _groups: Vec<u32>,
}

impl Drop for Identity<'_> {
    fn drop(&mut self) {
        // SAFETY: it was created once, and no call uses it any more.
        unsafe { (self.client.functions.drop_permissions)(self.permissions) };
    }
}

/// The result of a function of libcephfs, which is a negative error number or a count.
pub(crate) fn counted(result: c_int) -> Result<usize, Errno> {
    usize::try_from(result).map_err(|_| Errno(result.saturating_neg()))
}

pub(crate) fn done(result: c_int) -> Result<(), Errno> {
    counted(result).map(drop)
}

/// The flags of open for libcephfs. It gets no O_APPEND, since it would choose the place without a lock, and no O_DIRECT: it
/// would leave in its cache what it writes over on the servers. The kernel caches nothing anyway.
fn of_libcephfs(flags: c_int) -> c_int {
    flags & !(libc::O_APPEND | libc::O_DIRECT)
}

/// The addresses without their type. Ceph writes several as `[v2:IP:PORT/NONCE,v1:IP:PORT/NONCE]`.
fn addresses_in(text: &str) -> Vec<String> {
    let bare = |address: &str| {
        let types = ["v1:", "v2:", "any:"];
        types.iter().find_map(|kind| address.strip_prefix(kind)).unwrap_or(address).to_owned()
    };
    let list = text.strip_prefix("[v").and_then(|_| text.strip_prefix('[')?.strip_suffix(']'));
    list.unwrap_or(text).split(',').map(bare).collect()
}

fn check_configuration(what: &str, result: c_int) -> Result<(), Error> {
    match result {
        0 => Ok(()),
        _ => Err(Error::Configuration { what: what.to_owned(), errno: result.abs() }),
    }
}

impl Client {
    /// Mounts `root` of the file system in this process.
    pub(crate) fn mount(
        connection: &Connection,
        options: &[(&str, &str)],
        root: &str,
    ) -> Result<Self, Error> {
        let functions = ClientFunctions::load(connection.library_directory.as_deref())?;
        let id = c_text(connection.id())?;
        let mut mount = null_mut();
        // SAFETY: all pointers are valid during the call.
        check_configuration(&connection.name, unsafe {
            (functions.create)(&raw mut mount, id.as_ptr())
        })?;
        let inode = Self::connect(&functions, mount, connection, options, root);
        let inode = inode.inspect_err(|_| {
            // SAFETY: the handle is alive, not mounted, and not used any more.
            unsafe { (functions.release)(mount) };
        })?;
        // SAFETY: no groups are named.
        let of_root = unsafe { (functions.new_permissions)(0, 0, 0, null_mut()) };
        Ok(Self {
            functions,
            mount,
            root: inode,
            of_root,
            preload: PreloadFunctions::find(),
            read_ahead_setting: Mutex::new(()),
        })
    }

    /// Mounts a handle. Returns the inode of `root`.
    fn connect(
        functions: &ClientFunctions,
        mount: Mount,
        connection: &Connection,
        options: &[(&str, &str)],
        root: &str,
    ) -> Result<Inode, Error> {
        let config = connection.config.display().to_string();
        let text = c_text(&config)?;
        // SAFETY: the handle is alive, the text is valid during the call.
        check_configuration(&config, unsafe { (functions.read_file)(mount, text.as_ptr()) })?;
        for (option, value) in options {
            let (name, value) = (c_text(option)?, c_text(value)?);
            // SAFETY: as above.
            check_configuration(option, unsafe {
                (functions.set)(mount, name.as_ptr(), value.as_ptr())
            })?;
        }
        let path = c_text(root)?;
        let mut inode = null_mut();
        // SAFETY: as above.
        let result = match unsafe { (functions.mount)(mount, path.as_ptr()) } {
            // SAFETY: it is mounted.
            0 => unsafe { (functions.root)(mount, &raw mut inode) },
            error => error,
        };
        if result != 0 {
            let source = io::Error::from_raw_os_error(result.abs());
            let config = connection.config.clone();
            return Err(Error::Mount { root: root.to_owned(), config, source });
        }
        Ok(inode)
    }

    /// Whether it caches what it reads and buffers writes.
    pub(crate) fn has_cache(&self) -> bool {
        self.preload.is_some()
    }

    /// A number that no other client has.
    pub(crate) fn instance(&self) -> u64 {
        // SAFETY: the handle is mounted.
        unsafe { (self.functions.instance)(self.mount) }
    }

    /// The addresses that servers know this client by, as `IP:PORT/NONCE`.
    pub(crate) fn addresses(&self) -> Result<Vec<String>, Errno> {
        let mut text = null_mut();
        // SAFETY: the handle is mounted, and the pointer is valid during the call.
        done(unsafe { (self.functions.addresses)(self.mount, &raw mut text) })?;
        // SAFETY: the text was just made by malloc, and ends with a zero.
        let all = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
        // SAFETY: nobody else has it.
        unsafe { libc::free(text.cast()) };
        Ok(addresses_in(&all))
    }

    /// Opens a file that is never read ahead. Others that are opened meanwhile are not either.
    pub(crate) fn without_reading_ahead<T>(
        &self,
        open: impl FnOnce() -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let _one = self.read_ahead_setting.lock();
        self.set_reading_ahead(c"0")?;
        let opened = open();
        if let Err(error) = self.set_reading_ahead(READ_AHEAD_BYTES) {
            eprintln!("files are not read ahead any more: error {}", error.0);
        }
        opened
    }

    fn set_reading_ahead(&self, bytes: &CStr) -> Result<(), Errno> {
        let option = c"client_readahead_min";
        // SAFETY: the handle is alive, the texts are valid during the call.
        done(unsafe { (self.functions.set)(self.mount, option.as_ptr(), bytes.as_ptr()) })
    }

    /// Ends the mount. Waits for calls that other threads make.
    pub(crate) fn unmount(&self) -> Result<(), Errno> {
        // SAFETY: the handle is mounted.
        done(unsafe { (self.functions.unmount)(self.mount) })
    }

    /// Waits until all changes are on the servers.
    pub(crate) fn sync(&self) -> Result<(), Errno> {
        // SAFETY: the handle is mounted.
        done(unsafe { (self.functions.sync)(self.mount) })
    }

    /// The process that asks, with its groups.
    pub(crate) fn identity(&self, caller: Caller) -> Identity<'_> {
        // Root may do everything, whatever its groups.
        let mut groups = match caller.uid {
            0 => Vec::new(),
            _ => users::groups_of_process(caller.pid).unwrap_or_default(),
        };
        let count = c_int::try_from(groups.len()).unwrap_or_default();
        // SAFETY: so many groups live as long as the permissions.
        let permissions = unsafe {
            (self.functions.new_permissions)(caller.uid, caller.gid, count, groups.as_mut_ptr())
        };
        Identity { client: self, permissions, _groups: groups }
    }

    /// The inode of a node, whichever of its numbers the kernel has.
    fn inode(&self, node: u64) -> Inode {
        if node == ROOT { self.root } else { node_of(node) as Inode }
    }

    pub(crate) fn lookup(
        &self,
        parent: u64,
        name: &CStr,
        wanted: c_uint,
        who: &Identity,
    ) -> Result<(u64, Attributes), Errno> {
        self.entry(|inode, attributes| {
            // SAFETY: the kernel knows the node, and the pointers are valid during the call.
            unsafe {
                (self.functions.lookup)(
                    self.mount,
                    self.inode(parent),
                    name.as_ptr(),
                    inode,
                    attributes,
                    wanted,
                    0,
                    who.permissions,
                )
            }
        })
    }

    /// The node with this inode number, with one more reference.
    pub(crate) fn lookup_inode(&self, ino: u64) -> Result<u64, Errno> {
        let mut inode = null_mut();
        // SAFETY: the mount is alive, and the pointer is valid during the call.
        done(unsafe { (self.functions.lookup_inode)(self.mount, ino, &raw mut inode) })?;
        Ok(inode as u64)
    }

    /// What a function finds or makes, with one more reference, which the kernel gives back by [`Client::forget`].
    fn entry(
        &self,
        find: impl FnOnce(*mut Inode, *mut Attributes) -> c_int,
    ) -> Result<(u64, Attributes), Errno> {
        let (mut inode, mut attributes) = (null_mut(), Attributes::default());
        done(find(&raw mut inode, &raw mut attributes))?;
        Ok((inode as u64, attributes))
    }

    /// Gives back so many references of a node.
    pub(crate) fn forget(&self, node: u64, count: u64) {
        if node == ROOT {
            return;
        }
        let mut left = count;
        while left > 0 {
            let part = c_int::try_from(left).unwrap_or(c_int::MAX);
            // SAFETY: the kernel knows the node until this call.
            unsafe { (self.functions.forget)(self.mount, self.inode(node), part) };
            left -= u64::from(part.cast_unsigned());
        }
    }

    /// All attributes of a node.
    pub(crate) fn attributes(&self, node: u64) -> Result<Attributes, Errno> {
        self.some_attributes(node, ALL_ATTRIBUTES)
    }

    /// The size of a file now, which no other node's write that has returned exceeds.
    pub(crate) fn size(&self, node: u64) -> Result<u64, Errno> {
        self.some_attributes(node, SIZE_ATTRIBUTE).map(|attributes| attributes.size)
    }

    pub(crate) fn ino(&self, node: u64) -> Result<u64, Errno> {
        self.some_attributes(node, INO_ATTRIBUTE).map(|attributes| attributes.ino)
    }

    pub(crate) fn some_attributes(&self, node: u64, wanted: c_uint) -> Result<Attributes, Errno> {
        let mut found = Attributes::default();
        let inode = self.inode(node);
        // SAFETY: the kernel knows the node, and the pointers are valid during the call.
        done(unsafe {
            let found = &raw mut found;
            (self.functions.attributes)(self.mount, inode, found, wanted, 0, self.of_root)
        })?;
        Ok(found)
    }

    /// Sets the attributes in `mask`. Without an identity it is allowed: the file was opened for it.
    pub(crate) fn set_attributes(
        &self,
        node: u64,
        wanted: &Attributes,
        mask: c_int,
        who: Option<&Identity>,
    ) -> Result<(), Errno> {
        let mut wanted = *wanted;
        let who = who.map_or(self.of_root, |who| who.permissions);
        let inode = self.inode(node);
        // SAFETY: as above.
        done(unsafe {
            (self.functions.set_attributes)(self.mount, inode, &raw mut wanted, mask, who)
        })
    }

    pub(crate) fn space(&self, node: u64) -> Result<libc::statvfs, Errno> {
        // SAFETY: zeros are valid in the structure.
        let mut found: libc::statvfs = unsafe { std::mem::zeroed() };
        // SAFETY: as above.
        done(unsafe { (self.functions.space)(self.mount, self.inode(node), &raw mut found) })?;
        Ok(found)
    }

    /// Waits for the writes of this node to a file that is to be cut. A storage daemon that gets one later makes its
    /// object longer than the file, with zeros, and libcephfs reads them beyond the end (Ceph 16.2.15).
    pub(crate) fn complete_writes(&self, node: u64) {
        self.sync_node(node, true).ok(); // those that wrote get an error
    }

    pub(crate) fn sync_node(&self, node: u64, only_data: bool) -> Result<(), Errno> {
        let inode = self.inode(node);
        // SAFETY: as above.
        done(unsafe { (self.functions.sync_inode)(self.mount, inode, only_data.into()) })
    }

    pub(crate) fn open(
        self: &Arc<Self>,
        node: u64,
        flags: c_int,
        who: &Identity,
    ) -> Result<CephFile, Errno> {
        self.open_with(node, of_libcephfs(flags), who.permissions)
    }

    /// Opens a file that a process has open, for the locks of this client.
    pub(crate) fn open_for_locks(self: &Arc<Self>, node: u64) -> Result<CephFile, Errno> {
        self.open_with(node, libc::O_RDONLY, self.of_root)
    }

    /// Opens a file as its only writer would: the server takes from other nodes what they have buffered of it.
    pub(crate) fn open_for_change(self: &Arc<Self>, node: u64) -> Result<CephFile, Errno> {
        self.open_with(node, libc::O_RDWR, self.of_root)
    }

    fn open_with(
        self: &Arc<Self>,
        node: u64,
        flags: c_int,
        permissions: Permissions,
    ) -> Result<CephFile, Errno> {
        let (mut handle, inode) = (null_mut(), self.inode(node));
        // SAFETY: as above.
        done(unsafe {
            (self.functions.open)(self.mount, inode, flags, &raw mut handle, permissions)
        })?;
        Ok(CephFile::new(self, handle))
    }

    pub(crate) fn create(
        self: &Arc<Self>,
        parent: u64,
        name: &CStr,
        (mode, flags): (u32, c_int),
        who: &Identity,
    ) -> Result<(CephFile, u64, Attributes), Errno> {
        let mut handle = null_mut();
        let (node, attributes) = self.entry(|inode, attributes| {
            // SAFETY: as above.
            unsafe {
                (self.functions.create_file)(
                    self.mount,
                    self.inode(parent),
                    name.as_ptr(),
                    mode,
                    of_libcephfs(flags),
                    inode,
                    &raw mut handle,
                    attributes,
                    ALL_ATTRIBUTES,
                    0,
                    who.permissions,
                )
            }
        })?;
        Ok((CephFile::new(self, handle), node, attributes))
    }

    pub(crate) fn open_directory(
        self: &Arc<Self>,
        node: u64,
        who: &Identity,
    ) -> Result<Directory, Errno> {
        let (mut handle, inode) = (null_mut(), self.inode(node));
        // SAFETY: as above.
        done(unsafe {
            let handle = &raw mut handle;
            (self.functions.open_directory)(self.mount, inode, handle, who.permissions)
        })?;
        Ok(Directory::new(self, handle))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_no_type() {
        let both = "[v2:10.0.0.1:0/77,v1:10.0.0.1:0/78]";
        assert_eq!(addresses_in(both), ["10.0.0.1:0/77", "10.0.0.1:0/78"]);
        assert_eq!(addresses_in("v1:[::1]:0/5"), ["[::1]:0/5"]);
        assert_eq!(addresses_in("10.0.0.1:0/77"), ["10.0.0.1:0/77"]);
    }
}
