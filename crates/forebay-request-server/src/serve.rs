//! Checks and records what a program requests, and answers at once. Never copies.
//! Assumes that a program can vanish at any time. Never waits: a question that takes long is answered later.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use forebay_host::files::{self, Kind};
use forebay_host::socket::{Channel, Listener};
use forebay_host::{clock, filesystem, threads};
use forebay_requests::{Action, Answer, Counts, Name, Question, Shape, receive_question};

use crate::accounting::{Accounting, Fragment};
use crate::copy::{errno, files_of, start_workers};
use crate::state::{Shared, State, number_of};
use crate::table::{Copy, Errno};
use crate::waiting::Awaited;
use forebay_directive::Direction;
use forebay_record::{PendingStageOut, Selection};

/// The maximum number of files copied at the same time.
const WORKERS_MAX: u32 = 64;
/// A program that connects sends its question within this time.
const QUESTION_TIMEOUT: Duration = Duration::from_secs(5);
/// The pause between attempts to accept without free descriptors.
const RETRY_PAUSE: Duration = Duration::from_millis(10);
/// Any size works with a single server; this one is a common default of file systems.
const STRIPE_BYTES: u64 = 1 << 20;

/// Answers until the listener is closed.
pub(crate) fn answer(shared: &Arc<Shared>, listener: &Listener) {
    loop {
        match listener.accept(QUESTION_TIMEOUT) {
            Ok(None) => return,
            // After a panic the program is refused: its connection is closed.
            Ok(Some(channel)) => drop(threads::caught(|| answer_one(shared, channel))),
            Err(_) => {
                shared.forget_closed();
                clock::sleep(RETRY_PAUSE);
            }
        }
    }
}

/// Answers one question, or keeps its connection until the answer is known.
fn answer_one(shared: &Arc<Shared>, mut channel: Channel) {
    let Ok(question) = receive_question(&mut channel) else {
        return; // the program ended while it sent
    };
    match question {
        Question::About { action: action @ (Action::Wait | Action::Terminate), shape, inner } => {
            match shared.awaited(action, shape, inner) {
                Ok(awaited) => shared.answer_later(channel, awaited),
                Err(number) => {
                    drop(forebay_requests::answer(&mut channel, &Answer::Refused(number)))
                }
            }
        }
        question => reply(shared, &mut channel, question),
    }
}

fn reply(shared: &Arc<Shared>, channel: &mut Channel, question: Question) {
    let answer = shared.handle(question).unwrap_or_else(Answer::Refused);
    // The program may have ended; its request stays valid.
    forebay_requests::answer(channel, &answer).ok();
}

impl Shared {
    fn handle(self: &Arc<Self>, question: Question) -> Result<Answer, Errno> {
        match question {
            Question::StageIn { shape, inner, outer } => self.stage_in(shape, inner, outer)?,
            Question::StageOut { shape, at_job_end, inner, outer } => {
                self.stage_out(shape, at_job_end, inner, outer)?
            }
            Question::About { action, shape, inner } => return self.about(action, shape, inner),
            Question::Failures(below) => return self.failures(below),
            Question::Concurrency(instance, most) => {
                self.resolve_existing(instance)?;
                if !(1..=WORKERS_MAX).contains(&most) {
                    return Err(libc::EINVAL);
                }
                self.state.lock().workers_max = most as usize;
                start_workers(self);
            }
            Question::Accounting(instance) => {
                self.resolve_existing(instance)?;
                return Ok(Answer::Accounting(self.accounting()));
            }
            Question::Layout(name) => {
                let status =
                    files::status(&self.resolve_inner(name)?).map_err(|error| errno(&error))?;
                let is_empty = status.kind == Kind::File && status.size_bytes == 0;
                return Ok(Answer::Layout {
                    stripe_bytes: STRIPE_BYTES,
                    may_be_set: is_empty || status.kind == Kind::Directory,
                });
            }
        }
        Ok(Answer::Done)
    }

