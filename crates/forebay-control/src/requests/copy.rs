//! The copies themselves: worker threads, at most so many at a time, that end when there is nothing to do.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use forebay_host::files::{self, Kind};
use forebay_mover::{Failure, Options, Plan, Transfer, What, carry_out};

use super::Shared;
use super::book::{Copy, Errno, Found, Task, Tree};
use crate::Direction;

/// A file larger than this is copied in pieces, so that a cancelled one ends soon.
const PIECE_BYTES: u64 = 64 << 20;

/// Starts workers for what waits, as far as there may be more of them.
pub(super) fn start_workers(shared: &Arc<Shared>) {
    let mut state = shared.state();
    let mut waiting = state.book.waiting();
    while state.workers < state.workers_max && waiting > 0 {
        waiting -= 1;
        state.workers += 1;
        let shared = Arc::clone(shared);
        std::thread::spawn(move || work(&shared));
    }
}

fn work(shared: &Shared) {
    loop {
        let mut state = shared.state();
        let task = match state.workers <= state.workers_max {
            true => state.book.take(),
            false => None,
        };
        let Some(task) = task else {
            state.workers -= 1;
            shared.changed.notify_all();
            return;
        };
        drop(state);
        let became = copy(&task, &shared.tag);
        let last_of = shared.state().book.copied(&task);
        let finished = last_of.map(|tree| (finish(&tree, &shared.tag).err(), tree));
        shared.ended(&task, became, finished);
    }
}

/// Copies one file; returns its bytes.
fn copy(task: &Task, tag: &str) -> Result<u64, Errno> {
    let mut plan = Plan::default();
    let added = plan.add(&transfer(&task.copy, What::File));
    added.map_err(|error| errno_of(&error.to_string()))?;
    let is_cancelled = || task.cancelled.load(Ordering::SeqCst);
    let tag = format!("{tag}-{}", task.serial);
    let moved = carry_out(&plan, &options(&task.copy, &tag), &|_| (), &is_cancelled);
    failed(&moved.failures).map(|()| moved.bytes)
}

/// What is left of a directory once its files are copied: empty directories and links, then modes and times
/// of the directories that were made for it.
pub(super) fn finish(tree: &Tree, tag: &str) -> Result<(), Errno> {
    let mut plan = Plan::default();
    let added = plan.add(&transfer(&tree.copy, What::Directory));
    added.map_err(|error| errno_of(&error.to_string()))?;
    plan.failures.clear(); // told file by file already
    let (source, target) = ends(&tree.copy);
    plan.keep_only(|place| {
        let from = place.strip_prefix(target).map(|rest| source.join(rest));
        let status = from.ok().and_then(|from| files::status_of_name(&from).ok());
        status.is_some_and(|status| matches!(status.kind, Kind::Directory | Kind::Link))
    });
    let moved = carry_out(&plan, &options(&tree.copy, tag), &|_| (), &|| false);
    failed(&moved.failures)?;
    for (source, made) in tree.made.iter().rev() {
        let set = files::status(source).and_then(|status| {
            files::set_mode(made, status.mode)?;
            files::set_times(made, &status)
        });
        set.map_err(|error| error.source.raw_os_error().unwrap_or(libc::EIO))?;
    }
    Ok(())
}

/// Looks through a directory that is to be copied.
pub(super) fn look_through(tree: &Copy) -> Result<Found, Errno> {
    let (source, target) = ends(tree);
    let mut found = Found::default();
    let mut open = vec![(source.to_owned(), target.to_owned())];
    while let Some((from, to)) = open.pop() {
        for name in files::names_in(&from).map_err(errno)? {
            let (from, to) = (from.join(&name), to.join(&name));
            let (inner, outer) = match tree.direction {
                Direction::In => (to.clone(), from.clone()),
                Direction::Out => (from.clone(), to.clone()),
            };
            let copy = Copy {
                direction: tree.direction,
                inner,
                outer,
            };
            match files::status_of_name(&from).map_err(errno)?.kind {
                Kind::File => found.files.push(copy),
                Kind::Link => {}
                Kind::Other => found.refused.push((copy, libc::EINVAL)),
                Kind::Directory => {
                    if files::status_of_name(&to).is_err() {
                        found.made.push((from.clone(), to.clone()));
                    }
                    open.push((from, to));
                }
            }
        }
    }
    Ok(found)
}

fn ends(copy: &Copy) -> (&std::path::Path, &std::path::Path) {
    match copy.direction {
        Direction::In => (&copy.outer, &copy.inner),
        Direction::Out => (&copy.inner, &copy.outer),
    }
}

fn transfer(copy: &Copy, what: What) -> Transfer {
    let (source, target) = ends(copy);
    Transfer {
        what,
        source: source.to_owned(),
        target: target.to_owned(),
    }
}

fn options(copy: &Copy, tag: &str) -> Options {
    Options {
        workers: 1, // files are copied side by side, not the pieces of one
        piece_bytes: PIECE_BYTES,
        durable: copy.direction == Direction::Out,
        tag: tag.to_owned(),
    }
}

fn failed(failures: &[Failure]) -> Result<(), Errno> {
    match failures.first() {
        None => Ok(()),
        Some(failure) => Err(errno_of(&failure.reason)),
    }
}

/// The system's own number stands at the end of its message; the rest is the mover's judgement.
fn errno_of(reason: &str) -> Errno {
    let number = reason.rsplit_once("(os error ");
    let number = number.and_then(|(_, rest)| rest.strip_suffix(')')?.parse().ok());
    number.unwrap_or_else(|| match reason {
        _ if reason.ends_with("does not exist") => libc::ENOENT,
        _ if reason.ends_with("while it was copied") => libc::EAGAIN,
        _ => libc::EIO,
    })
}

pub(super) fn errno(error: forebay_host::Error) -> Errno {
    error.source.raw_os_error().unwrap_or(libc::EIO)
}
