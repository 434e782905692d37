//! What a coordinator asks of a worker, and what the worker answers: one line of JSON each.
//! Assumes that both sides have the same version, which the coordinator checks first.

use serde::{Deserialize, Serialize};

use crate::bytes::{Bytes, Data};

/// A number that the worker gave to an open file, directory, mapping or child.
pub type Handle = u64;

/// How to open a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flag {
    /// O_RDONLY.
    Read,
    /// O_WRONLY.
    Write,
    /// O_RDWR.
    ReadWrite,
    /// O_CREAT.
    Create,
    /// O_EXCL.
    Exclusive,
    /// O_TRUNC.
    Truncate,
    /// O_APPEND.
    Append,
    /// O_DIRECT.
    Direct,
    /// O_DIRECTORY.
    Directory,
    /// O_NOFOLLOW.
    NoFollow,
    /// O_TMPFILE.
    Unnamed,
}

/// Where a seek starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Whence {
    /// SEEK_SET.
    Start,
    /// SEEK_CUR.
    Current,
    /// SEEK_END.
    End,
    /// SEEK_DATA.
    Data,
    /// SEEK_HOLE.
    Hole,
}

/// What a rename does with an existing target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Replacement {
    /// rename(2).
    Replace,
    /// RENAME_NOREPLACE.
    Refuse,
    /// RENAME_EXCHANGE.
    Exchange,
}

/// A lock to set or to release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lock {
    /// F_RDLCK, LOCK_SH.
    Shared,
    /// F_WRLCK, LOCK_EX.
    Exclusive,
    /// F_UNLCK, LOCK_UN.
    Release,
}

/// Which locks a counter loop uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LockKind {
    /// fcntl(2).
    Record,
    /// flock(2).
    File,
}

