//! Workers that hang, end or talk nonsense: the run goes on or ends, and never waits for ever.

#![allow(clippy::expect_used)] // a test fails by panicking

mod support;

use forebay_conformance::{Error, Node, Operation, Options, Outcome, Reply, Report, run};
use support::{honest, is_broken, names, node};

fn hangs_at(is_place: fn(&Operation) -> bool) -> Node {
    node("n0", move || {
        Box::new(move |worker, operation| {
            while is_place(operation) {
                // SAFETY: waits until the process is killed.
                unsafe { libc::pause() };
            }
            worker.answer(operation)
        })
    })
}

fn run_with(mut nodes: Vec<Node>, only: &[&str]) -> Report {
    // In memory no operation waits for a disk.
    let scratch = tempfile::tempdir_in("/dev/shm").expect("tempdir");
    let only = only.iter().map(|name| (*name).to_owned()).collect();
    let options = Options { repetitions: 2, only, operation_s_max: 4.0 };
    let directory = scratch.path().to_str().expect("path").as_bytes();
    run(&mut nodes, directory, &options, &mut |_| true).expect("run")
}

#[test]
fn hanging_operation_ends_its_check_and_the_others_go_on() {
    let node = hangs_at(|operation| matches!(operation, Operation::RemoveDirectory { .. }));
    let report =
        run_with(vec![node], &["remove_directory", "remove_file_as_directory", "list_complete"]);
    let outcomes: Vec<_> = report.checks.iter().map(|check| check.outcome.to_string()).collect();
    assert_eq!(outcomes, ["no answer within 4 s", "no answer within 4 s", "kept"]);
    assert_eq!(report.checks[0].reason(), Some("remove directory d on n0"));
    assert!(!report.is_good());
}

#[test]
fn after_three_checks_without_answer_the_rest_is_not_run() {
    let node = hangs_at(|operation| matches!(operation, Operation::WriteFile { .. }));
    let report = run_with(vec![node], &[]);
    let unanswered = names(&report, |outcome| matches!(outcome, Outcome::NoAnswer { .. }));
    assert_eq!(unanswered.len(), 3);
    assert!(names(&report, |outcome| *outcome == Outcome::NotRun).len() > 50);
    assert!(report.summary().contains("3 without answer"), "{}", report.summary());
}

#[test]
fn worker_that_ends_is_lost_and_started_again() {
    let dies = node("n1", || {
        Box::new(|worker, operation| match operation {
            // SAFETY: ends the worker as a crash of its node would.
            Operation::Fork => unsafe { libc::_exit(3) },
            _ => worker.answer(operation),
        })
    });
    let report =
        run_with(vec![honest("n0"), dies], &["record_lock_death_across", "read_after_write"]);
    let outcomes: Vec<_> = report.checks.iter().map(|check| check.outcome.to_string()).collect();
    assert_eq!(outcomes, ["kept", "worker lost"]);
    let kept = run_with(vec![honest("n0"), honest("n1")], &["record_lock_death_across"]);
    assert!(names(&kept, is_broken).is_empty() && kept.is_good());
}

#[test]
fn what_is_no_worker_is_named_before_any_check() {
    let refuse = |node: Node| {
        let options = Options { operation_s_max: 2.0, ..Options::default() };
        run(&mut vec![node], b"/tmp", &options, &mut |_| true).expect_err("refused").to_string()
    };
    let error = refuse(Node::of_command("echo hello").expect("command"));
    // It may have ended before it is asked.
    let writes = "this is no worker: it writes \"hello __conformance worker\"";
    assert!(error.contains(writes) || error.contains("its worker has ended"), "{error}");
    let error = refuse(Node::of_command("false").expect("command"));
    assert!(error.contains("its worker has ended"), "{error}");
    let error = refuse(Node::of_command("/no/such").expect("command"));
    assert!(error.contains("cannot run /no/such"), "{error}");
    let error = refuse(Node::of_command("sh -c 'exec sleep 100'").expect("command"));
    assert!(error.contains("hello has no answer"), "{error}");
    assert!(Node::of_command("ssh 'n1").is_err() && Node::of_command(" ").is_err());
}

#[test]
fn another_version_is_refused() {
    let old = node("n0", || {
        Box::new(|_, _| {
            let (version, host) = ("0.0.1".to_owned(), "n0".to_owned());
            Reply::Answer(forebay_conformance::Answer::Facts { version, host, pid: 1, user: 0 })
        })
    });
    let error =
        run(&mut vec![old], b"/tmp", &Options::default(), &mut |_| true).expect_err("refused");
    assert!(matches!(&error, Error::Version { version, .. } if version == "0.0.1"), "{error}");
    assert!(error.hint().contains("same version"));
}
