//! The functions of libcephfs that a FUSE client needs, with the types of cephfs/libcephfs.h.
//! Assumes that the library can be missing or older: one that lacks a function is not used at all.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::path::Path;

use forebay_host::files;

use crate::error::Error;
use crate::file_system::{LIBRARY, PACKAGE};
use crate::library::Library;

/// The first release whose functions have these types.
const MAJOR_MIN: u32 = 16;

/// `struct ceph_mount_info *`.
pub type Mount = *mut c_void;
/// `struct Inode *`.
pub type Inode = *mut c_void;
/// `struct Fh *`: an open file.
pub type OpenFile = *mut c_void;
/// `struct ceph_dir_result *`: an open directory.
pub type OpenDirectory = *mut c_void;
/// `UserPerm *`: who asks.
pub type Permissions = *mut c_void;
type Text = *const c_char;

/// `struct ceph_statx`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Attributes {
    /// The members that are set.
    pub mask: u32,
    /// The best size of a transfer.
    pub blksize: u32,
    /// The number of links.
    pub nlink: u32,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// Type and permission bits.
    pub mode: u16,
    /// The number of the inode.
    pub ino: u64,
    /// The size in bytes.
    pub size: u64,
    /// The size in blocks of 512 bytes.
    pub blocks: u64,
    /// The file system.
    pub dev: u64,
    /// The device of a device file.
    pub rdev: u64,
    /// The last access.
    pub atime: libc::timespec,
    /// The last change of the inode.
    pub ctime: libc::timespec,
    /// The last change of the content.
    pub mtime: libc::timespec,
    /// The creation.
    pub btime: libc::timespec,
    /// Counts changes.
    pub version: u64,
}

impl Attributes {
    /// Whether the node is a directory.
    pub fn is_directory(&self) -> bool {
        u32::from(self.mode) & libc::S_IFMT == libc::S_IFDIR
    }
}

impl Default for Attributes {
    fn default() -> Self {
        // SAFETY: all members are numbers, for which zeros are valid.
        unsafe { std::mem::zeroed() }
    }
}

/// `vinodeno_t`: an inode, and the snapshot that it is seen in.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct InodeNumber {
    /// The number of the inode.
    pub ino: u64,
    /// The snapshot; [`InodeNumber::NO_SNAPSHOT`] is the current state.
    pub snapshot: u64,
}

impl InodeNumber {
    /// `CEPH_NOSNAP`.
    pub const NO_SNAPSHOT: u64 = u64::MAX - 1;
}

/// The functions of Forebay's preload library.
#[derive(Debug, Clone, Copy)]
pub struct PreloadFunctions {
    /// `forebay_ceph_look_again`: whether the waits of this thread return after a while.
    pub look_again: unsafe extern "C" fn(bool),
    /// `forebay_ceph_waits`: how often this thread has waited.
    pub waits: unsafe extern "C" fn() -> u64,
}

impl PreloadFunctions {
    /// None: the library is not loaded.
    #[must_use]
    pub fn find() -> Option<Self> {
        let look_again = loaded(c"forebay_ceph_look_again")?;
        let waits = loaded(c"forebay_ceph_waits")?;
        // SAFETY: the functions have these types.
        unsafe {
            Some(Self {
                look_again: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(bool)>(
                    look_again,
                ),
                waits: std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> u64>(waits),
            })
        }
    }
}

