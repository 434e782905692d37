//! Each check must be able to fail: a worker that leaves out one operation or falsifies one answer breaks it.

#![allow(clippy::expect_used)] // a test fails by panicking

mod support;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use forebay_conformance::{
    Answer, Attributes, Bytes, Kind, Loop, Operation, Reply, Scope, Worker, checks,
};
use support::{Fault, is_broken, names, node, report};

/// How a worker lies.
#[derive(Debug, Clone, Copy)]
enum Lie {
    /// It leaves the operation out and says that it is done.
    LeftOut,
    /// It says that an operation that failed is done.
    Pretended,
    /// It carries the operation out, and answers with something else.
    Falsified,
}

/// The operation of a node at which it lies, counted from the start of the check.
#[derive(Clone, Copy)]
struct FaultPoint {
    node: usize,
    operation: u64,
    lie: Lie,
}

impl fmt::Debug for FaultPoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "node {}, operation {}, {:?}", self.node, self.operation, self.lie)
    }
}

/// The answer of an operation that was left out; none for those that only read or give a handle.
fn left_out(operation: &Operation) -> Option<Answer> {
    match operation {
        Operation::Write { data, .. } | Operation::WriteAt { data, .. } => {
            Some(Answer::Number(data.contents().len() as u64))
        }
        Operation::CopyRange { bytes, .. } => Some(Answer::Number(*bytes as u64)),
        Operation::Child { operation, .. } => left_out(operation),
        Operation::Loop {
            steps: Loop::CreateExclusive { .. } | Loop::CreateShared { .. } | Loop::RenameOwn { .. },
        }
        | Operation::Open { .. }
        | Operation::OpenDirectory { .. }
        | Operation::Fork
        | Operation::Map { .. }
        | Operation::Seek { .. }
        | Operation::SetMask { .. } => None,
        _ => Some(Answer::Done),
    }
}

/// The answer that a failed operation would have given.
fn pretended(operation: &Operation) -> Answer {
    match operation {
        Operation::Open { .. }
        | Operation::OpenDirectory { .. }
        | Operation::Map { .. }
        | Operation::Seek { .. } => Answer::Number(1),
        Operation::Write { .. } | Operation::WriteAt { .. } => Answer::Number(1),
        Operation::Stat { .. } | Operation::StatLink { .. } | Operation::StatHandle { .. } => {
            Answer::Attributes(Attributes {
                kind: Kind::File,
                mode: 0o644,
                size_bytes: 0,
                allocated_bytes: 0,
                links: 1,
                inode: 1,
                user: 0,
                group: 0,
                accessed_ns: 0,
                modified_ns: 0,
                changed_ns: 0,
            })
        }
        Operation::ReadAt { .. }
        | Operation::ReadFile { .. }
        | Operation::ReadLink { .. }
        | Operation::GetAttribute { .. } => Answer::Bytes(Bytes::default()),
        Operation::List { .. } => Answer::Names(Vec::new()),
        Operation::Child { operation, .. } => pretended(operation),
        _ => Answer::Done,
    }
}

fn falsified(answer: Answer) -> Answer {
    match answer {
        Answer::Bytes(mut bytes) => {
            match bytes.0.last_mut() {
                Some(last) => *last ^= 1,
                None => bytes.0.push(0),
            }
            Answer::Bytes(bytes)
        }
        Answer::Names(mut names) => {
            names.pop();
            Answer::Names(names)
        }
        Answer::Attributes(mut attributes) => {
            attributes.mode ^= 1;
            attributes.size_bytes += 1;
            attributes.links += 1;
            attributes.inode += 1;
            attributes.user += 1;
            attributes.modified_ns = 0;
            attributes.changed_ns = 0;
            attributes.allocated_bytes += 1 << 29;
            Answer::Attributes(attributes)
        }
        Answer::Number(number) => Answer::Number(number + 1),
        Answer::Numbers(mut numbers) => {
            if numbers.pop().is_none() {
                numbers.push(0);
            }
            Answer::Numbers(numbers)
        }
        Answer::FileSystem { capacity_bytes, name_bytes_max, .. } => {
            Answer::FileSystem { capacity_bytes, free_bytes: capacity_bytes + 1, name_bytes_max }
        }
        other => other,
    }
}

