//! One repetition of a check: what its body uses.
//! Assumes that all nodes see one directory. A node that gives no answer ends the repetition.

use crate::bytes::{Bytes, Data, first_difference};
use crate::node::{Node, OperationError};
use crate::operation::{
    Answer, Attributes, Flag, Handle, Lock, Loop, Operation, Replacement, Whence,
};

/// Why a repetition did not find what the check proves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The promise is broken.
    Broken(String),
    /// The last operation must not succeed; what is expected of it.
    Succeeded(String),
    /// The file system does not offer it: the errno.
    NotSupported(String),
    /// No answer within the limit.
    NoAnswer(String),
    /// A worker is lost.
    Lost(String),
}

pub(crate) type Verdict = Result<(), Failure>;

/// These say of each operation that the file system has none such.
const NOT_OFFERED: [&str; 2] = ["ENOSYS", "EOPNOTSUPP"];

impl From<OperationError> for Failure {
    fn from(failed: OperationError) -> Self {
        match failed {
            OperationError::Errno { errno, .. } if NOT_OFFERED.contains(&errno.as_str()) => {
                Self::NotSupported(errno)
            }
            OperationError::Errno { errno, on } => Self::Broken(format!("{on}: {errno}")),
            OperationError::NoAnswer { node, operation } => {
                Self::NoAnswer(format!("{operation} on {node}"))
            }
            OperationError::Lost(reason) => Self::Lost(reason),
        }
    }
}

/// What a body says of a result.
pub(crate) trait Expect<T> {
    /// It must fail with one of these.
    fn fails_with(self, errnos: &[&str]) -> Verdict;
    /// One of these says that the file system does not offer it.
    fn or_unsupported(self, errnos: &[&str]) -> Result<T, Failure>;
    /// It must fail with one of `errnos`; one of `not_offered` says that the file system does not offer it.
    fn or_unsupported_then(self, not_offered: &[&str], errnos: &[&str]) -> Verdict;
}

impl<T> Expect<T> for Result<T, OperationError> {
    fn fails_with(self, errnos: &[&str]) -> Verdict {
        match self {
            Ok(_) => Err(Failure::Succeeded(format!(
                "succeeds and does not fail with {}",
                errnos.join(" or ")
            ))),
            Err(OperationError::Errno { errno, .. }) if errnos.contains(&errno.as_str()) => Ok(()),
            Err(OperationError::Errno { errno, on }) => {
                broken(format!("{on}: {errno} and not {}", errnos.join(" or ")))
            }
            Err(other) => Err(other.into()),
        }
    }

    fn or_unsupported(self, errnos: &[&str]) -> Result<T, Failure> {
        match self {
            Err(OperationError::Errno { errno, .. }) if errnos.contains(&errno.as_str()) => {
                Err(Failure::NotSupported(errno))
            }
            other => Ok(other?),
        }
    }

    fn or_unsupported_then(self, not_offered: &[&str], errnos: &[&str]) -> Verdict {
        match &self {
            Err(OperationError::Errno { errno, .. })
                if [not_offered, &NOT_OFFERED].concat().contains(&errno.as_str()) =>
            {
                Err(Failure::NotSupported(errno.clone()))
            }
            _ => self.fails_with(errnos),
        }
    }
}

pub(crate) fn broken<T>(reason: impl Into<String>) -> Result<T, Failure> {
    Err(Failure::Broken(reason.into()))
}

/// Both must be equal.
pub(crate) fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Verdict {
    if found == expected {
        return Ok(());
    }
    let short = |value: &T| format!("{value:?}").chars().take(100).collect::<String>();
    broken(format!("{what}: {} and not {}", short(&found), short(&expected)))
}

/// Long data must be equal.
pub(crate) fn same_data(found: &[u8], expected: &[u8]) -> Verdict {
    first_difference(found, expected)
        .map_or(Ok(()), |offset| broken(format!("the data differ from byte {offset} on")))
}

