//! Checks what a file system promises on one node and across nodes.
//!
//! A *worker* per node ([`serve`]) carries out system calls that it reads from its input, one line of JSON each.
//! The *coordinator* ([`run`]) asks the workers of all nodes, and compares what they see. It needs nothing but a
//! reader and a writer per node ([`Node`]), so any transport will do.
//!
//! Each operation has a time limit, since a file system whose server is gone may never answer. The workers test
//! the file system itself, so the module `worker` makes system calls directly, and does not use `forebay-host`.

mod bytes;
mod check;
mod checks;
mod measure;
mod node;
mod operation;
mod report;
mod run;
mod trial;
mod worker;

pub use bytes::{Bytes, Data};
pub use check::{Check, Scope};
pub use checks::checks;
pub use measure::{Rates, measure};
pub use node::{Connect, Connection, Node, OperationError};
pub use operation::{
    Answer, Attributes, Flag, Handle, Kind, Lock, LockKind, Loop, Operation, Replacement, Reply,
    Whence,
};
pub use report::{CheckResult, NodeFacts, Outcome, Report};
pub use run::{Error, Options, run};
pub use worker::{Worker, serve, serve_with};
