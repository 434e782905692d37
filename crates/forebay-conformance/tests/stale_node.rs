//! A node that answers from a cache must break the checks across nodes.

#![allow(clippy::expect_used)] // a test fails by panicking

mod support;

use std::collections::HashMap;

use forebay_conformance::{Answer, Bytes, Data, Operation, Reply, Worker};
use support::{Fault, honest, is_broken, names, node, report};

/// What the cache keys on: the operation without the data that it expects.
fn reading(operation: &Operation) -> Option<Operation> {
    match operation {
        Operation::Stat { .. }
        | Operation::StatLink { .. }
        | Operation::StatHandle { .. }
        | Operation::Access { .. }
        | Operation::ReadLink { .. }
        | Operation::List { .. }
        | Operation::GetAttribute { .. }
        | Operation::ReadFile { .. }
        | Operation::ReadAt { .. } => Some(operation.clone()),
        Operation::VerifyFile { path, .. } => Some(Operation::ReadFile { path: path.clone() }),
        Operation::Verify { handle, offset, data } => Some(Operation::ReadAt {
            handle: *handle,
            offset: *offset,
            bytes: data.contents().len(),
        }),
        _ => None,
    }
}

fn verified(reply: Reply, data: &Data) -> Reply {
    match reply {
        Reply::Answer(Answer::Bytes(Bytes(read))) if read == data.contents() => {
            Reply::Answer(Answer::Done)
        }
        Reply::Answer(Answer::Bytes(_)) => Reply::Answer(Answer::Number(0)),
        other => other,
    }
}

/// Answers each question as it did for the first time.
fn stale() -> Fault {
    let mut cache: HashMap<String, Reply> = HashMap::new();
    Box::new(move |worker: &mut Worker, operation: &Operation| {
        if matches!(operation, Operation::Begin { .. }) {
            cache.clear();
        }
        let Some(question) = reading(operation) else { return worker.answer(operation) };
        let key = format!("{question:?}");
        let reply = cache.entry(key).or_insert_with(|| worker.answer(&question)).clone();
        match operation {
            Operation::VerifyFile { data, .. } | Operation::Verify { data, .. } => {
                verified(reply, data)
            }
            _ => reply,
        }
    })
}

#[test]
fn stale_node_breaks_what_it_caches() {
    let scratch = tempfile::tempdir().expect("tempdir");
    // In the first repetition node 0 acts and node 1 looks.
    let report = report(vec![honest("n0"), node("n1", stale)], scratch.path(), 1, &[]);
    let broken = names(&report, is_broken);
    let expected = [
        "overwritten",
        "overwritten_while_open",
        "overwritten_within_page",
        "overwritten_same_size",
        "written_hole",
        "extended",
        "extended_while_open",
        "truncated",
        "truncated_and_extended",
        "mode",
        "mode_while_open",
        "mode_of_directory",
        "times",
        "time_of_write",
        "links",
        "extended_attribute",
        "negative_lookup",
        "negative_lookup_of_rename",
        "unlinked",
        "recreated",
        "renamed",
        "renamed_over",
        "kind_changed",
        "symlink_changed",
        "listed",
        "renamed_directory",
        "mapped_write",
    ];
    let of_root = forebay_host::users::is_root().then_some("owner"); // only root gives files away
    let missed: Vec<_> =
        expected.into_iter().chain(of_root).filter(|name| !broken.contains(name)).collect();
    assert!(missed.is_empty(), "not broken: {missed:?}\nbroken: {broken:?}");
    assert!(!report.is_good());
    let kept = report.checks.iter().filter(|check| check.is_good()).count();
    assert!(kept > 100, "a fault of reading must not break everything: {broken:?}");
}