/// Short data must be equal.
pub(crate) fn same_data_of(what: &str, found: &[u8], expected: &[u8]) -> Verdict {
    same(what, Bytes::from(found), Bytes::from(expected))
}

/// The condition must hold.
pub(crate) fn holds(what: &str, condition: bool) -> Verdict {
    if condition { Ok(()) } else { broken(what) }
}

/// The nodes, and the number of the repetition. Node 0 is another one in each repetition.
pub(crate) struct Trial<'a> {
    pub(crate) nodes: &'a mut [Node],
    pub(crate) number: u64,
}

impl Trial<'_> {
    fn index(&self, node: usize) -> usize {
        (node + usize::try_from(self.number).unwrap_or_default()) % self.nodes.len()
    }

    pub(crate) fn count(&self) -> usize {
        self.nodes.len()
    }

    /// The nodes but node 0.
    pub(crate) fn others(&self) -> std::ops::Range<usize> {
        1..self.nodes.len()
    }

    /// All nodes.
    pub(crate) fn all(&self) -> std::ops::Range<usize> {
        0..self.nodes.len()
    }

    pub(crate) fn on(&mut self, node: usize) -> NodeOperations<'_> {
        let index = self.index(node);
        NodeOperations { node: &mut self.nodes[index], child: None }
    }

    /// The last operation, and its node.
    pub(crate) fn last(&self) -> String {
        let last = self.nodes.iter().filter_map(|node| Some((node.last.as_ref()?, &node.name)));
        let last = last.max_by_key(|((at, _), _)| *at);
        last.map_or_else(String::new, |((_, operation), name)| {
            format!("{} on {name}", operation.describe())
        })
    }

    /// Node 0, for checks of one node.
    pub(crate) fn one(&mut self) -> NodeOperations<'_> {
        self.on(0)
    }

    /// A child of a node's worker.
    pub(crate) fn child(&mut self, node: usize, child: Handle) -> NodeOperations<'_> {
        let index = self.index(node);
        NodeOperations { node: &mut self.nodes[index], child: Some(child) }
    }

    /// A pattern that no other repetition has.
    pub(crate) fn seed(&self) -> u64 {
        self.number * 10_000
    }

    /// One loop on each of the nodes 0, 1, ... at the same time.
    pub(crate) fn together(&mut self, loops: Vec<Loop>) -> Result<Vec<Answer>, Failure> {
        let operations: Vec<_> = loops.into_iter().map(|steps| Operation::Loop { steps }).collect();
        let mut sent = Ok(());
        let mut started = 0;
        for (node, operation) in operations.iter().enumerate() {
            let index = self.index(node);
            sent = self.nodes[index].send(operation);
            if sent.is_err() {
                break;
            }
            started += 1;
        }
        // Each answer is taken, so that the next operation does not get one of these.
        let answers: Vec<_> = (operations.iter().enumerate().take(started))
            .map(|(node, operation)| {
                let index = self.index(node);
                self.nodes[index].receive(operation)
            })
            .collect();
        sent?;
        Ok(answers.into_iter().collect::<Result<_, _>>()?)
    }
}

/// The numbers of an answer.
pub(crate) fn numbers(answer: &Answer) -> Result<&[u64], Failure> {
    match answer {
        Answer::Numbers(numbers) => Ok(numbers),
        other => Err(Failure::Lost(format!("an answer without numbers: {other:?}"))),
    }
}

/// The number of wrong steps that a loop found must be 0.
pub(crate) fn expect_zero(what: &str, answer: &Answer) -> Verdict {
    same(what, answer, &Answer::Number(0))
}

/// Operations on one node.
pub(crate) struct NodeOperations<'a> {
    node: &'a mut Node,
    child: Option<Handle>,
}

pub(crate) type OperationResult<T> = Result<T, OperationError>;

