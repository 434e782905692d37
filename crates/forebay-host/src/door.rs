//! A door by which a job's processes ask the one that runs it: a Unix socket in a directory of ours. One
//! line is the question, one the answer.

use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::net::Shutdown;

use crate::{Result, files, on};

/// Questions beyond this are not read on.
const QUESTION_BYTES_MAX: u64 = 64 << 10;

/// The inner side. Nobody comes in any more when it is dropped.
pub struct Door {
    listener: UnixListener,
    path: PathBuf,
}

impl Door {
    /// Makes the socket.
    ///
    /// # Errors
    /// As `bind(2)`.
    pub fn open(path: &Path) -> Result<Self> {
        let listener = at(path, |short| UnixListener::bind(short))?;
        Ok(Self {
            listener,
            path: path.to_owned(),
        })
    }

    /// Answers each question in a thread of its own, until [`Door::shut`].
    pub fn serve(&self, answer: &(dyn Fn(&str) -> String + Sync)) {
        std::thread::scope(|scope| {
            while let Ok((stream, _)) = self.listener.accept() {
                // Who does not listen to the answer has ended.
                scope.spawn(move || speak(&stream, answer).ok());
            }
        });
    }

    /// Lets [`Door::serve`] come to its end.
    pub fn shut(&self) {
        // Also where somebody has removed the name. It can fail only if it is shut.
        rustix::net::shutdown(&self.listener, Shutdown::Both).ok();
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        files::remove_file(&self.path).ok(); // it goes with its directory too
    }
}

fn speak(stream: &UnixStream, answer: &(dyn Fn(&str) -> String + Sync)) -> std::io::Result<()> {
    use std::io::Read;
    let mut question = String::new();
    BufReader::new(stream.take(QUESTION_BYTES_MAX)).read_line(&mut question)?;
    let mut line = answer(question.trim_end_matches('\n'));
    line.push('\n');
    let mut stream = stream;
    stream.write_all(line.as_bytes())
}

/// Asks at a door; waits for the answer as long as it takes.
///
/// # Errors
/// As `connect(2)`; or nobody answers any more.
pub fn ask(path: &Path, question: &str) -> Result<String> {
    let mut stream = at(path, |short| UnixStream::connect(short))?;
    let mut line = String::new();
    let answered = stream
        .write_all(format!("{question}\n").as_bytes())
        .and_then(|()| BufReader::new(&stream).read_line(&mut line))
        .and_then(|_| match line.ends_with('\n') {
            true => Ok(()),
            false => Err(std::io::ErrorKind::UnexpectedEof.into()),
        });
    on(answered, "get an answer at", path)?;
    line.pop();
    Ok(line)
}

/// The name of a socket has 107 bytes at most; by way of its open directory it is always short.
fn at<T>(path: &Path, act: impl Fn(&Path) -> std::io::Result<T>) -> Result<T> {
    let parent = path.parent().unwrap_or(Path::new("/"));
    let directory = files::open_to_read(parent)?;
    let short = PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd()));
    let short = short.join(path.file_name().unwrap_or_default());
    on(act(&short), "open the socket", path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_door_answers_until_it_is_shut_also_where_its_name_is_gone() {
        let scratch = tempfile::tempdir().expect("tempdir");
        let path = scratch.path().join("door");
        let door = Door::open(&path).expect("open");
        std::thread::scope(|scope| {
            let served = scope.spawn(|| door.serve(&|question| question.to_uppercase()));
            assert_eq!(ask(&path, "why").expect("answered"), "WHY");
            files::remove_file(&path).expect("removed");
            door.shut();
            served.join().expect("it ends");
        });
    }
}
