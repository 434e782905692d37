//! The bytes of FUSE's protocol (linux/fuse.h, version 7.31 and later): requests are read field by field, answers
//! written likewise. Pure.

use std::ffi::CStr;

use forebay_ceph::Attributes;

use crate::error::Errno;

/// The version that this crate speaks. The kernel leaves out what is newer.
pub(crate) const MAJOR: u32 = 7;
pub(crate) const MINOR: u32 = 38;
/// The oldest kernel protocol with requests of more than 128 KiB and all that is used here.
pub(crate) const MINOR_MIN: u32 = 31;

pub(crate) const LOOKUP: u32 = 1;
pub(crate) const FORGET: u32 = 2;
pub(crate) const GETATTR: u32 = 3;
pub(crate) const SETATTR: u32 = 4;
pub(crate) const READLINK: u32 = 5;
pub(crate) const SYMLINK: u32 = 6;
pub(crate) const MKNOD: u32 = 8;
pub(crate) const MKDIR: u32 = 9;
pub(crate) const UNLINK: u32 = 10;
pub(crate) const RMDIR: u32 = 11;
pub(crate) const RENAME: u32 = 12;
pub(crate) const LINK: u32 = 13;
pub(crate) const OPEN: u32 = 14;
pub(crate) const READ: u32 = 15;
pub(crate) const WRITE: u32 = 16;
pub(crate) const STATFS: u32 = 17;
pub(crate) const RELEASE: u32 = 18;
pub(crate) const FSYNC: u32 = 20;
pub(crate) const SETXATTR: u32 = 21;
pub(crate) const GETXATTR: u32 = 22;
pub(crate) const LISTXATTR: u32 = 23;
pub(crate) const REMOVEXATTR: u32 = 24;
pub(crate) const FLUSH: u32 = 25;
pub(crate) const INIT: u32 = 26;
pub(crate) const OPENDIR: u32 = 27;
pub(crate) const READDIR: u32 = 28;
pub(crate) const RELEASEDIR: u32 = 29;
pub(crate) const FSYNCDIR: u32 = 30;
pub(crate) const GETLK: u32 = 31;
pub(crate) const SETLK: u32 = 32;
pub(crate) const SETLKW: u32 = 33;
pub(crate) const ACCESS: u32 = 34;
pub(crate) const CREATE: u32 = 35;
pub(crate) const INTERRUPT: u32 = 36;
pub(crate) const DESTROY: u32 = 38;
pub(crate) const IOCTL: u32 = 39;
pub(crate) const BATCH_FORGET: u32 = 42;
pub(crate) const FALLOCATE: u32 = 43;
pub(crate) const RENAME2: u32 = 45;
pub(crate) const LSEEK: u32 = 46;
pub(crate) const SYNCFS: u32 = 50;

/// The node that is the root of the mount.
pub(crate) const ROOT: u64 = 1;

/// What this crate asks the kernel for, as far as the kernel offers it.
const WANTED: u64 = 1 << 0 // several reads of a file at a time
    | 1 << 1 // fcntl locks
    | 1 << 3 // O_TRUNC as part of open
    | 1 << 5 // writes of more than a page
    | 1 << 10 // flock
    | 1 << 12 // mapped pages are dropped when another node has changed the file
    | 1 << 15 // asynchronous direct I/O
    | 1 << 18 // several operations on a directory at a time
    | MAX_PAGES
    | INIT_EXTENDED
    | 1 << 36; // MAP_SHARED with direct I/O
const MAX_PAGES: u64 = 1 << 22;
const INIT_EXTENDED: u64 = 1 << 30;

/// An opened file: no page cache, several writers at a time.
const OPENED_DIRECT: u32 = 1 << 0 | 1 << 6;

/// The length of a request's header and of an answer's.
const HEADER_BYTES: usize = 40;
pub(crate) const ANSWER_HEADER_BYTES: usize = 16;

/// A request of the kernel.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) opcode: u32,
    /// The number of the request, which its answer repeats.
    pub(crate) unique: u64,
    /// The node that it is about.
    pub(crate) node: u64,
    /// The process that waits for the answer.
    pub(crate) caller: Caller,
    pub(crate) body: Fields<'a>,
}

/// A process, as its file accesses are judged.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// The number of its thread, in our namespace of processes.
    pub(crate) pid: u32,
}

