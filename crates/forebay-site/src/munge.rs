//! Credentials of MUNGE, which say who sent a message. Its C library is loaded when it is first used; it talks to the
//! machine's munged. Source of names and numbers: the library's manual pages munge(3), munge_ctx(3), munge_enum(3).

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use crate::Error;
use crate::auth::Message;

const LIBRARY: &str = "libmunge.so.2";
/// Of `munge_err_t`.
const SUCCESS: c_int = 0;
const EXPIRED: c_int = 15;
const REWOUND: c_int = 16;
/// Of `munge_opt_t`.
const OPTION_SOCKET: c_int = 8;
const OPTION_UID_RESTRICTION: c_int = 9;

type Context = *mut c_void;

/// The functions of the library.
struct Functions {
    create: unsafe extern "C" fn() -> Context,
    destroy: unsafe extern "C" fn(Context),
    set: unsafe extern "C" fn(Context, c_int, ...) -> c_int,
    encode: unsafe extern "C" fn(*mut *mut c_char, Context, *const c_void, c_int) -> c_int,
    decode: unsafe extern "C" fn(
        *const c_char,
        Context,
        *mut *mut c_void,
        *mut c_int,
        *mut u32,
        *mut u32,
    ) -> c_int,
    context_error: unsafe extern "C" fn(Context) -> *const c_char,
    error: unsafe extern "C" fn(c_int) -> *const c_char,
    /// Keeps the functions valid.
    _library: Library,
}

/// The credentials of one munged.
pub struct Munge {
    functions: Functions,
    socket: Option<CString>,
    shown: PathBuf,
}

impl Munge {
    /// Loads the library. `socket` is that of munged; none for the usual one.
    ///
    /// # Errors
    /// If the library is not installed.
    pub fn load(socket: Option<&Path>) -> Result<Self, Error> {
        let functions = Functions::load().map_err(|error| {
            let reason = std::error::Error::source(&error)
                .map_or_else(|| error.to_string(), ToString::to_string);
            Error::new(format!("{LIBRARY} cannot be loaded: {reason}"))
                .with_hint("install the package libmunge2")
        })?;
        let shown = socket.map_or_else(|| PathBuf::from("its usual socket"), Path::to_owned);
        let text = socket.map(|path| CString::new(path.as_os_str().as_encoded_bytes()));
        let text = text.transpose().map_err(|_| Error::new("munge_socket has a zero byte"))?;
        Ok(Self { functions, socket: text, shown })
    }

    /// A credential that only `reader` and root can decode.
    ///
    /// # Errors
    /// If munged does not answer, or the content is too long for it.
    pub fn encode(&self, content: &[u8], reader: u32) -> Result<String, Error> {
        let length =
            c_int::try_from(content.len()).map_err(|_| Error::new("the message is too long"))?;
        let context = self.context(Some(reader))?;
        let mut credential = std::ptr::null_mut();
        // SAFETY: `content` has `length` bytes; the library allocates the credential.
        let done = unsafe {
            (self.functions.encode)(&raw mut credential, context.0, content.as_ptr().cast(), length)
        };
        if done != SUCCESS || credential.is_null() {
            return Err(self.error("make a credential with", &context, done));
        }
        // SAFETY: a string of the library, which is ours to free.
        let text = unsafe { CStr::from_ptr(credential) }.to_string_lossy().into_owned();
        // SAFETY: allocated by the library with malloc(3).
        unsafe { libc::free(credential.cast()) };
        Ok(text)
    }

