//! The monitors of a cluster, through librados.
//! Each command ends at the limit of the connection.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::{null, null_mut};

use serde_json::Value;

use crate::connection::{Connection, c_text};
use crate::error::{CommandError, Error};
use crate::library::Library;

pub(crate) const LIBRARY: &str = "librados.so.2";
pub(crate) const PACKAGE: &str = "librados2";

/// `rados_t`.
type Handle = *mut c_void;

type MonCommand = unsafe extern "C" fn(
    Handle,
    *const *const c_char,
    usize,
    *const c_char,
    usize,
    *mut *mut c_char,
    *mut usize,
    *mut *mut c_char,
    *mut usize,
) -> c_int;

/// The functions of librados.h that are used.
#[derive(Clone, Copy)]
struct Functions {
    create: unsafe extern "C" fn(*mut Handle, *const c_char, *const c_char, u64) -> c_int,
    read_file: unsafe extern "C" fn(Handle, *const c_char) -> c_int,
    set: unsafe extern "C" fn(Handle, *const c_char, *const c_char) -> c_int,
    connect: unsafe extern "C" fn(Handle) -> c_int,
    shutdown: unsafe extern "C" fn(Handle),
    command: MonCommand,
    free: unsafe extern "C" fn(*mut c_char),
}

impl Functions {
    fn load(connection: &Connection) -> Result<Self, Error> {
        let library = Library::load(connection.library_directory.as_deref(), LIBRARY, PACKAGE)?;
        // SAFETY: the types above are those of librados.h, unchanged since version 0.94.
        let functions = unsafe {
            Self {
                create: library.function("rados_create2")?,
                read_file: library.function("rados_conf_read_file")?,
                set: library.function("rados_conf_set")?,
                connect: library.function("rados_connect")?,
                shutdown: library.function("rados_shutdown")?,
                command: library.function("rados_mon_command")?,
                free: library.function("rados_buffer_free")?,
            }
        };
        library.keep();
        Ok(functions)
    }
}

/// A connection to the monitors.
pub struct Monitors {
    functions: Functions,
    handle: Handle,
}

// SAFETY: a rados_t may be used by any thread (librados.h); this one is owned by one value.
unsafe impl Send for Monitors {}
// SAFETY: librados locks what its calls share; several threads may send commands through one rados_t.
unsafe impl Sync for Monitors {}

impl Monitors {
    /// Connects to the monitors.
    ///
    /// # Errors
    /// If librados cannot be loaded, or no monitor accepts the connection within its limit.
    pub fn connect(connection: &Connection) -> Result<Self, Error> {
        let functions = Functions::load(connection)?;
        let (cluster, name) = (c_text("ceph")?, c_text(&connection.name)?);
        let mut handle = null_mut();
        // SAFETY: all pointers are valid during the call.
        let result =
            unsafe { (functions.create)(&raw mut handle, cluster.as_ptr(), name.as_ptr(), 0) };
        check_configuration(result, &connection.name)?;
        let monitors = Self { functions, handle }; // from here on, `Drop` frees the handle
        let config = connection.config.display().to_string();
        let file = c_text(&config)?;
        // SAFETY: the handle is alive, the text is valid during the call.
        let result = unsafe { (functions.read_file)(monitors.handle, file.as_ptr()) };
        check_configuration(result, &config)?;
        for (option, value) in connection.options() {
            let (option_text, value) = (c_text(option)?, c_text(&value)?);
            // SAFETY: as above.
            let result =
                unsafe { (functions.set)(monitors.handle, option_text.as_ptr(), value.as_ptr()) };
            check_configuration(result, option)?;
        }
        // SAFETY: the handle is alive and configured.
        match unsafe { (functions.connect)(monitors.handle) } {
            0 => Ok(monitors),
            error => Err(connection.refused("the monitors", -error)),
        }
    }

    /// Sends a command (`{"prefix": "osd stat", "format": "json"}`) with its input.
    ///
    /// # Errors
    /// What the monitor answered, or `ETIMEDOUT` if none answered within the limit of the connection.
    pub fn command(&self, json: &Value, input: &[u8]) -> Result<Vec<u8>, CommandError> {
        let failed = |errno: i32, message: String| CommandError { errno, message };
        // JSON has no zero byte: a text's is escaped.
        let text = c_text(&json.to_string())
            .map_err(|error| failed(nix::errno::Errno::EINVAL as i32, error.to_string()))?;
        let words = [text.as_ptr()];
        let input_start = if input.is_empty() { null() } else { input.as_ptr().cast() };
        let (mut output, mut output_length) = (null_mut(), 0);
        let (mut message, mut message_length) = (null_mut(), 0);
        // SAFETY: input pointers are valid during the call; librados allocates the outputs.
        let result = unsafe {
            (self.functions.command)(
                self.handle,
                words.as_ptr(),
                words.len(),
                input_start,
                input.len(),
                &raw mut output,
                &raw mut output_length,
                &raw mut message,
                &raw mut message_length,
            )
        };
        let output = self.take(output, output_length);
        let message = self.take(message, message_length);
        if result == 0 {
            return Ok(output);
        }
        Err(failed(-result, String::from_utf8_lossy(&message).into_owned()))
    }

    /// Copies a buffer of librados and frees it.
    fn take(&self, buffer: *mut c_char, length: usize) -> Vec<u8> {
        if buffer.is_null() {
            return Vec::new();
        }
        // SAFETY: librados allocated `length` bytes there; they are freed once, after the copy.
        unsafe {
            let bytes = std::slice::from_raw_parts(buffer.cast::<u8>(), length).to_vec();
            (self.functions.free)(buffer);
            bytes
        }
    }
}

impl Drop for Monitors {
    fn drop(&mut self) {
        // SAFETY: the handle was created once and is not used again.
        unsafe { (self.functions.shutdown)(self.handle) }
    }
}

impl Connection {
    /// The error of a connection that was not made.
    pub(crate) fn refused(&self, what: &'static str, errno: i32) -> Error {
        Error::Connect {
            what,
            config: self.config.clone(),
            name: self.name.clone(),
            s_max: self.connect_s_max,
            errno,
        }
    }
}

/// The error of a refused file or option.
pub(crate) fn check_configuration(result: c_int, what: &str) -> Result<(), Error> {
    if result == 0 {
        return Ok(());
    }
    Err(Error::Configuration { what: what.to_owned(), errno: result.abs() })
}