impl<'a> Request<'a> {
    /// Reads the header; none if the bytes are no request.
    pub(crate) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let mut header = Fields(bytes.get(..HEADER_BYTES)?);
        let length = header.u32().ok()? as usize;
        let opcode = header.u32().ok()?;
        let (unique, node) = (header.u64().ok()?, header.u64().ok()?);
        let caller =
            Caller { uid: header.u32().ok()?, gid: header.u32().ok()?, pid: header.u32().ok()? };
        let body = Fields(bytes.get(HEADER_BYTES..length)?);
        Some(Self { opcode, unique, node, caller, body })
    }
}

/// The fields of a request, from first to last.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], Errno> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Errno::MALFORMED)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Errno> {
        let bytes = self.take(4)?.try_into();
        bytes.map(u32::from_ne_bytes).map_err(|_| Errno::MALFORMED)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Errno> {
        let bytes = self.take(8)?.try_into();
        bytes.map(u64::from_ne_bytes).map_err(|_| Errno::MALFORMED)
    }

    /// An offset or a length, which the kernel keeps below 2^63.
    pub(crate) fn i64(&mut self) -> Result<i64, Errno> {
        i64::try_from(self.u64()?).map_err(|_| Errno(libc::EINVAL))
    }

    /// A text that ends with a zero byte.
    pub(crate) fn name(&mut self) -> Result<&'a CStr, Errno> {
        let name = CStr::from_bytes_until_nul(self.0).map_err(|_| Errno::MALFORMED)?;
        self.take(name.to_bytes_with_nul().len())?;
        Ok(name)
    }
}

/// The fields of an answer.
#[derive(Debug, Default)]
pub(crate) struct Answer(pub(crate) Vec<u8>);

impl Answer {
    pub(crate) fn u16(&mut self, value: u16) -> &mut Self {
        self.0.extend(value.to_ne_bytes());
        self
    }

    pub(crate) fn u32(&mut self, value: u32) -> &mut Self {
        self.0.extend(value.to_ne_bytes());
        self
    }

    pub(crate) fn u64(&mut self, value: u64) -> &mut Self {
        self.0.extend(value.to_ne_bytes());
        self
    }

    pub(crate) fn zeros(&mut self, count: usize) {
        self.0.resize(self.0.len() + count, 0);
    }

    fn attributes(&mut self, of: &Attributes) -> &mut Self {
        let seconds = |time: &libc::timespec| time.tv_sec.cast_unsigned();
        let nanoseconds = |time: &libc::timespec| u32::try_from(time.tv_nsec).unwrap_or_default();
        let times = [&of.atime, &of.mtime, &of.ctime];
        self.u64(of.ino).u64(of.size).u64(of.blocks);
        for time in times {
            self.u64(seconds(time));
        }
        for time in times {
            self.u32(nanoseconds(time));
        }
        self.u32(of.mode.into()).u32(of.nlink).u32(of.uid).u32(of.gid);
        // Device numbers below 2^32 have the kernel's form.
        self.u32(of.rdev as u32).u32(of.blksize).u32(0)
    }

    /// Attributes that are asked for again at the next access: other nodes change them.
    pub(crate) fn fresh_attributes(of: &Attributes) -> Self {
        let mut answer = Self::default();
        answer.u64(0).u32(0).u32(0).attributes(of);
        answer
    }

    /// A name that is looked up again at the next access.
    pub(crate) fn entry(node: u64, of: &Attributes) -> Self {
        let mut answer = Self::default();
        answer.u64(node).u64(0).u64(0).u64(0).u32(0).u32(0).attributes(of);
        answer
    }

    /// An opened file.
    pub(crate) fn add_open_file(&mut self, handle: u64) -> &mut Self {
        self.u64(handle).u32(OPENED_DIRECT).u32(0)
    }

    /// An opened directory.
    pub(crate) fn opened_directory(handle: u64) -> Self {
        let mut answer = Self::default();
        answer.u64(handle).u32(0).u32(0);
        answer
    }

    /// Adds a name of a directory, if the answer then has at most `bytes_max`. `next` is the place of the name after it.
    pub(crate) fn add_name(&mut self, found: &DirectoryEntry, bytes_max: usize) -> bool {
        let padded = (24 + found.name.len()).next_multiple_of(8);
        if self.0.len() + padded > bytes_max {
            return false;
        }
        let end = self.0.len() + padded;
        let length = u32::try_from(found.name.len()).unwrap_or_default();
        self.u64(found.ino).u64(found.next).u32(length).u32(found.kind.into());
        self.0.extend(&found.name);
        self.0.resize(end, 0);
        true
    }
}

