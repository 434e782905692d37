//! Operations of many steps, so that those of several nodes overlap.
//! The first step that fails ends a loop, unless the loop counts such failures. `Count` waits for its lock without a
//! limit.

use std::os::fd::AsFd;

use rustix::fs;
use rustix::io::{self, Errno};

use super::files::{open, read_at, read_file, write_at, write_file};
use super::locks::{file_lock, record_lock};
use super::names::{list, rename};
use super::state::{Result, Worker, WorkerError};
use crate::bytes::{Data, first_difference};
use crate::operation::{Answer, Flag, Handle, Lock, LockKind, Loop, Replacement};

impl Worker {
    pub(super) fn run_loop(&mut self, steps: &Loop) -> Result<Answer> {
        match steps {
            Loop::CreateExclusive { prefix, count } => {
                let prefix = self.path(prefix);
                let mut won = Vec::new();
                for number in 0..*count {
                    match create(&numbered(&prefix, number)) {
                        Ok(()) => won.push(number as u64),
                        Err(Errno::EXIST) => {}
                        Err(other) => return Err(other.into()),
                    }
                }
                Ok(Answer::Numbers(won))
            }
            Loop::RenameOwn { from, to, count } => {
                let (from, to) = (self.path(from), self.path(to));
                let mut won = Vec::new();
                for number in 0..*count {
                    match fs::rename(numbered(&from, number), numbered(&to, number)) {
                        Ok(()) => won.push(number as u64),
                        Err(Errno::NOENT) => {}
                        Err(other) => return Err(other.into()),
                    }
                }
                Ok(Answer::Numbers(won))
            }
            Loop::CreateShared { prefix, count, offset, seed, bytes } => {
                let prefix = self.path(prefix);
                let step = |number| {
                    let file =
                        open(&numbered(&prefix, number), &[Flag::ReadWrite, Flag::Create], 0o644)?;
                    let data = Data::pattern(seed + number as u64, *bytes).contents();
                    write_at(file.as_fd(), *offset, &data)?;
                    Ok(fs::fstat(&file)?.st_ino)
                };
                Ok(Answer::Numbers((0..*count).map(step).collect::<io::Result<_>>()?))
            }
            Loop::Create { prefix, count } => {
                let prefix = self.path(prefix);
                each(*count, |number| create(&numbered(&prefix, number)))
            }
            Loop::Remove { prefix, count } => {
                let prefix = self.path(prefix);
                each(*count, |number| fs::unlink(numbered(&prefix, number)))
            }
            Loop::Churn { prefix, count } => {
                let prefix = self.path(prefix);
                each(*count, |number| {
                    let name = numbered(&prefix, number);
                    create(&name).and_then(|()| fs::unlink(&name[..]))
                })
            }
            Loop::Move { one, other, count } => {
                let (one, other) = (self.path(one), self.path(other));
                each(*count, |_| {
                    fs::rename(&one[..], &other[..]).and_then(|()| fs::rename(&other[..], &one[..]))
                })
            }
            _ => self.run_data_loop(steps),
        }
    }

    fn run_data_loop(&mut self, steps: &Loop) -> Result<Answer> {
        match steps {
            Loop::Append { path, count, writer, record_bytes } => {
                let file =
                    open(&self.path(path), &[Flag::Write, Flag::Create, Flag::Append], 0o644)?;
                each(*count, |number| {
                    let record = record(*writer, number, *record_bytes);
                    if io::write(&file, &record)? < record.len() {
                        Err(Errno::NOSPC)
                    } else {
                        Ok(())
                    }
                })
            }
            Loop::Count { path, count, kind } => {
                let path = self.path(path);
                each(*count, |_| count_once(&path, *kind))
            }
            Loop::Truncate { path, count, seed, bytes } => {
                let file = open(&self.path(path), &[Flag::ReadWrite], 0)?;
                each(*count, |number| {
                    let data = Data::pattern(seed + number as u64, *bytes).contents();
                    fs::ftruncate(&file, 0)?;
                    write_at(file.as_fd(), 0, &data).map(drop)
                })
            }
            Loop::Replace { from, to, count, seed, bytes } => {
                let (from, to) = (self.path(from), self.path(to));
                each(*count, |number| {
                    write_file(&from, &Data::pattern(seed + number as u64, *bytes).contents())?;
                    rename(&from, &to, Replacement::Replace)
                })
            }
            Loop::WriteStrided { path, first, stride, count, seed, bytes } => {
                let file = open(&self.path(path), &[Flag::ReadWrite], 0)?;
                each(*count, |number| {
                    let data = Data::pattern(seed + number as u64, *bytes).contents();
                    write_at(file.as_fd(), first + number as u64 * stride, &data).map(drop)
                })
            }
            Loop::WorkBelow { directory, prefix, count } => {
                self.work_below(*directory, &prefix.0, *count)
            }
            _ => self.run_reading_loop(steps),
        }
    }

