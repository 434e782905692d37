//! Answers to requests, and their way back to the kernel.

use std::io::IoSlice;
use std::sync::Arc;

use forebay_host::fuse::FuseDevice;

use crate::error::Errno;
use crate::protocol::{ANSWER_HEADER_BYTES, Answer};

/// What a request is answered with.
pub(crate) enum Outcome {
    /// Success without a word.
    Empty,
    /// Fields.
    Fields(Answer),
    /// So many bytes of the thread's buffer.
    Buffer(usize),
    /// Nothing, or somebody else answers later.
    NoReply,
}

pub(crate) type Result<T = Outcome> = std::result::Result<T, Errno>;

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
            Ok(Outcome::NoReply) => return,
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
}