/// A worker that lies once in its first trial, and the number of operations that it saw in it.
fn liar(place: FaultPoint, seen: &Arc<Seen>) -> Fault {
    let (mut count, mut trials) = (0, 0);
    let seen = Arc::clone(seen);
    Box::new(move |worker: &mut Worker, operation: &Operation| {
        if matches!(operation, Operation::Begin { .. }) {
            trials += 1;
        }
        if trials != 1 || matches!(operation, Operation::Begin { .. }) {
            return worker.answer(operation);
        }
        count += 1;
        seen.note(place.node, count);
        if count != place.operation {
            return worker.answer(operation);
        }
        if let (Lie::LeftOut, Some(answer)) = (place.lie, left_out(operation)) {
            return Reply::Answer(answer);
        }
        match (place.lie, worker.answer(operation)) {
            (Lie::Pretended, Reply::Errno(_)) => Reply::Answer(pretended(operation)),
            (Lie::Falsified, Reply::Answer(answer)) => Reply::Answer(falsified(answer)),
            (_, honest) => honest,
        }
    })
}

/// Numbers in memory that the workers share with the test.
struct Seen(*mut AtomicU64);

// SAFETY: a mapping of atomic numbers that is never removed.
unsafe impl Send for Seen {}
// SAFETY: as above.
unsafe impl Sync for Seen {}

impl Seen {
    fn new() -> Self {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        // SAFETY: new memory, filled with zeros.
        let memory = unsafe { libc::mmap(std::ptr::null_mut(), 4096, access, flags, -1, 0) };
        assert_ne!(memory, libc::MAP_FAILED);
        Self(memory.cast())
    }

    fn at(&self, node: usize) -> &AtomicU64 {
        assert!(node < 2);
        // SAFETY: within the mapping, which lives as long as the process.
        unsafe { &*self.0.add(node) }
    }

    fn note(&self, node: usize, count: u64) {
        self.at(node).fetch_max(count, Ordering::Relaxed);
    }

    fn operations(&self, node: usize) -> u64 {
        self.at(node).load(Ordering::Relaxed)
    }
}

/// In memory, as there are thousands of lies. Before Linux 6.6, tmpfs has no attributes and no direct I/O.
fn scratch_of(check: &str) -> tempfile::TempDir {
    let needs_disk = check.contains("attribute") || check == "direct";
    if needs_disk { tempfile::tempdir() } else { tempfile::tempdir_in("/dev/shm") }
        .expect("tempdir")
}

/// Whether a lie at this place breaks the check.
fn breaks(check: &str, nodes: usize, place: FaultPoint, seen: &Arc<Seen>) -> bool {
    let scratch = scratch_of(check);
    let start = |number: usize| {
        let seen = Arc::clone(seen);
        let place = if number == place.node {
            place
        } else {
            FaultPoint { node: number, operation: 0, ..place }
        };
        node(&format!("n{number}"), move || liar(place, &seen))
    };
    let report = report((0..nodes).map(start).collect(), scratch.path(), 1, &[check]);
    names(&report, is_broken) == [check]
}

fn has_breaking_lie(check: &str, nodes: usize) -> bool {
    let seen = Arc::new(Seen::new());
    // The later operations look at what the earlier ones did, so most lies are found there.
    breaks(check, nodes, FaultPoint { node: 0, operation: 0, lie: Lie::Falsified }, &seen);
    (0..nodes).rev().any(|node| {
        (1..=seen.operations(node)).rev().take(40).any(|operation| {
            let lies = [Lie::Pretended, Lie::LeftOut, Lie::Falsified];
            lies.into_iter()
                .any(|lie| breaks(check, nodes, FaultPoint { node, operation, lie }, &seen))
        })
    })
}

#[test]
fn every_check_of_one_node_can_fail() {
    let unbreakable = checks(Scope::OneNode).filter(|check| !has_breaking_lie(check.name, 1));
    let unbreakable: Vec<_> = unbreakable.map(|check| check.name).collect();
    assert_eq!(unbreakable, [""; 0]);
}

#[test]
fn every_check_across_nodes_can_fail() {
    let unbreakable = checks(Scope::AcrossNodes).filter(|check| !has_breaking_lie(check.name, 2));
    let unbreakable: Vec<_> = unbreakable.map(|check| check.name).collect();
    assert_eq!(unbreakable, [""; 0]);
}