    /// Resolves links in the path. Paths outside the striped namespaces are an error.
    fn resolve_inner(&self, name: Name) -> Result<PathBuf, Errno> {
        let path = PathBuf::from(name);
        let real = files::final_path(&path).map_err(|error| errno(&error))?;
        if real.components().any(|part| part == Component::ParentDir) {
            return Err(libc::ENOENT); // below a missing directory
        }
        let persistent = self.persistent.iter().map(|one| &one.root);
        let mut roots = persistent.chain(&self.root);
        match roots.any(|root| real.starts_with(root)) {
            true => Ok(real),
            false => Err(libc::EINVAL),
        }
    }

    /// As [`Shared::resolve_inner`]. The path must exist.
    fn resolve_existing(&self, name: Name) -> Result<PathBuf, Errno> {
        let path = self.resolve_inner(name)?;
        files::status(&path).map_err(|error| errno(&error))?;
        Ok(path)
    }

    /// Checks a path on the file system. Paths inside the allocation are an error.
    fn resolve_outer(&self, name: Name) -> Result<PathBuf, Errno> {
        let path = PathBuf::from(name);
        let real = files::nearest_real_path(&path).map_err(|error| errno(&error))?;
        match self.allocation.as_ref().is_some_and(|own| real.starts_with(own)) {
            true => Err(libc::EINVAL),
            false => Ok(path),
        }
    }

    /// Refuses to stage a persistent namespace into itself: the tree would be copied into itself.
    fn check_not_same_tree(&self, copy: &Copy) -> Result<(), Errno> {
        let mut persistent = self.persistent.iter();
        let Some(one) = persistent.find(|one| copy.inner.starts_with(&one.root)) else {
            return Ok(());
        };
        let outer = files::nearest_real_path(&copy.outer).map_err(|error| errno(&error))?;
        match outer.starts_with(&one.root) {
            true => Err(libc::EINVAL),
            false => Ok(()),
        }
    }

    fn stage_in(
        self: &Arc<Self>,
        shape: Shape,
        inner: Name,
        outer: Vec<Name>,
    ) -> Result<(), Errno> {
        let named = PathBuf::from(inner.clone());
        let inner = self.resolve_inner(inner)?;
        let outer: Result<Vec<_>, _> =
            outer.into_iter().map(|name| self.resolve_outer(name)).collect();
        let copies = match shape {
            Shape::File => {
                refuse_directory(&named)?;
                must_be_directory(inner.parent().ok_or(libc::EISDIR)?)?;
                vec![(inner.clone(), exactly_one(outer?)?)]
            }
            Shape::Directory => {
                must_be_directory(&inner)?;
                let outer = exactly_one(outer?)?;
                must_be_directory(&outer)?;
                return self.stage_tree(copy(Direction::In, inner, outer, true), false);
            }
            Shape::List => {
                must_be_directory(&inner)?;
                let into = |outer: PathBuf| Some((inner.join(outer.file_name()?), outer));
                let copies = outer?.into_iter().map(into).collect::<Option<Vec<_>>>();
                copies.ok_or(libc::EINVAL)?
            }
        };
        for (inner, outer) in &copies {
            must_be_file(outer)?;
            refuse_directory(inner)?;
        }
        let copies =
            copies.into_iter().map(|(inner, outer)| copy(Direction::In, inner, outer, false));
        self.queue(copies.collect(), false)
    }

    fn stage_out(
        self: &Arc<Self>,
        shape: Shape,
        at_job_end: bool,
        inner: Vec<Name>,
        outer: Name,
    ) -> Result<(), Errno> {
        let names: Vec<_> = inner.iter().cloned().map(PathBuf::from).collect();
        let inner: Result<Vec<_>, _> =
            inner.into_iter().map(|name| self.resolve_inner(name)).collect();
        let (inner, outer) = (inner?, self.resolve_outer(outer)?);
        let copies = match shape {
            Shape::File => {
                must_be_directory(outer.parent().ok_or(libc::EISDIR)?)?;
                vec![(exactly_one(inner)?, outer)]
            }
            Shape::Directory => {
                let inner = exactly_one(inner)?;
                must_be_directory(&inner)?;
                must_be_directory(&outer)?;
                return self.stage_tree(copy(Direction::Out, inner, outer, true), at_job_end);
            }
            Shape::List => {
                must_be_directory(&outer)?;
                let into =
                    |(inner, name): (_, &PathBuf)| Some((inner, outer.join(name.file_name()?)));
                let copies = inner.into_iter().zip(&names).map(into).collect::<Option<Vec<_>>>();
                copies.ok_or(libc::EINVAL)?
            }
        };
        for (inner, outer) in &copies {
            must_be_file(inner)?;
            refuse_directory(outer)?;
        }
        let copies =
            copies.into_iter().map(|(inner, outer)| copy(Direction::Out, inner, outer, false));
        self.queue(copies.collect(), at_job_end)
    }