/// A name in a directory.
#[derive(Debug, Clone)]
pub(crate) struct DirectoryEntry {
    pub(crate) name: Vec<u8>,
    pub(crate) ino: u64,
    /// As `d_type` of readdir(3).
    pub(crate) kind: u8,
    pub(crate) next: u64,
}

/// The answer to the first request, which settles what both sides can do.
pub(crate) fn init(mut body: Fields, write_bytes_max: u32) -> Result<Answer, Errno> {
    let (major, minor, readahead) = (body.u32()?, body.u32()?, body.u32()?);
    let offered = u64::from(body.u32()?);
    let more = if offered & INIT_EXTENDED == 0 { 0 } else { body.u32()? };
    let offered = offered | u64::from(more) << 32;
    if major < MAJOR || (major == MAJOR && minor < MINOR_MIN) {
        return Err(Errno(libc::EPROTO));
    }
    let flags = WANTED & offered;
    let pages = write_bytes_max.div_ceil(4096);
    let mut answer = Answer::default();
    answer.u32(MAJOR).u32(MINOR).u32(readahead).u32(flags as u32);
    answer.u16(BACKGROUND_MAX).u16(BACKGROUND_MAX / 4 * 3).u32(write_bytes_max).u32(1);
    answer.u16(u16::try_from(pages).unwrap_or(u16::MAX)).u16(0).u32((flags >> 32) as u32);
    answer.zeros(28);
    Ok(answer)
}

/// Asynchronous requests on their way.
const BACKGROUND_MAX: u16 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn request(opcode: u32, node: u64, body: &[u8]) -> Vec<u8> {
        let mut bytes = Answer::default();
        bytes.u32((HEADER_BYTES + body.len()) as u32).u32(opcode).u64(7).u64(node);
        bytes.u32(1000).u32(100).u32(42).u32(0);
        [bytes.0, body.to_vec()].concat()
    }

    #[test]
    fn request_has_header_and_fields() {
        let bytes = request(LOOKUP, ROOT, b"name\0");
        let mut parsed = Request::parse(&bytes).expect("request");
        assert_eq!((parsed.opcode, parsed.unique, parsed.node), (LOOKUP, 7, ROOT));
        assert_eq!((parsed.caller.uid, parsed.caller.gid, parsed.caller.pid), (1000, 100, 42));
        assert_eq!(parsed.body.name().expect("name"), c"name");
        assert_eq!(parsed.body.u32(), Err(Errno::MALFORMED));
    }

    #[test]
    fn short_requests_and_unended_names_are_refused() {
        let bytes = request(LOOKUP, ROOT, b"name");
        let mut parsed = Request::parse(&bytes).expect("request");
        assert_eq!(parsed.body.name(), Err(Errno::MALFORMED));
        assert!(Request::parse(&bytes[..bytes.len() - 1]).is_none());
        assert!(Request::parse(&bytes[..HEADER_BYTES - 1]).is_none());
    }

    #[test]
    fn answers_have_the_lengths_of_the_kernel() {
        let attributes = Attributes::default();
        assert_eq!(Answer::fresh_attributes(&attributes).0.len(), 104);
        assert_eq!(Answer::entry(5, &attributes).0.len(), 128);
        assert_eq!(Answer::default().add_open_file(1).0.len(), 16);
        let mut asked = Answer::default();
        asked.u32(7).u32(45).u32(1 << 17).u32(u32::MAX).u32(u32::MAX);
        assert_eq!(init(Fields(&asked.0), 1 << 20).expect("init").0.len(), 64);
    }

    #[test]
    fn kernel_that_offers_less_gets_less() {
        let mut asked = Answer::default();
        asked.u32(7).u32(31).u32(0).u32(1);
        let answer = init(Fields(&asked.0), 1 << 20).expect("init");
        assert_eq!(answer.0[12..16], 1_u32.to_ne_bytes());
        assert_eq!(answer.0[32..36], [0; 4]);
        let mut asked = Answer::default();
        asked.u32(7).u32(30).u32(0).u32(1);
        assert_eq!(init(Fields(&asked.0), 1 << 20).err(), Some(Errno(libc::EPROTO)));
    }

    #[test]
    fn names_are_padded_and_fit() {
        let found = DirectoryEntry { name: b"abc".to_vec(), ino: 9, kind: libc::DT_REG, next: 3 };
        let mut answer = Answer::default();
        assert!(answer.add_name(&found, 64));
        assert_eq!(answer.0.len(), 32);
        assert!(answer.add_name(&found, 64));
        assert!(!answer.add_name(&found, 64));
        assert_eq!(answer.0[24..27], *b"abc");
    }
}