/// One operation. Paths are relative to the worker's directory unless they start with `/`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "call", deny_unknown_fields)]
#[expect(
    missing_docs,
    reason = "an operation is named after its system call, a field after its argument"
)]
pub enum Operation {
    /// Answers with [`Answer::Facts`].
    Hello,
    /// Closes and releases all that is open, ends the children, and takes relative paths from here on.
    Begin {
        path: Bytes,
    },
    /// Answers with a handle.
    Open {
        path: Bytes,
        flags: Vec<Flag>,
        mode: u32,
    },
    Close {
        handle: Handle,
    },
    /// write(2): at the position of the file, or at its end with O_APPEND. Answers with the count.
    Write {
        handle: Handle,
        data: Data,
    },
    /// pwrite(2).
    WriteAt {
        handle: Handle,
        offset: u64,
        data: Data,
    },
    /// pread(2) until `bytes` are read or the file ends.
    ReadAt {
        handle: Handle,
        offset: u64,
        bytes: usize,
    },
    /// Reads and answers with the first offset that differs, or with [`Answer::Done`].
    Verify {
        handle: Handle,
        offset: u64,
        data: Data,
    },
    /// pread(2) and pwrite(2) of aligned memory, for O_DIRECT. Answers with the first offset that differs.
    DirectRoundTrip {
        handle: Handle,
        data: Data,
    },
    Seek {
        handle: Handle,
        offset: u64,
        whence: Whence,
    },
    Sync {
        handle: Handle,
    },
    StatHandle {
        handle: Handle,
    },
    Stat {
        path: Bytes,
    },
    /// lstat(2).
    StatLink {
        path: Bytes,
    },
    /// access(2) with F_OK.
    Access {
        path: Bytes,
    },
    TruncateHandle {
        handle: Handle,
        bytes: u64,
    },
    Truncate {
        path: Bytes,
        bytes: u64,
    },
    Rename {
        from: Bytes,
        to: Bytes,
        replacement: Replacement,
    },
    Unlink {
        path: Bytes,
    },
    RemoveDirectory {
        path: Bytes,
    },
    MakeDirectory {
        path: Bytes,
        mode: u32,
    },
    Link {
        from: Bytes,
        to: Bytes,
    },
    Symlink {
        target: Bytes,
        path: Bytes,
    },
    ReadLink {
        path: Bytes,
    },
    MakeFifo {
        path: Bytes,
        mode: u32,
    },
    /// All names but `.` and `..`.
    List {
        path: Bytes,
    },
    OpenDirectory {
        path: Bytes,
    },
    /// The next names of an open directory, at most `count`.
    NextNames {
        handle: Handle,
        count: usize,
    },
    CloseDirectory {
        handle: Handle,
    },
    ChangeMode {
        path: Bytes,
        mode: u32,
    },
    ChangeOwner {
        path: Bytes,
        user: u32,
        group: u32,
    },
    SetTimes {
        path: Bytes,
        accessed_ns: i64,
        modified_ns: i64,
    },
    /// Answers with the earlier mask.
    SetMask {
        mask: u32,
    },
    SetAttribute {
        path: Bytes,
        name: Bytes,
        value: Bytes,
    },
    GetAttribute {
        path: Bytes,
        name: Bytes,
    },
    ListAttributes {
        path: Bytes,
    },
    RemoveAttribute {
        path: Bytes,
        name: Bytes,
    },
    /// fallocate(2); with `keep_size` the size stays.
    Allocate {
        handle: Handle,
        offset: u64,
        bytes: u64,
        keep_size: bool,
    },
    /// fallocate(2) with FALLOC_FL_PUNCH_HOLE.
    PunchHole {
        handle: Handle,
        offset: u64,
        bytes: u64,
    },
    CopyRange {
        from: Handle,
        from_offset: u64,
        to: Handle,
        to_offset: u64,
        bytes: usize,
    },
    /// statfs(2).
    FileSystem {
        path: Bytes,
    },
    /// fcntl(2): F_SETLK, or F_SETLKW with `wait`. 0 bytes: to the end of the file.
    RecordLock {
        handle: Handle,
        lock: Lock,
        offset: u64,
        bytes: u64,
        wait: bool,
    },
    /// F_GETLK: answers with 1 if a lock of another process conflicts with this one, else with 0.
    RecordLockConflict {
        handle: Handle,
        lock: Lock,
        offset: u64,
        bytes: u64,
    },
    /// flock(2).
    FileLock {
        handle: Handle,
        lock: Lock,
        wait: bool,
    },
    /// mmap(2). Answers with a handle.
    Map {
        handle: Handle,
        bytes: usize,
        shared: bool,
        writable: bool,
    },
    MapRead {
        handle: Handle,
        offset: usize,
        bytes: usize,
    },
    MapWrite {
        handle: Handle,
        offset: usize,
        data: Data,
    },
    /// msync(2) with MS_SYNC.
    MapSync {
        handle: Handle,
    },
    Unmap {
        handle: Handle,
    },
    /// fork(2): a second process of the node, which shares nothing open. Answers with a handle.
    Fork,
    /// Carries out an operation in a child.
    Child {
        child: Handle,
        operation: Box<Operation>,
    },
    /// SIGKILL. Answers when the child has ended.
    KillChild {
        child: Handle,
    },
    /// open, write, close.
    WriteFile {
        path: Bytes,
        data: Data,
    },
    /// open, read to the end (at most 16 MiB), close.
    ReadFile {
        path: Bytes,
    },
    /// Reads a file and answers with the first offset that differs.
    VerifyFile {
        path: Bytes,
        data: Data,
    },
    /// Removes a directory and all below it.
    RemoveTree {
        path: Bytes,
    },
    /// Many steps in the worker.
    Loop {
        steps: Loop,
    },
}