fn loaded(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the name ends with a zero.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

macro_rules! functions {
    ($($member:ident = $name:literal: ($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// The functions. Each member is the C function that its documentation names.
        #[derive(Debug, Clone, Copy)]
        pub struct ClientFunctions {
            $(#[doc = $name] pub $member: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl ClientFunctions {
            /// The names of all functions.
            const NAMES: &[&str] = &[$($name),*];

            /// Loads the library from `directory`, or from where the loader looks.
            ///
            /// # Errors
            /// If there is none, it lacks a function, or it is too old.
            pub fn load(directory: Option<&Path>) -> Result<Self, Error> {
                let library = Library::load(directory, LIBRARY, PACKAGE)?;
                // SAFETY: the types are those of cephfs/libcephfs.h of version 16.
                let functions = unsafe { Self { $($member: library.function($name)?,)* } };
                library.keep();
                functions.check_version().map(|()| functions)
            }
        }
    };
}

functions! {
    version = "ceph_version": (*mut c_int, *mut c_int, *mut c_int) -> Text;
    create = "ceph_create": (*mut Mount, Text) -> c_int;
    read_file = "ceph_conf_read_file": (Mount, Text) -> c_int;
    set = "ceph_conf_set": (Mount, Text, Text) -> c_int;
    mount = "ceph_mount": (Mount, Text) -> c_int;
    unmount = "ceph_unmount": (Mount) -> c_int;
    release = "ceph_release": (Mount) -> c_int;
    sync = "ceph_sync_fs": (Mount) -> c_int;
    instance = "ceph_get_instance_id": (Mount) -> u64;
    addresses = "ceph_getaddrs": (Mount, *mut *mut c_char) -> c_int;
    new_permissions = "ceph_userperm_new": (libc::uid_t, libc::gid_t, c_int, *mut libc::gid_t) -> Permissions;
    drop_permissions = "ceph_userperm_destroy": (Permissions);
    root = "ceph_ll_lookup_root": (Mount, *mut Inode) -> c_int;
    inode = "ceph_ll_get_inode": (Mount, InodeNumber) -> Inode;
    lookup_inode = "ceph_ll_lookup_inode": (Mount, u64, *mut Inode) -> c_int;
    lookup = "ceph_ll_lookup": (Mount, Inode, Text, *mut Inode, *mut Attributes, c_uint, c_uint, Permissions) -> c_int;
    forget = "ceph_ll_forget": (Mount, Inode, c_int) -> c_int;
    attributes = "ceph_ll_getattr": (Mount, Inode, *mut Attributes, c_uint, c_uint, Permissions) -> c_int;
    set_attributes = "ceph_ll_setattr": (Mount, Inode, *mut Attributes, c_int, Permissions) -> c_int;
    open = "ceph_ll_open": (Mount, Inode, c_int, *mut OpenFile, Permissions) -> c_int;
    close = "ceph_ll_close": (Mount, OpenFile) -> c_int;
    seek = "ceph_ll_lseek": (Mount, OpenFile, libc::off_t, c_int) -> libc::off_t;
    read = "ceph_ll_read": (Mount, OpenFile, i64, u64, *mut c_char) -> c_int;
    write = "ceph_ll_write": (Mount, OpenFile, i64, u64, *const c_char) -> c_int;
    sync_file = "ceph_ll_fsync": (Mount, OpenFile, c_int) -> c_int;
    sync_inode = "ceph_ll_sync_inode": (Mount, Inode, c_int) -> c_int;
    allocate = "ceph_ll_fallocate": (Mount, OpenFile, c_int, i64, i64) -> c_int;
    attribute = "ceph_ll_getxattr": (Mount, Inode, Text, *mut c_void, usize, Permissions) -> c_int;
    set_attribute = "ceph_ll_setxattr": (Mount, Inode, Text, *const c_void, usize, c_int, Permissions) -> c_int;
    attribute_names = "ceph_ll_listxattr": (Mount, Inode, *mut c_char, usize, *mut usize, Permissions) -> c_int;
    remove_attribute = "ceph_ll_removexattr": (Mount, Inode, Text, Permissions) -> c_int;
    create_file = "ceph_ll_create": (Mount, Inode, Text, libc::mode_t, c_int, *mut Inode, *mut OpenFile, *mut Attributes, c_uint, c_uint, Permissions) -> c_int;
    make_node = "ceph_ll_mknod": (Mount, Inode, Text, libc::mode_t, libc::dev_t, *mut Inode, *mut Attributes, c_uint, c_uint, Permissions) -> c_int;
    make_directory = "ceph_ll_mkdir": (Mount, Inode, Text, libc::mode_t, *mut Inode, *mut Attributes, c_uint, c_uint, Permissions) -> c_int;
    make_symlink = "ceph_ll_symlink": (Mount, Inode, Text, Text, *mut Inode, *mut Attributes, c_uint, c_uint, Permissions) -> c_int;
    link = "ceph_ll_link": (Mount, Inode, Inode, Text, Permissions) -> c_int;
    rename = "ceph_ll_rename": (Mount, Inode, Text, Inode, Text, Permissions) -> c_int;
    unlink = "ceph_ll_unlink": (Mount, Inode, Text, Permissions) -> c_int;
    remove_directory = "ceph_ll_rmdir": (Mount, Inode, Text, Permissions) -> c_int;
    read_link = "ceph_ll_readlink": (Mount, Inode, *mut c_char, usize, Permissions) -> c_int;
    space = "ceph_ll_statfs": (Mount, Inode, *mut libc::statvfs) -> c_int;
    open_directory = "ceph_ll_opendir": (Mount, Inode, *mut OpenDirectory, Permissions) -> c_int;
    close_directory = "ceph_ll_releasedir": (Mount, OpenDirectory) -> c_int;
    next_name = "ceph_readdir_r": (Mount, OpenDirectory, *mut libc::dirent) -> c_int;
    seek_directory = "ceph_seekdir": (Mount, OpenDirectory, i64);
    open_path = "ceph_open": (Mount, Text, c_int, libc::mode_t) -> c_int;
    close_fd = "ceph_close": (Mount, c_int) -> c_int;
    read_fd = "ceph_read": (Mount, c_int, *mut c_char, i64, i64) -> c_int;
    write_fd = "ceph_write": (Mount, c_int, *const c_char, i64, i64) -> c_int;
    sync_fd = "ceph_fsync": (Mount, c_int, c_int) -> c_int;
    fd_attributes = "ceph_fstatx": (Mount, c_int, *mut Attributes, c_uint, c_uint) -> c_int;
    lazy = "ceph_lazyio": (Mount, c_int, c_int) -> c_int;
    synchronize_fd = "ceph_lazyio_synchronize": (Mount, c_int, i64, usize) -> c_int;
    lock_holder = "ceph_ll_getlk": (Mount, OpenFile, *mut libc::flock, u64) -> c_int;
    set_lock = "ceph_ll_setlk": (Mount, OpenFile, *mut libc::flock, u64, c_int) -> c_int;
}

impl ClientFunctions {
    fn check_version(&self) -> Result<(), Error> {
        let (mut major, mut minor, mut patch) = (0, 0, 0);
        // SAFETY: the function writes three numbers; the text that it returns is not used.
        unsafe { (self.version)(&raw mut major, &raw mut minor, &raw mut patch) };
        check_version(&format!("{major}.{minor}.{patch}"))
    }

    /// Checks that the libcephfs of this node, or that in the directory of a bundle, has all that is needed. `version`
    /// is that of the programs next to it.
    ///
    /// # Errors
    /// What is missing.
    pub fn check(directory: Option<&Path>, version: &str) -> Result<(), Error> {
        let Some(directory) = directory else { return Self::load(None).map(drop) };
        // A bundle has its own C library, so its libraries cannot be loaded here.
        let path = directory.join(LIBRARY);
        let content = files::read_bytes(&path)?;
        let mut texts: Vec<_> = content.split(|byte| *byte == 0).collect();
        texts.sort_unstable();
        match Self::NAMES.iter().find(|name| texts.binary_search(&name.as_bytes()).is_err()) {
            None => check_version(version),
            Some(name) => Err(Error::Library {
                library: path.display().to_string(),
                package: PACKAGE,
                reason: format!("it has no function {name}"),
            }),
        }
    }
}

fn check_version(version: &str) -> Result<(), Error> {
    let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok());
    if major.is_some_and(|major| major >= MAJOR_MIN) {
        return Ok(());
    }
    Err(Error::Library {
        library: LIBRARY.to_owned(),
        package: PACKAGE,
        reason: format!("it is of Ceph {version}, and the client needs {MAJOR_MIN} or later"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn library_of_this_machine_has_all_functions() {
        let functions =
            ClientFunctions::load(None).expect("libcephfs2, which tools/needs.sh installs");
        functions.check_version().expect("version");
    }

    #[test]
    fn older_releases_are_refused() {
        for (version, is_fit) in
            [("16.2.15", true), ("20.1.0", true), ("15.2.17", false), ("", false)]
        {
            assert_eq!(check_version(version).is_ok(), is_fit, "{version}");
        }
    }

    #[test]
    fn missing_function_of_a_bundle_is_named() {
        let bundle = tempfile::tempdir().expect("tempdir");
        let whole = format!("\0{}\0", ClientFunctions::NAMES.join("\0"));
        let library = bundle.path().join(LIBRARY);
        let write = |text: &str| {
            let fresh = library.with_extension("fresh");
            files::write_atomically(&library, &fresh, text.as_bytes()).expect("write");
        };
        write(&whole);
        ClientFunctions::check(Some(bundle.path()), "16.2.15").expect("complete");
        write(&whole.replace("ceph_ll_setlk\0", ""));
        let error = ClientFunctions::check(Some(bundle.path()), "16.2.15").expect_err("missing");
        assert!(error.to_string().contains("ceph_ll_setlk"), "{error}");
    }
}
