//! Looks whether the servers behind a mount answer, by writing small files through it. A thread that waits for a
//! server cannot be ended, so there is at most one.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use forebay_host::{clock, files, threads};
use parking_lot::Mutex;

/// A mount that takes longer does not answer.
const ANSWER_MAX: Duration = Duration::from_secs(8);
/// After so long a mount never answers.
const HANG_MAX: Duration = Duration::from_secs(60);

/// Looks again and again, without waiting for the answer.
#[derive(Clone, Default)]
pub(super) struct Probe(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// When the look that goes on began.
    began: Option<Instant>,
    /// What the last one found.
    error: Option<String>,
}

impl Probe {
    /// Begins a look, unless one goes on. Returns why the mount does not answer, as far as is known.
    pub(super) fn check(&self, paths: Vec<PathBuf>) -> Option<String> {
        let mut state = self.0.lock();
        if state.began.is_none() && !paths.is_empty() {
            state.began = Some(clock::now());
            let shared = Arc::clone(&self.0);
            let started = threads::spawn(move || {
                let error = write_all(&paths).err().map(|error| error.to_string());
                *shared.lock() = State { began: None, error };
            });
            if let Err(error) = started {
                *state = State { began: None, error: Some(error.to_string()) };
            }
        }
        let waited = state.began.map_or(Duration::ZERO, |began| began.elapsed());
        match waited > ANSWER_MAX {
            true => Some(format!("it does not answer for {} s", waited.as_secs())),
            false => state.error.clone(),
        }
    }
}

/// Whether a mount answers, perhaps late: what a mount did not write yet is lost with it. The thread that writes may
/// wait on.
pub(super) fn answers(paths: Vec<PathBuf>) -> bool {
    let (sender, receiver) = mpsc::channel();
    let started = threads::spawn(move || sender.send(write_all(&paths).is_ok()).ok());
    started.is_ok() && receiver.recv_timeout(HANG_MAX).unwrap_or(false)
}

/// Writes all files. The place of some may have been lost with a server: new files get another one.
fn write_all(paths: &[PathBuf]) -> forebay_host::Result<()> {
    match write_each(paths) {
        Err(error) if files::is_data_lost(&error.source) => {
            paths.iter().try_for_each(|path| files::remove_if_present(path))?;
            write_each(paths)
        }
        written => written,
    }
}

/// Writes each file and waits until servers have it: caches of the mount answer without them. A full file system is
/// an answer, too.
fn write_each(paths: &[PathBuf]) -> forebay_host::Result<()> {
    let mut opened = Vec::new();
    for path in paths {
        // Their directory is only there while the namespace is mounted.
        opened.push((files::open_or_make(path, 0o600)?, path));
    }
    let check = |result: std::io::Result<()>, path: &Path| match result {
        Err(error) if files::is_full(&error) => Ok(()),
        result => files::with_path(result, "write", path),
    };
    let now = clock::unix_s().to_ne_bytes();
    opened.iter().try_for_each(|(file, path)| check(file.write_all_at(&now, 0), path))?;
    opened.iter().try_for_each(|(file, path)| check(file.sync_data(), path))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The nodes of a job and the monitor look at the same moment, and each may be the first.
    #[test]
    fn mount_answers_when_another_look_makes_the_file_meanwhile() {
        let scratch = tempfile::tempdir().expect("tempdir");
        for round in 0..200 {
            let path = scratch.path().join(round.to_string());
            std::thread::scope(|scope| {
                let looks: Vec<_> = (0..4)
                    .map(|_| threads::spawn_scoped(scope, || answers(vec![path.clone()])))
                    .collect();
                assert!(
                    looks.into_iter().all(|look| look.expect("thread").join().expect("look")),
                    "{round}"
                );
            });
        }
        assert!(!answers(vec![scratch.path().join("none").join("file")]));
    }
}
