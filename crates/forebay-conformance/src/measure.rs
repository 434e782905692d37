//! Measures briefly what several nodes do at the same time: only the order of magnitude counts.
//! Assumes one measurement in a directory at a time: the name of its own directory is fixed.

use std::time::Instant;

use forebay_host::clock;

use crate::bytes::{Bytes, Data};
use crate::node::{Node, OperationError};
use crate::operation::{Answer, Loop, Operation};

/// The files that each node writes and another one reads.
const FILES: u64 = 2;
/// Their size.
const FILE_BYTES: usize = 16 << 20;
/// The names that each node creates and removes.
const NAMES: usize = 200;

/// Rates of all nodes together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// Bytes that each node wrote, and read.
    pub node_bytes: u64,
    /// Each node writes its own files, in bytes per second.
    pub write_bytes_per_s: f64,
    /// Each node reads files of another node, in bytes per second.
    pub read_bytes_per_s: f64,
    /// Empty files created per second.
    pub creates_per_s: f64,
    /// Empty files removed per second.
    pub removes_per_s: f64,
}

/// Measures below `directory`, in a directory of its own that is removed.
///
/// # Errors
/// If an operation fails, or a node reads something that another one did not write.
pub fn measure(nodes: &mut [Node], directory: &[u8]) -> Result<Rates, OperationError> {
    let base = [directory, b"/forebay-rates"].concat();
    let Some(first) = nodes.first_mut() else {
        return Err(OperationError::Lost("no node".to_owned()));
    };
    first.call(&Operation::MakeDirectory { path: Bytes(base.clone()), mode: 0o755 })?;
    let rates = measure_in(nodes, &base);
    let removed = nodes[0].call(&Operation::RemoveTree { path: Bytes(base) });
    let rates = rates?;
    removed.map(|_| rates)
}

fn measure_in(nodes: &mut [Node], base: &[u8]) -> Result<Rates, OperationError> {
    let count = nodes.len();
    let path =
        |node: usize, file: u64| Bytes([base, format!("/data-{node}-{file}").as_bytes()].concat());
    let data = |node: usize, file: u64| Data::pattern(FILES * node as u64 + file, FILE_BYTES);
    let (mut write_s, mut read_s) = (0.0, 0.0);
    for file in 0..FILES {
        write_s += together(nodes, |node| Operation::WriteFile {
            path: path(node, file),
            data: data(node, file),
        })?;
    }
    for file in 0..FILES {
        read_s += together(nodes, |node| {
            let writer = (node + 1) % count;
            Operation::VerifyFile { path: path(writer, file), data: data(writer, file) }
        })?;
    }
    let prefix = |node: usize| Bytes([base, format!("/name-{node}-").as_bytes()].concat());
    let create = |node| Loop::Create { prefix: prefix(node), count: NAMES };
    let remove = |node| Loop::Remove { prefix: prefix(node), count: NAMES };
    let create_s = together(nodes, |node| Operation::Loop { steps: create(node) })?;
    let remove_s = together(nodes, |node| Operation::Loop { steps: remove(node) })?;
    let node_bytes = FILES * FILE_BYTES as u64;
    let (bytes, names) = ((node_bytes * count as u64) as f64, (NAMES * count) as f64);
    Ok(Rates {
        node_bytes,
        write_bytes_per_s: bytes / write_s,
        read_bytes_per_s: bytes / read_s,
        creates_per_s: names / create_s,
        removes_per_s: names / remove_s,
    })
}

/// All nodes carry out an operation at the same time. Returns the seconds until the last has answered.
fn together(
    nodes: &mut [Node],
    operation: impl Fn(usize) -> Operation,
) -> Result<f64, OperationError> {
    let operations: Vec<_> = (0..nodes.len()).map(operation).collect();
    let began: Instant = clock::now();
    for (node, operation) in nodes.iter_mut().zip(&operations) {
        node.send(operation)?;
    }
    for (node, operation) in nodes.iter_mut().zip(&operations) {
        if let Answer::Number(offset) = node.receive(operation)? {
            let what = format!("{}: {} differs at byte {offset}", node.name, operation.describe());
            return Err(OperationError::Lost(what));
        }
    }
    Ok(began.elapsed().as_secs_f64())
}
