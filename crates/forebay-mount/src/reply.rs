//! Answers to requests, and their way back to the kernel.

use std::ffi::CString;
use std::io::IoSlice;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use forebay_host::fuse::FuseDevice;
use forebay_host::threads;

use crate::error::Failure;
use crate::protocol::{ANSWER_HEADER_BYTES, Answer, NOTIFY_INVAL_ENTRY};

/// The kernel forgets a name at once, unless an operation that it carries out has locked the directory.
const FORGET_NAME_MAX: Duration = Duration::from_millis(20);

/// What a request is answered with.
pub(crate) enum Outcome {
    /// Success without a word.
    Empty,
    /// Fields.
    Fields(Answer),
    /// So many bytes of the thread's buffer.
    Buffer(usize),
    /// Nothing, or somebody else answers later.
    Silence,
}

pub(crate) type Result<T = Outcome> = std::result::Result<T, Failure>;

/// The way back of one answer.
#[derive(Clone)]
pub(crate) struct Reply {
    pub(crate) device: Arc<FuseDevice>,
    pub(crate) unique: u64,
}

impl Reply {
    /// Sends an answer, whose bytes may be in `buffer`.
    pub(crate) fn send(&self, result: &Result, buffer: &[u8]) {
        let (error, body) = match result {
            Ok(Outcome::Silence) => return,
            Ok(Outcome::Empty) => (0, &[][..]),
            Ok(Outcome::Fields(Answer(fields))) => (0, &fields[..]),
            Ok(Outcome::Buffer(length)) => (0, &buffer[..*length]),
            Err(failure) => (failure.answer(), &[][..]),
        };
        let length = u32::try_from(ANSWER_HEADER_BYTES + body.len()).unwrap_or(u32::MAX);
        let mut header = Answer::default();
        header.u32(length).u32(error.cast_unsigned()).u64(self.unique);
        if let Err(failure) = self.device.send(&[IoSlice::new(&header.0), IoSlice::new(body)]) {
            eprintln!("{failure}");
        }
    }

    /// Makes the kernel forget a name, and waits for it a moment: an operation that waits for the answer of this request
    /// may have locked the directory. False: the kernel forgets it later.
    pub(crate) fn forget_name(&self, parent: u64, name: &CString) -> bool {
        let name = name.as_bytes_with_nul();
        let mut body = Answer::default();
        body.u64(parent).u32(name.len() as u32 - 1).u32(0);
        body.0.extend_from_slice(name);
        let mut message = Answer::default();
        message.u32((ANSWER_HEADER_BYTES + body.0.len()) as u32).u32(NOTIFY_INVAL_ENTRY).u64(0);
        message.0.append(&mut body.0);
        let (device, (sender, sent)) = (Arc::clone(&self.device), channel());
        let started = threads::spawn(move || {
            // The kernel may have forgotten it by itself.
            device.send(&[IoSlice::new(&message.0)]).ok();
            sender.send(()).ok();
        });
        started.is_ok() && sent.recv_timeout(FORGET_NAME_MAX).is_ok()
    }
}
