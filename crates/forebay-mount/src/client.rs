//! The client of libcephfs: its functions with checked results. Keeps no data and no names itself.
//! Assumes that the kernel names only nodes that it looked up and has not forgotten.

use std::ffi::{CStr, c_char, c_int, c_uint};
use std::io;
use std::ptr::null_mut;
use std::sync::Arc;

use forebay_ceph::{
    Attributes, ClientFunctions, Connection, Inode, InodeNumber, LookAgain, Mount, Permissions,
    c_text, look_again,
};
use forebay_host::users;

use crate::error::{Error, Failure};
use crate::protocol::{Caller, ROOT};

/// `CEPH_STATX_BASIC_STATS`: all attributes that the kernel knows.
const ALL_ATTRIBUTES: c_uint = 0x7ff;
/// `CEPH_STATX_SIZE`.
const SIZE_ATTRIBUTE: c_uint = 0x200;

/// A mounted file system.
pub(crate) struct Client {
    functions: ClientFunctions,
    mount: Mount,
    root: Inode,
    /// Those of root, for what is not judged by its caller: a file was opened before.
    of_root: Permissions,
    look_again: Option<LookAgain>,
}

/// A call whose waits all check what they wait for. A thread that waits for a capability may not be woken
/// (`Client::get_caps` of version 16), so its waits return after a while.
struct Checked(Option<LookAgain>);

impl Checked {
    fn begin(look_again: Option<LookAgain>) -> Self {
        if let Some(look_again) = look_again {
            // SAFETY: the function only notes it for this thread.
            unsafe { look_again(true) };
        }
        Self(look_again)
    }
}

impl Drop for Checked {
    fn drop(&mut self) {
        if let Some(look_again) = self.0 {
            // SAFETY: as above.
            unsafe { look_again(false) };
        }
    }
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

/// An open file. Dropping it closes it.
pub(crate) struct File {
    client: Arc<Client>,
    handle: forebay_ceph::OpenFile,
    /// The kernel's number of its inode.
    pub(crate) node: u64,
}

// SAFETY: as for the client.
unsafe impl Send for File {}
// SAFETY: as for the client.
unsafe impl Sync for File {}

impl Drop for File {
    fn drop(&mut self) {
        // SAFETY: the handle is open and used by nobody else.
        unsafe { (self.client.functions.close)(self.client.mount, self.handle) };
    }
}

/// An open directory. Dropping it closes it.
pub(crate) struct Directory {
    client: Arc<Client>,
    handle: forebay_ceph::OpenDirectory,
}

// SAFETY: as for the client; one thread at a time uses it, behind a lock.
unsafe impl Send for Directory {}

impl Drop for Directory {
    fn drop(&mut self) {
        // SAFETY: the handle is open and used by nobody else.
        unsafe { (self.client.functions.close_directory)(self.client.mount, self.handle) };
    }
}

/// The result of a function of libcephfs, which is a negative error number or a count.
fn counted(result: c_int) -> Result<usize, Failure> {
    usize::try_from(result).map_err(|_| Failure(result.saturating_neg()))
}

fn done(result: c_int) -> Result<(), Failure> {
    counted(result).map(drop)
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
        let used = |what: &str, result: c_int| match result {
            0 => Ok(()),
            _ => Err(Error::Configuration { what: what.to_owned(), errno: result.abs() }),
        };
        // SAFETY: all pointers are valid during the call.
        used(&connection.name, unsafe { (functions.create)(&raw mut mount, id.as_ptr()) })?;
        let config = connection.config.display().to_string();
        let text = c_text(&config)?;
        // SAFETY: the handle is alive, the text is valid during the call.
        used(&config, unsafe { (functions.read_file)(mount, text.as_ptr()) })?;
        for (option, value) in options {
            let (name, value) = (c_text(option)?, c_text(value)?);
            // SAFETY: as above.
            used(option, unsafe { (functions.set)(mount, name.as_ptr(), value.as_ptr()) })?;
        }
        let path = c_text(root)?;
        let mut inode = null_mut();
        // SAFETY: as above. The root is asked for only once it is mounted.
        let result = match unsafe { (functions.mount)(mount, path.as_ptr()) } {
            0 => unsafe { (functions.root)(mount, &raw mut inode) },
            error => error,
        };
        if result != 0 {
            let source = io::Error::from_raw_os_error(result.abs());
            let config = connection.config.clone();
            return Err(Error::Mount { root: root.to_owned(), config, source });
        }
        // SAFETY: no groups are named.
        let of_root = unsafe { (functions.new_permissions)(0, 0, 0, null_mut()) };
        Ok(Self { functions, mount, root: inode, of_root, look_again: look_again() })
    }

