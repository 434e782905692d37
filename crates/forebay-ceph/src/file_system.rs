//! The file system of a cluster, through libcephfs and without a mount. Never reads or writes the data of a file.
//! Assumes a key with all rights: modes and owners do not limit this client.
//! Only mount and unmount have a limit: another call may hang, and the caller gives it up.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;

use crate::connection::{Connection, c_text};
use crate::error::Error;
use crate::library::Library;
use crate::monitors::check_configuration;

pub(crate) const LIBRARY: &str = "libcephfs.so.2";
pub(crate) const PACKAGE: &str = "libcephfs2";
/// The longest value of an attribute that is read.
const ATTRIBUTE_BYTES_MAX: usize = 4096;

/// `struct ceph_mount_info *`.
type Handle = *mut c_void;
type OnText = unsafe extern "C" fn(Handle, *const c_char) -> c_int;
type OnTexts = unsafe extern "C" fn(Handle, *const c_char, *const c_char) -> c_int;
type SetAttribute = unsafe extern "C" fn(
    Handle,
    *const c_char,
    *const c_char,
    *const c_void,
    usize,
    c_int,
) -> c_int;
type GetAttribute =
    unsafe extern "C" fn(Handle, *const c_char, *const c_char, *mut c_void, usize) -> c_int;

/// The functions of cephfs/libcephfs.h that are used.
#[derive(Clone, Copy)]
struct Functions {
    create: unsafe extern "C" fn(*mut Handle, *const c_char) -> c_int,
    read_file: OnText,
    set: OnTexts,
    mount: OnText,
    unmount: unsafe extern "C" fn(Handle) -> c_int,
    release: unsafe extern "C" fn(Handle) -> c_int,
    make_directories: unsafe extern "C" fn(Handle, *const c_char, u32) -> c_int,
    set_mode: unsafe extern "C" fn(Handle, *const c_char, u32) -> c_int,
    set_owner: unsafe extern "C" fn(Handle, *const c_char, c_int, c_int) -> c_int,
    set_attribute: SetAttribute,
    attribute: GetAttribute,
}

impl Functions {
    fn load(connection: &Connection) -> Result<Self, Error> {
        let library = Library::load(connection.library_directory.as_deref(), LIBRARY, PACKAGE)?;
        // SAFETY: the types above are those of cephfs/libcephfs.h of version 16; mode_t is u32 on Linux.
        let functions = unsafe {
            Self {
                create: library.function("ceph_create")?,
                read_file: library.function("ceph_conf_read_file")?,
                set: library.function("ceph_conf_set")?,
                mount: library.function("ceph_mount")?,
                unmount: library.function("ceph_unmount")?,
                release: library.function("ceph_release")?,
                make_directories: library.function("ceph_mkdirs")?,
                set_mode: library.function("ceph_chmod")?,
                set_owner: library.function("ceph_chown")?,
                set_attribute: library.function("ceph_setxattr")?,
                attribute: library.function("ceph_getxattr")?,
            }
        };
        library.keep();
        Ok(functions)
    }
}

/// The file system, seen from its root.
pub struct FileSystem {
    functions: Functions,
    handle: Handle,
    is_mounted: bool,
}

// SAFETY: a ceph_mount_info may be used by any thread (libcephfs.h); this one is owned by one value.
unsafe impl Send for FileSystem {}

impl FileSystem {
    /// Mounts the root of the file system in this process alone.
    ///
    /// # Errors
    /// If libcephfs cannot be loaded, or the cluster does not answer within the limit of the connection.
    pub fn mount(connection: &Connection) -> Result<Self, Error> {
        let functions = Functions::load(connection)?;
        let id = c_text(connection.id())?;
        let mut handle = null_mut();
        // SAFETY: all pointers are valid during the call.
        let result = unsafe { (functions.create)(&raw mut handle, id.as_ptr()) };
        check_configuration(result, &connection.name)?;
        // From here on, `Drop` frees the handle.
        let mut system = Self { functions, handle, is_mounted: false };
        let config = connection.config.display().to_string();
        check_configuration(system.on_path(functions.read_file, &config)?, &config)?;
        // The key decides what this client may do, not the user of this process: it creates a directory
        // for another owner.
        let permissions = ("client_permissions", "false".to_owned());
        for (option, value) in connection.options().into_iter().chain([permissions]) {
            let (option_text, value) = (c_text(option)?, c_text(&value)?);
            // SAFETY: the handle is alive, the texts are valid during the call.
            let result =
                unsafe { (functions.set)(system.handle, option_text.as_ptr(), value.as_ptr()) };
            check_configuration(result, option)?;
        }
        match system.on_path(functions.mount, "/")? {
            0 => {
                system.is_mounted = true;
                Ok(system)
            }
            error => Err(connection.refused("the file system", error.abs())),
        }
    }