/// Operations of many steps, so that those of several nodes overlap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "loop", deny_unknown_fields)]
#[expect(missing_docs, reason = "the fields are named like those of the operations")]
pub enum Loop {
    /// Creates the files `prefix` + number with O_EXCL. Answers with the numbers that this worker created.
    CreateExclusive { prefix: Bytes, count: usize },
    /// Opens each file `prefix` + number with O_CREAT, and writes a pattern of `seed` + number at `offset`.
    /// Answers with the inode numbers.
    CreateShared { prefix: Bytes, count: usize, offset: u64, seed: u64, bytes: usize },
    /// Creates empty files `prefix` + number.
    Create { prefix: Bytes, count: usize },
    /// Removes the files `prefix` + number.
    Remove { prefix: Bytes, count: usize },
    /// Opens with O_APPEND and writes `count` records: writer, number, padding, newline.
    Append { path: Bytes, count: usize, writer: usize, record_bytes: usize },
    /// Creates and removes the file `prefix` + number, one after the other.
    Churn { prefix: Bytes, count: usize },
    /// Lists a directory `count` times. Answers with the number of listings in which not each of the names
    /// `stable` + number below `names` appeared exactly once.
    ListStable { path: Bytes, count: usize, stable: Bytes, names: usize },
    /// Adds 1 to the number in a file, under a lock, `count` times.
    Count { path: Bytes, count: usize, kind: LockKind },
    /// Overwrites the file with patterns of `seed` + number in turn, `bytes` each: truncate, write.
    Truncate { path: Bytes, count: usize, seed: u64, bytes: usize },
    /// Reads a file `count` times. Answers with the number of reads that gave a byte that is neither 0 nor
    /// of one of the `patterns` patterns from `seed` on.
    ReadTruncated { path: Bytes, count: usize, seed: u64, patterns: usize, bytes: usize },
    /// Renames `from` over `to`, after writing a pattern of `seed` + number to it, `count` times.
    Replace { from: Bytes, to: Bytes, count: usize, seed: u64, bytes: usize },
    /// Opens and reads a file `count` times. Answers with the number of reads that did not give one whole
    /// pattern of the `patterns` from `seed` on.
    ReadReplaced { path: Bytes, count: usize, seed: u64, patterns: usize, bytes: usize },
    /// Renames each file `from` + number to `to` + number. Answers with the numbers that were still there.
    RenameOwn { from: Bytes, to: Bytes, count: usize },
    /// Moves a directory from `one` to `other` and back, `count` times.
    Move { one: Bytes, other: Bytes, count: usize },
    /// Writes `bytes` at each offset `first` + i * `stride`.
    WriteStrided { path: Bytes, first: u64, stride: u64, count: usize, seed: u64, bytes: usize },
    /// Creates, writes and reads the files `name` + number in the open directory, which others may rename.
    WorkBelow { directory: Handle, prefix: Bytes, count: usize },
}

/// Attributes of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the fields of stat(2)")]
pub struct Attributes {
    pub kind: Kind,
    /// The permission bits.
    pub mode: u32,
    pub size_bytes: u64,
    pub allocated_bytes: u64,
    pub links: u64,
    pub inode: u64,
    pub user: u32,
    pub group: u32,
    pub accessed_ns: i64,
    pub modified_ns: i64,
    pub changed_ns: i64,
}

/// What a name leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the kinds of stat(2)")]
pub enum Kind {
    File,
    Directory,
    Symlink,
    Other,
}

/// The answer of an operation that succeeded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "named after what they hold")]
pub enum Answer {
    Done,
    Number(u64),
    Numbers(Vec<u64>),
    Bytes(Bytes),
    Names(Vec<Bytes>),
    Attributes(Attributes),
    FileSystem { capacity_bytes: u64, free_bytes: u64, name_bytes_max: u64 },
    Facts { version: String, host: String, pid: u32, user: u32 },
}

/// One line of a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// It succeeded.
    Answer(Answer),
    /// It failed with this errno, by name.
    Errno(String),
    /// The worker does not understand the line, or the line names a handle that does not exist.
    Refused(String),
}

impl Operation {
    /// The operation and its path, for messages.
    pub fn describe(&self) -> String {
        if let Self::Child { operation, .. } = self {
            return format!("{} of a child", operation.describe());
        }
        let value = serde_json::to_value(self).unwrap_or_default();
        let inner = value.get("steps").unwrap_or(&value);
        let name = inner.get("loop").or(inner.get("call")).and_then(|name| name.as_str());
        let path =
            ["path", "from", "prefix", "one"].iter().find_map(|key| inner.get(key)?.as_str());
        let short: String = path.unwrap_or_default().chars().take(40).collect();
        format!("{} {}", name.unwrap_or("operation").replace('_', " "), short.escape_debug())
            .trim_end()
            .to_owned()
    }
}