    /// The content of a credential and its sender.
    ///
    /// # Errors
    /// If munged does not answer, or the credential is false, decoded before, or for somebody else.
    pub fn decode(&self, credential: &[u8]) -> Result<Message, Error> {
        let text =
            CString::new(credential).map_err(|_| Error::new("the message has a zero byte"))?;
        let context = self.context(None)?;
        let (mut content, mut length) = (std::ptr::null_mut(), 0);
        let (mut user, mut group) = (u32::MAX, u32::MAX);
        // SAFETY: a string and places for the results; the library allocates the content.
        let done = unsafe {
            (self.functions.decode)(
                text.as_ptr(),
                context.0,
                &raw mut content,
                &raw mut length,
                &raw mut user,
                &raw mut group,
            )
        };
        let copied = match usize::try_from(length) {
            // SAFETY: the library returned a buffer of this length.
            Ok(length) if !content.is_null() => unsafe {
                std::slice::from_raw_parts(content.cast::<u8>(), length).to_vec()
            },
            _ => Vec::new(),
        };
        // SAFETY: null, or allocated by the library with malloc(3). Some errors return a content, too.
        unsafe { libc::free(content) };
        let clock_error = match done {
            SUCCESS => None,
            EXPIRED | REWOUND => {
                let age = if done == EXPIRED { "too old" } else { "from the future" };
                Some(format!("the credential is {age}: the clocks of two hosts differ"))
            }
            _ => return Err(self.error("check a credential with", &context, done)),
        };
        Ok(Message { content: copied, user, clock_error, stamp: None })
    }

    fn context(&self, reader: Option<u32>) -> Result<Owned<'_>, Error> {
        // SAFETY: takes nothing.
        let context = unsafe { (self.functions.create)() };
        if context.is_null() {
            return Err(Error::new("MUNGE has no memory"));
        }
        let context = Owned(context, &self.functions);
        if let Some(socket) = &self.socket {
            // SAFETY: this option takes a string, which the library copies.
            let done = unsafe { (self.functions.set)(context.0, OPTION_SOCKET, socket.as_ptr()) };
            if done != SUCCESS {
                return Err(self.error("set the socket of", &context, done));
            }
        }
        if let Some(reader) = reader {
            // SAFETY: this option takes a user's ID.
            let done = unsafe { (self.functions.set)(context.0, OPTION_UID_RESTRICTION, reader) };
            if done != SUCCESS {
                return Err(self.error("name the reader to", &context, done));
            }
        }
        Ok(context)
    }

    fn error(&self, what: &str, context: &Owned, code: c_int) -> Error {
        // SAFETY: the context lives; the library returns null or a string that lives as long.
        let text = unsafe { (self.functions.context_error)(context.0) };
        let text = if text.is_null() {
            // SAFETY: takes a number, returns a constant string.
            unsafe { (self.functions.error)(code) }
        } else {
            text
        };
        let reason = if text.is_null() {
            format!("error {code}")
        } else {
            // SAFETY: a string of the library.
            unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
        };
        let shown = self.shown.display();
        Error::new(format!("cannot {what} munged at {shown}: {reason}"))
            .with_hint("munged runs on each node, with one key and one clock: munge -n | unmunge")
    }
}

/// A context that is destroyed at the end.
struct Owned<'a>(Context, &'a Functions);

impl Drop for Owned<'_> {
    fn drop(&mut self) {
        // SAFETY: created by the library, destroyed once.
        unsafe { (self.1.destroy)(self.0) };
    }
}

impl Functions {
    fn load() -> Result<Self, libloading::Error> {
        // SAFETY: libmunge has no initialiser beyond those of libc.
        let library = unsafe { Library::open(Some(LIBRARY), RTLD_NOW | RTLD_LOCAL) }?;
        // SAFETY: the types are those of the header munge.h.
        unsafe {
            Ok(Self {
                create: *library.get(b"munge_ctx_create")?,
                destroy: *library.get(b"munge_ctx_destroy")?,
                set: *library.get(b"munge_ctx_set")?,
                encode: *library.get(b"munge_encode")?,
                decode: *library.get(b"munge_decode")?,
                context_error: *library.get(b"munge_ctx_strerror")?,
                error: *library.get(b"munge_strerror")?,
                _library: library,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn munged_that_does_not_run_is_named_with_its_socket() {
        let munge = match Munge::load(Some(Path::new("/no/such/socket"))) {
            Ok(munge) => munge,
            Err(error) => {
                assert!(error.to_string().contains("install the package libmunge2"));
                return; // the library is not installed here
            }
        };
        for error in
            [munge.encode(b"x", 0).expect_err("down"), munge.decode(b"MUNGE:x:").expect_err("down")]
        {
            let text = error.to_string();
            assert!(
                text.contains("munged at /no/such/socket: ")
                    && text.contains("munged runs on each node"),
                "{text}"
            );
        }
    }
}