    /// Queues all copies or none.
    fn queue(self: &Arc<Self>, copies: Vec<Copy>, at_job_end: bool) -> Result<(), Errno> {
        let mut names: Vec<_> = copies.iter().map(|copy| &copy.inner).collect();
        names.sort_unstable();
        if names.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(libc::EEXIST); // one request would replace another
        }
        let copies = copies.into_iter().map(|copy| (copy, BTreeSet::new()));
        self.add(copies.collect(), at_job_end)
    }

    fn stage_tree(self: &Arc<Self>, copy: Copy, at_job_end: bool) -> Result<(), Errno> {
        let files = files_of(&copy)?;
        self.add(vec![(copy, files)], at_job_end)
    }

    fn add(
        self: &Arc<Self>,
        copies: Vec<(Copy, BTreeSet<PathBuf>)>,
        at_job_end: bool,
    ) -> Result<(), Errno> {
        let mut writers = BTreeMap::new();
        for (copy, _) in &copies {
            self.check_not_same_tree(copy)?;
            if copy.direction == Direction::Out && !copy.is_directory {
                // If the destination cannot be resolved any more, its copy fails.
                let target = files::final_path(&copy.outer).unwrap_or_else(|_| copy.outer.clone());
                if writers.insert(target, copy.inner.clone()).is_some() {
                    return Err(libc::EEXIST); // one copy would overwrite another
                }
            }
        }
        let mut state = self.state.lock();
        if state.is_closed {
            return Err(libc::ESHUTDOWN);
        }
        let is_busy = copies.iter().any(|(copy, _)| state.is_busy(copy));
        if is_busy || writers.iter().any(|(target, inner)| state.has_other_writer(target, inner)) {
            return Err(libc::EBUSY);
        }
        let out = copies.iter().filter_map(|(copy, _)| copy.as_open());
        let out: Vec<PendingStageOut> = out.collect();
        for one in &self.persistent {
            if out.iter().any(|copy| copy.inner.starts_with(&one.root)) {
                one.stages_out().map_err(|error| errno(&error))?;
            }
        }
        let added = state.open.add(out.into_iter());
        added.map_err(|error| number_of(&error))?;
        for (copy, files) in copies {
            state.table.add(copy, files, at_job_end);
        }
        for (target, inner) in writers {
            state.table.record_writer(target, &inner);
        }
        drop(state);
        start_workers(self);
        Ok(())
    }

    fn about(
        self: &Arc<Self>,
        action: Action,
        shape: Shape,
        inner: Vec<Name>,
    ) -> Result<Answer, Errno> {
        let is_tree = shape == Shape::Directory;
        let inner = self.resolve_all(inner, is_tree)?;
        match action {
            Action::Query => {
                let mut state = self.state.lock();
                let mut sum = Counts::default();
                for path in &inner {
                    sum += state.counts(path, is_tree)?;
                }
                return Ok(Answer::Counts(sum));
            }
            Action::Wait | Action::Terminate => return Err(libc::EINVAL), // answered later
            Action::Revoke => {
                let mut state = self.state.lock();
                for (meant, _) in state.deferred(&inner, is_tree)? {
                    state.exclude(&meant)?;
                    state.table.revoke(&meant);
                }
            }
            Action::Activate => {
                let deferred = self.state.lock().deferred(&inner, is_tree)?;
                let with_files = |(_, copy): &(Selection, Copy)| match copy.is_directory {
                    true => Ok((copy.clone(), files_of(copy)?)),
                    false => Ok((copy.clone(), BTreeSet::new())),
                };
                let copies: Result<_, Errno> = deferred.iter().map(with_files).collect();
                self.add(copies?, false)?;
                let mut state = self.state.lock();
                for (meant, _) in &deferred {
                    if let Selection::Part { .. } = meant {
                        state.exclude(meant)?;
                        state.table.revoke(meant);
                    }
                }
            }
        }
        Ok(Answer::Done)
    }

    /// What a program waits for.
    fn awaited(&self, action: Action, shape: Shape, inner: Vec<Name>) -> Result<Awaited, Errno> {
        let is_tree = shape == Shape::Directory;
        let inner = self.resolve_all(inner, is_tree)?;
        if action == Action::Terminate {
            return Ok(Awaited::Terminate(self.select(&inner, is_tree)?));
        }
        let mut state = self.state.lock();
        for path in &inner {
            state.counts(path, is_tree)?;
        }
        Ok(Awaited::End(inner, is_tree))
    }

    /// The paths of these names, each of the right kind.
    fn resolve_all(&self, names: Vec<Name>, is_tree: bool) -> Result<Vec<PathBuf>, Errno> {
        let checked = names.into_iter().map(|name| {
            let path = self.resolve_known(name, is_tree)?;
            self.check_kind(&path, is_tree)?;
            Ok(path)
        });
        checked.collect()
    }

    /// The selection of these names. Each must have been requested.
    fn select(&self, inner: &[PathBuf], is_tree: bool) -> Result<Vec<Selection>, Errno> {
        let mut state = self.state.lock();
        let mut all = Vec::new();
        for path in inner {
            let meant = state.table.select(path, is_tree);
            if meant.is_empty() {
                state.counts(path, is_tree)?; // a missing file is a different error
                return Err(libc::EINVAL);
            }
            all.extend(meant);
        }
        Ok(all)
    }

    /// Returns the path as given if a request has that name; otherwise resolves links.
    fn resolve_known(&self, name: Name, is_tree: bool) -> Result<PathBuf, Errno> {
        let path = PathBuf::from(name.clone());
        if self.state.lock().table.is_asked(&path, is_tree) {
            return Ok(path); // resolving links would check each parent
        }
        self.resolve_inner(name)
    }

    /// Refuses a file where a directory belongs and the reverse, unless a request has the name.
    fn check_kind(&self, path: &Path, is_tree: bool) -> Result<(), Errno> {
        let Ok(status) = files::status(path) else {
            return Ok(()); // the call itself reports it
        };
        match (is_tree, status.kind == Kind::Directory) {
            (true, true) | (false, false) => Ok(()),
            _ if self.state.lock().table.is_asked(path, is_tree) => Ok(()),
            (true, false) => Err(libc::ENOTDIR),
            (false, true) => Err(libc::EISDIR),
        }
    }

    fn failures(&self, below: Name) -> Result<Answer, Errno> {
        let below = self.resolve_existing(below)?;
        let mut state = self.state.lock();
        let mut failures = Vec::new();
        for (path, errno) in state.table.failures(&below) {
            if !state.drop_if_removed(&path, false) {
                failures.push((Name::from(path.as_path()), errno));
            }
        }
        Ok(Answer::Failures(failures))
    }

    /// The fields that are publicly documented for DataWarp.
    fn accounting(&self) -> String {
        let own = self.allocation.as_deref();
        let space = own.and_then(|own| filesystem::space(own).ok());
        let capacity_used = match (self.is_mounted, &space) {
            (true, Some(space)) => space.total_bytes.saturating_sub(space.available_bytes),
            _ => own.map_or(0, files::tree_bytes),
        };
        let requested = self.state.lock().requested.clone();
        let fragment = Fragment {
            capacity_max: self.capacity_bytes,
            capacity_used,
            fs_capacity: space.map(|space| space.total_bytes),
        };
        let account = Accounting::new(&self.tag, self.namespaces, fragment, &requested);
        serde_json::to_string(&account).unwrap_or_default()
    }
}