    fn on_path(&self, function: OnText, path: &str) -> Result<c_int, Error> {
        let text = c_text(path)?;
        // SAFETY: the handle is alive, the text is valid during the call.
        Ok(unsafe { function(self.handle, text.as_ptr()) })
    }

    /// Creates a directory and its missing parents, and gives the directory mode and owner. An existing
    /// directory is no error.
    ///
    /// # Errors
    /// If the file system refuses it.
    pub fn make_directories(&self, path: &str, mode: u32, uid: u32, gid: u32) -> Result<(), Error> {
        let text = c_text(path)?;
        let functions = &self.functions;
        // SAFETY: the handle is alive, the text is valid during the call.
        let result = unsafe { (functions.make_directories)(self.handle, text.as_ptr(), mode) };
        if -result != nix::errno::Errno::EEXIST as i32 {
            check("create directory", path, result)?;
        }
        // SAFETY: as above. The C interface has ids as int; the bits are those of uid_t.
        let result = unsafe {
            (functions.set_owner)(self.handle, text.as_ptr(), uid.cast_signed(), gid.cast_signed())
        };
        check("set the owner of", path, result)?;
        // The mode of a new directory depends on the umask.
        // SAFETY: as above.
        check("set the mode of", path, unsafe {
            (functions.set_mode)(self.handle, text.as_ptr(), mode)
        })
    }

    /// Sets an attribute: `ceph.quota.max_bytes`, `ceph.dir.layout.stripe_count`, ...
    ///
    /// # Errors
    /// If the file system refuses it.
    pub fn set_attribute(&self, path: &str, name: &str, value: &str) -> Result<(), Error> {
        let (text, name) = (c_text(path)?, c_text(name)?);
        // SAFETY: the handle is alive, texts and value are valid during the call.
        let result = unsafe {
            (self.functions.set_attribute)(
                self.handle,
                text.as_ptr(),
                name.as_ptr(),
                value.as_ptr().cast(),
                value.len(),
                0,
            )
        };
        check("set an attribute of", path, result)
    }

    /// The value of an attribute: `ceph.dir.rbytes`, `ceph.dir.rfiles`, ...
    ///
    /// # Errors
    /// If there is none, or it is longer than 4 KiB.
    pub fn attribute(&self, path: &str, name: &str) -> Result<String, Error> {
        let (text, name) = (c_text(path)?, c_text(name)?);
        let mut value = vec![0_u8; ATTRIBUTE_BYTES_MAX];
        // SAFETY: the handle is alive, texts and buffer are valid during the call.
        let length = unsafe {
            (self.functions.attribute)(
                self.handle,
                text.as_ptr(),
                name.as_ptr(),
                value.as_mut_ptr().cast(),
                value.len(),
            )
        };
        check("read an attribute of", path, length.min(0))?;
        value.truncate(usize::try_from(length).unwrap_or_default());
        Ok(String::from_utf8_lossy(&value).into_owned())
    }

    /// Ends the use of the file system. Changes are then on the metadata server.
    ///
    /// # Errors
    /// If the metadata server does not answer.
    pub fn unmount(mut self) -> Result<(), Error> {
        self.is_mounted = false;
        // SAFETY: the handle is alive and mounted.
        check("unmount", "/", unsafe { (self.functions.unmount)(self.handle) })
    }
}

impl Drop for FileSystem {
    fn drop(&mut self) {
        // SAFETY: the handle was created once; it is unmounted, and not used again.
        unsafe {
            if self.is_mounted {
                (self.functions.unmount)(self.handle);
            }
            (self.functions.release)(self.handle);
        }
    }
}

fn check(operation: &'static str, path: &str, result: c_int) -> Result<(), Error> {
    if result == 0 {
        return Ok(());
    }
    Err(Error::FileSystem { operation, path: path.to_owned(), errno: result.abs() })
}
