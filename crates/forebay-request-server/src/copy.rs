//! Worker threads that copy files. Their number is limited, and a worker ends when no task waits.
//! Assumes that the caller of `start_workers` does not hold the lock of the state. Where no thread can start, the
//! caller itself copies.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use forebay_host::files::{self, Kind};
use forebay_host::{priority, threads};
use forebay_mover::{
    CopyEvent, Error, FailedWrites, Failure, Journal, Options, Plan, Transfer, TransferKind,
    carry_out,
};

use crate::state::{CopyResult, Shared};
use crate::table::{Copy, Errno, FailedFiles, Task};
use forebay_directive::Direction;

/// The maximum number of reported failures of one directory.
const FAILURES_MAX: usize = 100_000;

/// Starts workers for the waiting tasks, up to the limit.
pub(crate) fn start_workers(this: &Arc<Shared>) {
    let mut state = this.state.lock();
    let mut waiting = state.table.waiting();
    while state.workers < state.workers_max && waiting > 0 {
        waiting -= 1;
        let shared = Arc::clone(this);
        let run = move || {
            // If the kernel refuses, the copies compete with the job for the disk.
            priority::set_idle_io_class().ok();
            worker_loop(&shared);
        };
        if threads::spawn(run).is_err() {
            break; // running workers copy the file
        }
        state.workers += 1;
    }
    if state.workers == 0 && state.table.waiting() > 0 {
        state.workers += 1;
        drop(state);
        worker_loop(this);
    }
}

/// Lowers the I/O priority but not the CPU priority: ranks that wait for the copy may spin on all
/// cores, and a thread of the lowest priority would hardly run.
fn worker_loop(shared: &Shared) {
    loop {
        let mut state = shared.state.lock();
        let task = match state.workers <= state.workers_max {
            true => state.table.take(),
            false => None,
        };
        let Some(task) = task else {
            state.workers -= 1;
            shared.changed.notify_all();
            return;
        };
        drop(state);
        let copied = threads::caught(|| copy(&task, shared)).unwrap_or(Err(Error::Panicked));
        let result = copied.unwrap_or_else(|error| CopyResult {
            failed: failures_by_name(&task.copy, &[Failure::from(error)]),
            ..CopyResult::default()
        });
        shared.finish(&task, result);
    }
}

/// The journal is in memory because the list of requests records what is pending.
fn copy(task: &Task, shared: &Shared) -> Result<CopyResult, Error> {
    let copy = &task.copy;
    let journal = Journal::in_memory()?;
    journal.exclude(&transfer(copy), &copy.left_out_of_source())?;
    let is_out = copy.direction == Direction::Out;
    let failed_writes = match is_out {
        true => shared.write_failures.incomplete_now(),
        false => FailedWrites::default(),
    };
    let plan = Plan::begin(&journal, &|_| true)?.with_failed_writes(failed_writes);
    plan.add(&transfer(copy))?;
    let findings = plan.end()?;
    let mut persistent = shared.persistent.iter();
    let options = Options {
        workers: 1, // requests run in parallel, parts of one do not
        durable: is_out || persistent.any(|one| copy.inner.starts_with(&one.root)),
        past_page_cache: is_out,
        verify: shared.how.verify_without_journal(),
        ..Options::of(&format!("{}-{}", shared.tag, task.serial))
    };
    let is_cancelled = || task.cancelled.load(Ordering::SeqCst);
    let on = |did| match did {
        CopyEvent::File => drop(task.arrived.fetch_add(1, Ordering::Relaxed)),
        CopyEvent::Bytes(bytes) => shared.pause(bytes, is_cancelled),
        CopyEvent::Reread(_) | CopyEvent::Skipped(_) => {}
    };
    let moved = carry_out(&journal, findings, &options, &on, &is_cancelled)?;
    let mut failures = journal.failures(FAILURES_MAX)?;
    failures.extend(moved.incomplete.into_iter().map(|file| Failure {
        errno: Some(libc::EIO),
        ..Failure::new(file.source, "a write of it failed".to_owned())
    }));
    if moved.is_stopped {
        let path = copy.ends().0.to_owned();
        failures
            .push(Failure { errno: Some(libc::ECANCELED), ..Failure::new(path, String::new()) });
    }
    Ok(CopyResult {
        files: moved.files,
        bytes: moved.bytes,
        failed: failures_by_name(copy, &failures),
    })
}

/// The transfer for the mover.
fn transfer(copy: &Copy) -> Transfer {
    let (source, target) = copy.ends();
    Transfer {
        what: match copy.is_directory {
            true => TransferKind::Directory,
            false => TransferKind::FileToName,
        },
        source: source.to_owned(),
        target: target.to_owned(),
    }
}

/// Files in a source directory, by their names in the burst buffer. Includes special files, which
/// cannot be staged, but not links.
pub(crate) fn files_of(tree: &Copy) -> Result<BTreeSet<PathBuf>, Errno> {
    let (source, _) = tree.ends();
    let mut found = BTreeSet::new();
    let mut open = vec![(source.to_owned(), tree.inner.clone())];
    while let Some((from, inner)) = open.pop() {
        for (name, kind) in files::kinds_in(&from).map_err(|error| errno(&error))? {
            let (from, inner) = (from.join(&name), inner.join(&name));
            if tree.left_out.contains(&inner) {
                continue;
            }
            match kind {
                Kind::Directory => open.push((from, inner)),
                Kind::Link => {}
                Kind::File | Kind::Other => drop(found.insert(inner)),
            }
        }
    }
    Ok(found)
}

/// Failures by their names in the burst buffer.
fn failures_by_name(copy: &Copy, failures: &[Failure]) -> FailedFiles {
    let (source, target) = copy.ends();
    let named = |failure: &Failure| {
        let path = &failure.path;
        let rest = path.strip_prefix(source).or(path.strip_prefix(target));
        match rest {
            Ok(rest) if copy.is_directory && rest.file_name().is_some() => copy.inner.join(rest),
            _ => copy.inner.clone(),
        }
    };
    let failed =
        failures.iter().map(|failure| (named(failure), failure.errno.unwrap_or(libc::EIO)));
    failed.collect()
}

pub(crate) fn errno(error: &forebay_host::Error) -> Errno {
    error.source.raw_os_error().unwrap_or(libc::EIO)
}