impl State {
    /// Excludes the selection from the stage-out at the end of the job.
    pub(crate) fn exclude(&mut self, meant: &Selection) -> Result<(), Errno> {
        let left_out = self.open.exclude(meant);
        left_out.map_err(|error| number_of(&error))
    }

    fn counts(&mut self, path: &Path, is_tree: bool) -> Result<Counts, Errno> {
        let counts = self.table.counts(path, is_tree);
        match counts {
            _ if self.drop_if_removed(path, is_tree) => Err(libc::ENOENT),
            Some(counts) => Ok(counts),
            None => Err(libc::EINVAL),
        }
    }

    /// Is a copy of it in progress, or would it overwrite a file that waits for stage-out?
    fn is_busy(&mut self, copy: &Copy) -> bool {
        self.table.is_busy(&copy.inner, copy.is_directory)
            || copy.direction == Direction::In
                && !(self.table.undelivered(&copy.inner).iter())
                    .all(|(waiting, is_directory)| self.drop_if_removed(waiting, *is_directory))
    }

    /// Does an undelivered stage-out of another file have this destination?
    fn has_other_writer(&mut self, target: &Path, inner: &Path) -> bool {
        let other = self.table.writer_of(target).filter(|other| *other != inner);
        other.map(Path::to_owned).is_some_and(|other| !self.drop_if_removed(&other, false))
    }