impl NodeOperations<'_> {
    pub(crate) fn call(&mut self, operation: Operation) -> OperationResult<Answer> {
        match self.child {
            None => self.node.call(&operation),
            Some(child) => {
                self.node.call(&Operation::Child { child, operation: Box::new(operation) })
            }
        }
    }

    fn expect_done(&mut self, operation: Operation) -> OperationResult<()> {
        match self.call(operation)? {
            Answer::Done => Ok(()),
            other => Err(self.unexpected_answer(&other)),
        }
    }

    fn expect_number(&mut self, operation: Operation) -> OperationResult<u64> {
        match self.call(operation)? {
            Answer::Number(number) => Ok(number),
            other => Err(self.unexpected_answer(&other)),
        }
    }

    fn expect_bytes(&mut self, operation: Operation) -> OperationResult<Vec<u8>> {
        match self.call(operation)? {
            Answer::Bytes(bytes) => Ok(bytes.0),
            other => Err(self.unexpected_answer(&other)),
        }
    }

    fn expect_names(&mut self, operation: Operation) -> OperationResult<Vec<Bytes>> {
        match self.call(operation)? {
            Answer::Names(names) => Ok(names),
            other => Err(self.unexpected_answer(&other)),
        }
    }

    fn expect_attributes(&mut self, operation: Operation) -> OperationResult<Attributes> {
        match self.call(operation)? {
            Answer::Attributes(attributes) => Ok(attributes),
            other => Err(self.unexpected_answer(&other)),
        }
    }

    fn unexpected_answer(&self, answer: &Answer) -> OperationError {
        OperationError::Lost(format!("{}: its worker answers {answer:?}", self.node.name))
    }

    /// A read that must give this: [`Operation::Verify`] and its like.
    fn equal(&mut self, operation: Operation) -> Verdict {
        let what = format!("{} on {}", operation.describe(), self.node.name);
        match self.call(operation)? {
            Answer::Done => Ok(()),
            Answer::Number(offset) => {
                broken(format!("{what}: the data differ from byte {offset} on"))
            }
            other => Err(self.unexpected_answer(&other).into()),
        }
    }

    pub(crate) fn open(&mut self, path: &str, flags: &[Flag]) -> OperationResult<Handle> {
        self.open_mode(path, flags, 0o644)
    }

    pub(crate) fn open_mode(
        &mut self,
        path: &str,
        flags: &[Flag],
        mode: u32,
    ) -> OperationResult<Handle> {
        self.expect_number(Operation::Open { path: path.into(), flags: flags.to_vec(), mode })
    }

    pub(crate) fn close(&mut self, handle: Handle) -> OperationResult<()> {
        self.expect_done(Operation::Close { handle })
    }

    pub(crate) fn write(&mut self, handle: Handle, data: impl Into<Data>) -> OperationResult<u64> {
        self.expect_number(Operation::Write { handle, data: data.into() })
    }

    pub(crate) fn write_at(
        &mut self,
        handle: Handle,
        offset: u64,
        data: impl Into<Data>,
    ) -> OperationResult<u64> {
        self.expect_number(Operation::WriteAt { handle, offset, data: data.into() })
    }

    pub(crate) fn read_at(
        &mut self,
        handle: Handle,
        offset: u64,
        bytes: usize,
    ) -> OperationResult<Vec<u8>> {
        self.expect_bytes(Operation::ReadAt { handle, offset, bytes })
    }

    pub(crate) fn verify(&mut self, handle: Handle, offset: u64, data: impl Into<Data>) -> Verdict {
        self.equal(Operation::Verify { handle, offset, data: data.into() })
    }

    pub(crate) fn direct(&mut self, handle: Handle, data: Data) -> Result<(), OperationError> {
        match self.call(Operation::DirectRoundTrip { handle, data })? {
            Answer::Done => Ok(()),
            other => Err(OperationError::Errno {
                errno: format!("{other:?}"),
                on: "direct round trip".to_owned(),
            }),
        }
    }

    pub(crate) fn seek(
        &mut self,
        handle: Handle,
        offset: u64,
        whence: Whence,
    ) -> OperationResult<u64> {
        self.expect_number(Operation::Seek { handle, offset, whence })
    }

    pub(crate) fn sync(&mut self, handle: Handle) -> OperationResult<()> {
        self.expect_done(Operation::Sync { handle })
    }

    pub(crate) fn stat_handle(&mut self, handle: Handle) -> OperationResult<Attributes> {
        self.expect_attributes(Operation::StatHandle { handle })
    }

    pub(crate) fn stat(&mut self, path: &str) -> OperationResult<Attributes> {
        self.expect_attributes(Operation::Stat { path: path.into() })
    }

    pub(crate) fn stat_link(&mut self, path: &str) -> OperationResult<Attributes> {
        self.expect_attributes(Operation::StatLink { path: path.into() })
    }

    pub(crate) fn access(&mut self, path: &str) -> OperationResult<()> {
        self.expect_done(Operation::Access { path: path.into() })
    }

    pub(crate) fn truncate_handle(&mut self, handle: Handle, bytes: u64) -> OperationResult<()> {
        self.expect_done(Operation::TruncateHandle { handle, bytes })
    }

    pub(crate) fn truncate(&mut self, path: &str, bytes: u64) -> OperationResult<()> {
        self.expect_done(Operation::Truncate { path: path.into(), bytes })
    }

    pub(crate) fn rename(&mut self, from: &str, to: &str) -> OperationResult<()> {
        self.rename_with(from, to, Replacement::Replace)
    }

    pub(crate) fn rename_with(
        &mut self,
        from: &str,
        to: &str,
        replacement: Replacement,
    ) -> OperationResult<()> {
        self.expect_done(Operation::Rename { from: from.into(), to: to.into(), replacement })
    }

    pub(crate) fn unlink(&mut self, path: &str) -> OperationResult<()> {
        self.expect_done(Operation::Unlink { path: path.into() })
    }

    pub(crate) fn remove_directory(&mut self, path: &str) -> OperationResult<()> {
        self.expect_done(Operation::RemoveDirectory { path: path.into() })
    }

    pub(crate) fn make_directory(&mut self, path: &str) -> OperationResult<()> {
        self.expect_done(Operation::MakeDirectory { path: path.into(), mode: 0o755 })
    }

    pub(crate) fn link(&mut self, from: &str, to: &str) -> OperationResult<()> {
        self.expect_done(Operation::Link { from: from.into(), to: to.into() })
    }

    pub(crate) fn symlink(&mut self, target: &str, path: &str) -> OperationResult<()> {
        self.expect_done(Operation::Symlink { target: target.into(), path: path.into() })
    }

    pub(crate) fn read_link(&mut self, path: &str) -> OperationResult<Vec<u8>> {
        self.expect_bytes(Operation::ReadLink { path: path.into() })
    }

    /// Sorted.
    pub(crate) fn list(&mut self, path: &str) -> OperationResult<Vec<Bytes>> {
        let mut names = self.expect_names(Operation::List { path: path.into() })?;
        names.sort_unstable();
        Ok(names)
    }

    pub(crate) fn open_directory(&mut self, path: &str) -> OperationResult<Handle> {
        self.expect_number(Operation::OpenDirectory { path: path.into() })
    }

    pub(crate) fn next_names(
        &mut self,
        handle: Handle,
        count: usize,
    ) -> OperationResult<Vec<Bytes>> {
        self.expect_names(Operation::NextNames { handle, count })
    }

    pub(crate) fn change_mode(&mut self, path: &str, mode: u32) -> OperationResult<()> {
        self.expect_done(Operation::ChangeMode { path: path.into(), mode })
    }

    pub(crate) fn change_owner(
        &mut self,
        path: &str,
        user: u32,
        group: u32,
    ) -> OperationResult<()> {
        self.expect_done(Operation::ChangeOwner { path: path.into(), user, group })
    }

    pub(crate) fn set_times(
        &mut self,
        path: &str,
        accessed_ns: i64,
        modified_ns: i64,
    ) -> OperationResult<()> {
        self.expect_done(Operation::SetTimes { path: path.into(), accessed_ns, modified_ns })
    }

    pub(crate) fn set_attribute(
        &mut self,
        path: &str,
        name: &str,
        value: &[u8],
    ) -> OperationResult<()> {
        self.expect_done(Operation::SetAttribute {
            path: path.into(),
            name: name.into(),
            value: value.into(),
        })
    }

    pub(crate) fn get_attribute(&mut self, path: &str, name: &str) -> OperationResult<Vec<u8>> {
        self.expect_bytes(Operation::GetAttribute { path: path.into(), name: name.into() })
    }

    pub(crate) fn list_attributes(&mut self, path: &str) -> OperationResult<Vec<Bytes>> {
        self.expect_names(Operation::ListAttributes { path: path.into() })
    }

    pub(crate) fn remove_attribute(&mut self, path: &str, name: &str) -> OperationResult<()> {
        self.expect_done(Operation::RemoveAttribute { path: path.into(), name: name.into() })
    }

    pub(crate) fn set_mask(&mut self, mask: u32) -> OperationResult<u64> {
        self.expect_number(Operation::SetMask { mask })
    }

    /// Without waiting.
    pub(crate) fn record_lock(
        &mut self,
        handle: Handle,
        lock: Lock,
        offset: u64,
        bytes: u64,
    ) -> OperationResult<()> {
        self.expect_done(Operation::RecordLock { handle, lock, offset, bytes, wait: false })
    }

    pub(crate) fn conflicts(&mut self, handle: Handle, lock: Lock) -> OperationResult<bool> {
        let operation = Operation::RecordLockConflict { handle, lock, offset: 0, bytes: 0 };
        Ok(self.expect_number(operation)? == 1)
    }

    /// Without waiting.
    pub(crate) fn file_lock(&mut self, handle: Handle, lock: Lock) -> OperationResult<()> {
        self.expect_done(Operation::FileLock { handle, lock, wait: false })
    }

    /// Shared and writable, unless told otherwise.
    pub(crate) fn map(
        &mut self,
        handle: Handle,
        bytes: usize,
        shared: bool,
    ) -> Result<Handle, Failure> {
        let mapped = self.expect_number(Operation::Map { handle, bytes, shared, writable: true });
        mapped.or_unsupported(&["ENODEV"])
    }

    pub(crate) fn map_read(
        &mut self,
        handle: Handle,
        offset: usize,
        bytes: usize,
    ) -> OperationResult<Vec<u8>> {
        self.expect_bytes(Operation::MapRead { handle, offset, bytes })
    }

    pub(crate) fn map_write(
        &mut self,
        handle: Handle,
        offset: usize,
        data: impl Into<Data>,
    ) -> OperationResult<()> {
        self.expect_done(Operation::MapWrite { handle, offset, data: data.into() })
    }

    pub(crate) fn map_sync(&mut self, handle: Handle) -> OperationResult<()> {
        self.expect_done(Operation::MapSync { handle })
    }

    pub(crate) fn unmap(&mut self, handle: Handle) -> OperationResult<()> {
        self.expect_done(Operation::Unmap { handle })
    }

    pub(crate) fn fork(&mut self) -> OperationResult<Handle> {
        self.expect_number(Operation::Fork)
    }

    pub(crate) fn kill_child(&mut self, child: Handle) -> OperationResult<()> {
        self.expect_done(Operation::KillChild { child })
    }

    pub(crate) fn write_file(&mut self, path: &str, data: impl Into<Data>) -> OperationResult<()> {
        self.expect_done(Operation::WriteFile { path: path.into(), data: data.into() })
    }

    pub(crate) fn read_file(&mut self, path: &str) -> OperationResult<Vec<u8>> {
        self.expect_bytes(Operation::ReadFile { path: path.into() })
    }

    pub(crate) fn verify_file(&mut self, path: &str, data: impl Into<Data>) -> Verdict {
        self.equal(Operation::VerifyFile { path: path.into(), data: data.into() })
    }

    pub(crate) fn run(&mut self, steps: Loop) -> OperationResult<Answer> {
        self.call(Operation::Loop { steps })
    }
}