    /// Ends the mount. Waits for calls that other threads make.
    pub(crate) fn unmount(&self) -> Result<(), Failure> {
        // SAFETY: the handle is mounted.
        done(unsafe { (self.functions.unmount)(self.mount) })
    }

    /// Waits until all changes are on the servers.
    pub(crate) fn sync(&self) -> Result<(), Failure> {
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

    fn inode(&self, node: u64) -> Inode {
        if node == ROOT { self.root } else { node as Inode }
    }

    pub(crate) fn lookup(
        &self,
        parent: u64,
        name: &CStr,
        who: &Identity,
    ) -> Result<(u64, Attributes), Failure> {
        self.entry(|inode, attributes| {
            // SAFETY: the kernel knows the node, and the pointers are valid during the call.
            unsafe {
                (self.functions.lookup)(
                    self.mount,
                    self.inode(parent),
                    name.as_ptr(),
                    inode,
                    attributes,
                    ALL_ATTRIBUTES,
                    0,
                    who.permissions,
                )
            }
        })
    }

    /// What a function finds or makes, with one more reference, which the kernel gives back by [`Client::forget`].
    fn entry(
        &self,
        find: impl FnOnce(*mut Inode, *mut Attributes) -> c_int,
    ) -> Result<(u64, Attributes), Failure> {
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
    pub(crate) fn attributes(&self, node: u64) -> Result<Attributes, Failure> {
        self.some_attributes(node, ALL_ATTRIBUTES)
    }

    /// The size of a file now, which no other node's write that has returned exceeds.
    pub(crate) fn size(&self, node: u64) -> Result<u64, Failure> {
        self.some_attributes(node, SIZE_ATTRIBUTE).map(|attributes| attributes.size)
    }

    fn some_attributes(&self, node: u64, wanted: c_uint) -> Result<Attributes, Failure> {
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
    ) -> Result<(), Failure> {
        let mut wanted = *wanted;
        let who = who.map_or(self.of_root, |who| who.permissions);
        let inode = self.inode(node);
        // SAFETY: as above.
        done(unsafe {
            (self.functions.set_attributes)(self.mount, inode, &raw mut wanted, mask, who)
        })
    }

    pub(crate) fn make_node(
        &self,
        parent: u64,
        name: &CStr,
        (mode, device): (u32, u32),
        who: &Identity,
    ) -> Result<(u64, Attributes), Failure> {
        self.entry(|inode, attributes| {
            // SAFETY: as above.
            unsafe {
                (self.functions.make_node)(
                    self.mount,
                    self.inode(parent),
                    name.as_ptr(),
                    mode,
                    device.into(),
                    inode,
                    attributes,
                    ALL_ATTRIBUTES,
                    0,
                    who.permissions,
                )
            }
        })
    }

    pub(crate) fn make_directory(
        &self,
        parent: u64,
        name: &CStr,
        mode: u32,
        who: &Identity,
    ) -> Result<(u64, Attributes), Failure> {
        self.entry(|inode, attributes| {
            // SAFETY: as above.
            unsafe {
                (self.functions.make_directory)(
                    self.mount,
                    self.inode(parent),
                    name.as_ptr(),
                    mode,
                    inode,
                    attributes,
                    ALL_ATTRIBUTES,
                    0,
                    who.permissions,
                )
            }
        })
    }

    pub(crate) fn make_symlink(
        &self,
        parent: u64,
        name: &CStr,
        target: &CStr,
        who: &Identity,
    ) -> Result<(u64, Attributes), Failure> {
        self.entry(|inode, attributes| {
            // SAFETY: as above.
            unsafe {
                (self.functions.make_symlink)(
                    self.mount,
                    self.inode(parent),
                    name.as_ptr(),
                    target.as_ptr(),
                    inode,
                    attributes,
                    ALL_ATTRIBUTES,
                    0,
                    who.permissions,
                )
            }
        })
    }

    pub(crate) fn link(
        &self,
        node: u64,
        parent: u64,
        name: &CStr,
        who: &Identity,
    ) -> Result<(u64, Attributes), Failure> {
        let (inode, parent) = (self.inode(node), self.inode(parent));
        // SAFETY: as above.
        done(unsafe {
            (self.functions.link)(self.mount, inode, parent, name.as_ptr(), who.permissions)
        })?;
        let attributes = self.attributes(node)?;
        let number = InodeNumber { ino: attributes.ino, snapshot: InodeNumber::NO_SNAPSHOT };
        // The new name is one more reference of the kernel.
        // SAFETY: the mount is alive.
        let same = unsafe { (self.functions.inode)(self.mount, number) };
        if same == inode { Ok((node, attributes)) } else { Err(Failure(libc::ESTALE)) }
    }

    pub(crate) fn rename(
        &self,
        (parent, name): (u64, &CStr),
        (new_parent, new_name): (u64, &CStr),
        who: &Identity,
    ) -> Result<(), Failure> {
        let (parent, new_parent) = (self.inode(parent), self.inode(new_parent));
        // SAFETY: as above.
        done(unsafe {
            (self.functions.rename)(
                self.mount,
                parent,
                name.as_ptr(),
                new_parent,
                new_name.as_ptr(),
                who.permissions,
            )
        })
    }

    pub(crate) fn unlink(&self, parent: u64, name: &CStr, who: &Identity) -> Result<(), Failure> {
        let parent = self.inode(parent);
        // SAFETY: as above.
        done(unsafe {
            (self.functions.unlink)(self.mount, parent, name.as_ptr(), who.permissions)
        })
    }

    pub(crate) fn remove_directory(
        &self,
        parent: u64,
        name: &CStr,
        who: &Identity,
    ) -> Result<(), Failure> {
        let parent = self.inode(parent);
        // SAFETY: as above.
        done(unsafe {
            (self.functions.remove_directory)(self.mount, parent, name.as_ptr(), who.permissions)
        })
    }

    /// Writes the target of a symbolic link to `buffer` and returns its length.
    pub(crate) fn read_link(
        &self,
        node: u64,
        buffer: &mut [u8],
        who: &Identity,
    ) -> Result<usize, Failure> {
        let (at, length) = (buffer.as_mut_ptr().cast::<c_char>(), buffer.len());
        // SAFETY: as above; the function writes at most `length` bytes.
        counted(unsafe {
            (self.functions.read_link)(self.mount, self.inode(node), at, length, who.permissions)
        })
    }

    pub(crate) fn space(&self, node: u64) -> Result<libc::statvfs, Failure> {
        // SAFETY: zeros are valid in the structure.
        let mut found: libc::statvfs = unsafe { std::mem::zeroed() };
        // SAFETY: as above.
        done(unsafe { (self.functions.space)(self.mount, self.inode(node), &raw mut found) })?;
        Ok(found)
    }

    /// Writes the value of an extended attribute to `buffer`, unless that is empty, and returns its length.
    pub(crate) fn attribute(
        &self,
        node: u64,
        name: &CStr,
        buffer: &mut [u8],
        who: &Identity,
    ) -> Result<usize, Failure> {
        let (at, length) = (buffer.as_mut_ptr().cast(), buffer.len());
        let inode = self.inode(node);
        // SAFETY: as above; the function writes at most `length` bytes.
        counted(unsafe {
            let functions = &self.functions;
            (functions.attribute)(self.mount, inode, name.as_ptr(), at, length, who.permissions)
        })
    }

    pub(crate) fn set_attribute(
        &self,
        node: u64,
        (name, value): (&CStr, &[u8]),
        flags: c_int,
        who: &Identity,
    ) -> Result<(), Failure> {
        // SAFETY: as above.
        done(unsafe {
            (self.functions.set_attribute)(
                self.mount,
                self.inode(node),
                name.as_ptr(),
                value.as_ptr().cast(),
                value.len(),
                flags,
                who.permissions,
            )
        })
    }

    /// Writes the names of all extended attributes to `buffer`, unless that is empty, and returns their length.
    pub(crate) fn attribute_names(
        &self,
        node: u64,
        buffer: &mut [u8],
        who: &Identity,
    ) -> Result<usize, Failure> {
        let (at, length) = (buffer.as_mut_ptr().cast(), buffer.len());
        let (mut found, inode) = (0, self.inode(node));
        // SAFETY: as above; the function writes at most `length` bytes.
        done(unsafe {
            let (functions, found) = (&self.functions, &raw mut found);
            (functions.attribute_names)(self.mount, inode, at, length, found, who.permissions)
        })?;
        Ok(found)
    }

    pub(crate) fn remove_attribute(
        &self,
        node: u64,
        name: &CStr,
        who: &Identity,
    ) -> Result<(), Failure> {
        let inode = self.inode(node);
        // SAFETY: as above.
        done(unsafe {
            (self.functions.remove_attribute)(self.mount, inode, name.as_ptr(), who.permissions)
        })
    }

    pub(crate) fn sync_node(&self, node: u64, only_data: bool) -> Result<(), Failure> {
        let inode = self.inode(node);
        // SAFETY: as above.
        done(unsafe { (self.functions.sync_inode)(self.mount, inode, only_data.into()) })
    }

    pub(crate) fn open(
        self: &Arc<Self>,
        node: u64,
        flags: c_int,
        who: &Identity,
    ) -> Result<File, Failure> {
        let (mut handle, inode) = (null_mut(), self.inode(node));
        // SAFETY: as above.
        done(unsafe {
            (self.functions.open)(self.mount, inode, flags, &raw mut handle, who.permissions)
        })?;
        Ok(File { client: Arc::clone(self), handle, node })
    }

    pub(crate) fn create(
        self: &Arc<Self>,
        parent: u64,
        name: &CStr,
        (mode, flags): (u32, c_int),
        who: &Identity,
    ) -> Result<(File, Attributes), Failure> {
        let mut handle = null_mut();
        let (node, attributes) = self.entry(|inode, attributes| {
            // SAFETY: as above.
            unsafe {
                (self.functions.create_file)(
                    self.mount,
                    self.inode(parent),
                    name.as_ptr(),
                    mode,
                    flags,
                    inode,
                    &raw mut handle,
                    attributes,
                    ALL_ATTRIBUTES,
                    0,
                    who.permissions,
                )
            }
        })?;
        Ok((File { client: Arc::clone(self), handle, node }, attributes))
    }

    pub(crate) fn open_directory(
        self: &Arc<Self>,
        node: u64,
        who: &Identity,
    ) -> Result<Directory, Failure> {
        let (mut handle, inode) = (null_mut(), self.inode(node));
        // SAFETY: as above.
        done(unsafe {
            let handle = &raw mut handle;
            (self.functions.open_directory)(self.mount, inode, handle, who.permissions)
        })?;
        Ok(Directory { client: Arc::clone(self), handle })
    }
}

impl File {
    /// Reads into `buffer` and returns the count, which is less only at the end of the file.
    pub(crate) fn read(&self, offset: i64, buffer: &mut [u8]) -> Result<usize, Failure> {
        let (at, length) = (buffer.as_mut_ptr().cast(), buffer.len() as u64);
        let client = &self.client;
        let _checked = Checked::begin(client.look_again);
        // SAFETY: the file is open, and the function writes at most `length` bytes.
        counted(unsafe { (client.functions.read)(client.mount, self.handle, offset, length, at) })
    }

    /// Writes `data` and returns the count.
    pub(crate) fn write(&self, offset: i64, data: &[u8]) -> Result<usize, Failure> {
        let (at, length) = (data.as_ptr().cast(), data.len() as u64);
        let client = &self.client;
        let _checked = Checked::begin(client.look_again);
        // SAFETY: the file is open, and the function reads `length` bytes.
        counted(unsafe { (client.functions.write)(client.mount, self.handle, offset, length, at) })
    }

    pub(crate) fn sync(&self, only_data: bool) -> Result<(), Failure> {
        let client = &self.client;
        // SAFETY: the file is open.
        done(unsafe {
            (client.functions.sync_file)(client.mount, self.handle, only_data.into())
        })
    }

    /// The next data or the next hole from `offset` on.
    pub(crate) fn seek(&self, offset: i64, whence: c_int) -> Result<u64, Failure> {
        let client = &self.client;
        // SAFETY: the file is open.
        let found = unsafe { (client.functions.seek)(client.mount, self.handle, offset, whence) };
        let failed = |_| Failure(i32::try_from(found.saturating_neg()).unwrap_or(libc::EIO));
        u64::try_from(found).map_err(failed)
    }

    pub(crate) fn allocate(&self, mode: c_int, offset: i64, length: i64) -> Result<(), Failure> {
        let client = &self.client;
        let _checked = Checked::begin(client.look_again);
        // SAFETY: the file is open.
        done(unsafe {
            (client.functions.allocate)(client.mount, self.handle, mode, offset, length)
        })
    }

    /// Sets or removes a lock. With `waits` it returns when it has the lock.
    pub(crate) fn set_lock(
        &self,
        lock: &libc::flock,
        owner: u64,
        waits: bool,
    ) -> Result<(), Failure> {
        let (mut lock, client) = (*lock, &self.client);
        // SAFETY: the file is open, and the structure is ours.
        done(unsafe {
            let lock = &raw mut lock;
            (client.functions.set_lock)(client.mount, self.handle, lock, owner, waits.into())
        })
    }

    /// The first lock that is in the way of `lock`; its type is `F_UNLCK` if there is none.
    pub(crate) fn lock_holder(
        &self,
        lock: &libc::flock,
        owner: u64,
    ) -> Result<libc::flock, Failure> {
        let (mut lock, client) = (*lock, &self.client);
        // SAFETY: the file is open, and the structure is ours.
        done(unsafe {
            (client.functions.lock_holder)(client.mount, self.handle, &raw mut lock, owner)
        })?;
        Ok(lock)
    }
}

impl Directory {
    /// The next name; none after the last.
    pub(crate) fn next(&mut self) -> Result<Option<crate::protocol::Found>, Failure> {
        // SAFETY: zeros are valid in the structure.
        let mut found: libc::dirent = unsafe { std::mem::zeroed() };
        let client = &self.client;
        // SAFETY: the directory is open, and the structure is ours.
        let result =
            unsafe { (client.functions.next_name)(client.mount, self.handle, &raw mut found) };
        if counted(result)? == 0 {
            return Ok(None);
        }
        // SAFETY: the library ends the name with a zero.
        let name = unsafe { CStr::from_ptr(found.d_name.as_ptr()) }.to_bytes().to_vec();
        let next = found.d_off.cast_unsigned();
        Ok(Some(crate::protocol::Found { name, ino: found.d_ino, kind: found.d_type, next }))
    }

    /// Continues at a place that [`Directory::next`] returned, or from the start.
    pub(crate) fn seek(&mut self, place: u64) {
        let client = &self.client;
        // SAFETY: the directory is open.
        unsafe {
            (client.functions.seek_directory)(client.mount, self.handle, place.cast_signed());
        }
    }
}