    /// Drops the request of a file or directory that no longer exists. A stage-in that is not complete needs none.
    fn drop_if_removed(&mut self, path: &Path, is_directory: bool) -> bool {
        let is_gone = files::status(path).is_err_and(|error| error.is_not_found());
        let table = &self.table;
        if !is_gone || table.is_busy(path, is_directory) || table.is_incomplete_stage_in(path) {
            return false;
        }
        self.table.drop_entry(path);
        self.close_request(path, is_directory);
        true
    }

    /// The deferred requests among these names. Each name must have at least one.
    fn deferred(
        &mut self,
        inner: &[PathBuf],
        is_tree: bool,
    ) -> Result<Vec<(Selection, Copy)>, Errno> {
        let mut all = Vec::new();
        for path in inner {
            let deferred = self.table.deferred(path, is_tree);
            if deferred.is_empty() {
                self.counts(path, is_tree)?; // a missing file is a different error
                return Err(libc::EINVAL);
            }
            all.extend(deferred);
        }
        match all.is_empty() {
            true => Err(libc::EINVAL),
            false => Ok(all),
        }
    }
}

fn copy(direction: Direction, inner: PathBuf, outer: PathBuf, is_directory: bool) -> Copy {
    Copy { direction, inner, outer, is_directory, left_out: BTreeSet::new() }
}

fn exactly_one(paths: Vec<PathBuf>) -> Result<PathBuf, Errno> {
    let [path] = <[PathBuf; 1]>::try_from(paths).map_err(|_| libc::EINVAL)?;
    Ok(path)
}

fn must_be_directory(path: &Path) -> Result<(), Errno> {
    match files::status(path).map_err(|error| errno(&error))?.kind {
        Kind::Directory => Ok(()),
        _ => Err(libc::ENOTDIR),
    }
}

fn must_be_file(path: &Path) -> Result<(), Errno> {
    match files::status(path).map_err(|error| errno(&error))?.kind {
        Kind::File => Ok(()),
        Kind::Directory => Err(libc::EISDIR),
        Kind::Link | Kind::Other => Err(libc::EINVAL),
    }
}

/// Refuses a directory as a target, also by a slash at the end. A target may be a file or not exist.
fn refuse_directory(path: &Path) -> Result<(), Errno> {
    match files::status(path) {
        _ if path.as_os_str().as_encoded_bytes().ends_with(b"/") => Err(libc::EISDIR),
        Ok(status) if status.kind == Kind::Directory => Err(libc::EISDIR),
        Err(error) if !error.is_not_found() => Err(errno(&error)),
        _ => Ok(()),
    }
}
