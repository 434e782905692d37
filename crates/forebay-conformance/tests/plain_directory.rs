//! On a plain directory every check is kept, or not supported for a reason.

#![allow(clippy::expect_used)] // a test fails by panicking

mod support;

use forebay_conformance::{Error, Options, Outcome, run};
use support::{honest, report};

fn check_plain_directory(workers: usize, kept_min: usize) {
    let scratch = tempfile::tempdir().expect("tempdir");
    let nodes = (0..workers).map(|number| honest(&format!("n{number}"))).collect();
    let report = report(nodes, scratch.path(), 2, &[]);
    let bad: Vec<_> = report.checks.iter().filter(|check| !check.is_good()).collect();
    assert!(bad.is_empty(), "{workers} workers: {bad:#?}");
    assert!(report.is_good() && report.nodes.len() == workers && report.left.is_none());
    let kept = report.checks.iter().filter(|check| check.outcome == Outcome::Kept).count();
    assert!(kept >= kept_min, "only {kept} kept");
    assert!(report.summary().starts_with(&format!("{kept} kept")), "{}", report.summary());
    assert_eq!(scratch.path().read_dir().expect("list").count(), 0, "something is left");
}

#[test]
fn plain_directory_keeps_every_promise_with_one_worker() {
    check_plain_directory(1, 100);
}

#[test]
fn plain_directory_keeps_every_promise_with_two_workers() {
    check_plain_directory(2, 150);
}

#[test]
fn plain_directory_keeps_every_promise_with_four_workers() {
    check_plain_directory(4, 150);
}

#[test]
fn run_refuses_what_it_cannot_check() {
    let scratch = tempfile::tempdir().expect("tempdir");
    let directory = scratch.path().to_str().expect("path").as_bytes();
    let refused = |mut nodes, directory: &[u8], only: &[&str]| {
        let only = only.iter().map(|name| (*name).to_owned()).collect();
        let options = Options { only, ..Options::default() };
        run(&mut nodes, directory, &options, &mut |_| true).expect_err("refused")
    };
    assert_eq!(refused(Vec::new(), directory, &[]), Error::NoNode);
    let nobody = refused(vec![honest("n0")], directory, &["read_after_write"]);
    assert_eq!(nobody, Error::NoCheck("read_after_write".to_owned()));
    let relative = refused(vec![honest("n0")], b"here", &[]);
    assert!(matches!(relative, Error::Directory { .. }), "{relative}");
    let missing = refused(vec![honest("n0")], b"/no/such", &[]);
    assert!(missing.to_string().contains("ENOENT"), "{missing}");
}