    /// The answer is the number of steps that read something wrong.
    fn run_reading_loop(&mut self, steps: &Loop) -> Result<Answer> {
        match steps {
            Loop::ListStable { path, count, stable, names } => {
                let path = self.path(path);
                wrong(*count, || {
                    let all = list(&path)?;
                    let mut numbers: Vec<usize> = (all.iter())
                        .filter_map(|name| name.0.strip_prefix(&stable.0[..]))
                        .filter_map(|number| std::str::from_utf8(number).ok()?.parse().ok())
                        .collect();
                    numbers.sort_unstable();
                    Ok(!numbers.iter().copied().eq(0..*names))
                })
            }
            Loop::ReadTruncated { path, count, seed, patterns, bytes } => {
                let file = open(&self.path(path), &[Flag::Read], 0)?;
                let allowed = patterns_from(*seed, *patterns, *bytes);
                wrong(*count, || {
                    let read = read_at(file.as_fd(), 0, bytes + 1)?;
                    let is_known = |(at, byte): (usize, &u8)| {
                        *byte == 0 || allowed.iter().any(|pattern| pattern.get(at) == Some(byte))
                    };
                    Ok(read.len() > *bytes || !read.iter().enumerate().all(is_known))
                })
            }
            Loop::ReadReplaced { path, count, seed, patterns, bytes } => {
                let path = self.path(path);
                let allowed = patterns_from(*seed, *patterns, *bytes);
                wrong(*count, || match read_file(&path) {
                    Err(Errno::NOENT) => Ok(true),
                    read => Ok(!allowed.contains(&read?)),
                })
            }
            other => Err(WorkerError::Refused(format!("no loop: {other:?}"))),
        }
    }

    fn work_below(&self, directory: Handle, prefix: &[u8], count: usize) -> Result<Answer> {
        let directory = self.file(directory)?;
        let flags = fs::OFlags::RDWR | fs::OFlags::CREATE | fs::OFlags::EXCL | fs::OFlags::CLOEXEC;
        let mut differing = 0;
        for number in 0..count {
            let (name, data) =
                (numbered(prefix, number), Data::pattern(number as u64, 100).contents());
            let file = fs::openat(directory, &name[..], flags, 0o644.into())?;
            write_at(file.as_fd(), 0, &data)?;
            let again = fs::openat(directory, &name[..], fs::OFlags::RDONLY, 0.into())?;
            differing +=
                u64::from(first_difference(&read_at(again.as_fd(), 0, 200)?, &data).is_some());
        }
        Ok(Answer::Number(differing))
    }
}

fn each(count: usize, step: impl FnMut(usize) -> io::Result<()>) -> Result<Answer> {
    (0..count).try_for_each(step)?;
    Ok(Answer::Done)
}

fn wrong(count: usize, mut step: impl FnMut() -> io::Result<bool>) -> Result<Answer> {
    let mut wrong = 0;
    for _ in 0..count {
        wrong += u64::from(step()?);
    }
    Ok(Answer::Number(wrong))
}

fn numbered(prefix: &[u8], number: usize) -> Vec<u8> {
    [prefix, number.to_string().as_bytes()].concat()
}

fn create(path: &[u8]) -> io::Result<()> {
    open(path, &[Flag::Write, Flag::Create, Flag::Exclusive], 0o644).map(drop)
}

fn patterns_from(seed: u64, patterns: usize, bytes: usize) -> Vec<Vec<u8>> {
    (0..patterns).map(|number| Data::pattern(seed + number as u64, bytes).contents()).collect()
}

/// A line of `record_bytes` bytes.
pub(crate) fn record(writer: usize, number: usize, record_bytes: usize) -> Vec<u8> {
    let mut line = format!("{writer:03} {number:08} ").into_bytes();
    let filler = b'a' + u8::try_from((writer * 7 + number) % 26).unwrap_or_default();
    line.resize(record_bytes - 1, filler);
    line.push(b'\n');
    line
}

fn count_once(path: &[u8], kind: LockKind) -> io::Result<()> {
    let file = open(path, &[Flag::ReadWrite], 0)?;
    let file = file.as_fd();
    let lock = |lock| match kind {
        LockKind::Record => record_lock(file, libc::F_SETLKW, lock, 0, 0).map(drop),
        LockKind::File => file_lock(file, lock, true),
    };
    lock(Lock::Exclusive)?;
    let read = read_at(file, 0, 20)?;
    let number: u64 =
        std::str::from_utf8(&read).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0);
    write_at(file, 0, format!("{:020}", number + 1).as_bytes())?;
    lock(Lock::Release)
}
