//! Operations on names and attributes.
//! A relative path is below the directory of the trial. The target of a symlink is stored as given.

use rustix::fs::{
    self, Access, AtFlags, CWD, Dir, FileType, Gid, Mode, RenameFlags, Stat, Timespec, Timestamps,
    Uid, XattrFlags,
};
use rustix::io::{self, Errno};

use super::files::open;
use super::state::{Result, Worker, WorkerError, done, unknown};
use crate::bytes::Bytes;
use crate::operation::{Answer, Attributes, Flag, Kind, Operation, Replacement};

const NANOSECONDS: i64 = 1_000_000_000;
/// Room for the value of an extended attribute, and for their names: what Linux allows.
const ATTRIBUTE_BYTES_MAX: usize = 64 << 10;

impl Worker {
    pub(super) fn execute_on_name(&mut self, operation: &Operation) -> Result<Answer> {
        match operation {
            Operation::Stat { path } => Ok(attributes(&fs::stat(self.path(path))?)),
            Operation::StatLink { path } => Ok(attributes(&fs::lstat(self.path(path))?)),
            Operation::Access { path } => done(fs::access(self.path(path), Access::EXISTS)),
            Operation::Truncate { path, bytes } => {
                let path = std::ffi::CString::new(self.path(path)).map_err(|_| Errno::INVAL)?;
                let bytes = i64::try_from(*bytes).map_err(|_| Errno::FBIG)?;
                // SAFETY: a string that lives until the call returns.
                match unsafe { libc::truncate(path.as_ptr(), bytes) } {
                    0 => Ok(Answer::Done),
                    _ => Err(last_errno().into()),
                }
            }
            Operation::Rename { from, to, replacement } => {
                done(rename(&self.path(from), &self.path(to), *replacement))
            }
            Operation::Unlink { path } => done(fs::unlink(self.path(path))),
            Operation::RemoveDirectory { path } => done(fs::rmdir(self.path(path))),
            Operation::MakeDirectory { path, mode } => {
                done(fs::mkdir(self.path(path), Mode::from(*mode)))
            }
            Operation::Link { from, to } => done(fs::link(self.path(from), self.path(to))),
            // The target stays as it is: the path of a trial would make it depend on the node.
            Operation::Symlink { target, path } => {
                done(fs::symlink(&target.0[..], self.path(path)))
            }
            Operation::ReadLink { path } => {
                let target = fs::readlink(self.path(path), Vec::new())?;
                Ok(Answer::Bytes(Bytes(target.into_bytes())))
            }
            Operation::MakeFifo { path, mode } => {
                let (path, mode) = (self.path(path), Mode::from(*mode));
                done(fs::mknodat(CWD, path, FileType::Fifo, mode, 0))
            }
            Operation::RemoveTree { path } => done(remove_tree(&self.path(path))),
            Operation::FileSystem { path } => {
                let space = fs::statvfs(self.path(path))?;
                Ok(Answer::FileSystem {
                    capacity_bytes: space.f_blocks * space.f_frsize,
                    free_bytes: space.f_bfree * space.f_frsize,
                    name_bytes_max: space.f_namemax,
                })
            }
            _ => self.execute_on_directory(operation),
        }
    }

    fn execute_on_directory(&mut self, operation: &Operation) -> Result<Answer> {
        match operation {
            Operation::List { path } => Ok(Answer::Names(list(&self.path(path))?)),
            Operation::OpenDirectory { path } => {
                let directory = open_directory(&self.path(path))?;
                let handle = self.new_handle();
                self.directories.insert(handle, directory);
                Ok(Answer::Number(handle))
            }
            Operation::NextNames { handle, count } => {
                let directory = self.directories.get_mut(handle).ok_or_else(|| unknown(*handle))?;
                Ok(Answer::Names(names(directory).take(*count).collect::<io::Result<_>>()?))
            }
            Operation::CloseDirectory { handle } => self
                .directories
                .remove(handle)
                .map(|_| Answer::Done)
                .ok_or_else(|| unknown(*handle)),
            _ => self.execute_on_attributes(operation),
        }
    }

    fn execute_on_attributes(&mut self, operation: &Operation) -> Result<Answer> {
        match operation {
            Operation::ChangeMode { path, mode } => {
                done(fs::chmod(self.path(path), Mode::from(*mode)))
            }
            Operation::ChangeOwner { path, user, group } => {
                let (user, group) = (Uid::from_raw(*user), Gid::from_raw(*group));
                done(fs::chown(self.path(path), Some(user), Some(group)))
            }
            Operation::SetTimes { path, accessed_ns, modified_ns } => {
                let times = Timestamps {
                    last_access: timespec(*accessed_ns),
                    last_modification: timespec(*modified_ns),
                };
                done(fs::utimensat(CWD, self.path(path), &times, AtFlags::empty()))
            }
            Operation::SetMask { mask } => {
                Ok(Answer::Number(rustix::process::umask(Mode::from(*mask)).bits().into()))
            }
            Operation::SetAttribute { path, name, value } => {
                let path = self.path(path);
                done(fs::setxattr(path, &name.0[..], &value.0, XattrFlags::empty()))
            }
            Operation::GetAttribute { path, name } => {
                let mut value = vec![0; ATTRIBUTE_BYTES_MAX];
                let count = fs::getxattr(self.path(path), &name.0[..], &mut value[..])?;
                value.truncate(count);
                Ok(Answer::Bytes(Bytes(value)))
            }
            Operation::ListAttributes { path } => {
                let mut list = vec![0_u8; ATTRIBUTE_BYTES_MAX];
                let count = fs::listxattr(self.path(path), &mut list[..])?;
                let parts = list[..count].split(|byte| *byte == 0).filter(|part| !part.is_empty());
                Ok(Answer::Names(parts.map(Bytes::from).collect()))
            }
            Operation::RemoveAttribute { path, name } => {
                done(fs::removexattr(self.path(path), &name.0[..]))
            }
            other => Err(WorkerError::Refused(format!("cannot {}", other.describe()))),
        }
    }
}

pub(super) fn last_errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

pub(super) fn attributes(stat: &Stat) -> Answer {
    Answer::Attributes(Attributes {
        kind: match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Kind::File,
            FileType::Directory => Kind::Directory,
            FileType::Symlink => Kind::Symlink,
            _ => Kind::Other,
        },
        mode: stat.st_mode & 0o7777,
        size_bytes: stat.st_size.unsigned_abs(),
        allocated_bytes: stat.st_blocks.unsigned_abs() * 512,
        links: stat.st_nlink,
        inode: stat.st_ino,
        user: stat.st_uid,
        group: stat.st_gid,
        accessed_ns: nanoseconds(stat.st_atime, stat.st_atime_nsec),
        modified_ns: nanoseconds(stat.st_mtime, stat.st_mtime_nsec),
        changed_ns: nanoseconds(stat.st_ctime, stat.st_ctime_nsec),
    })
}

fn nanoseconds(whole_s: i64, part_ns: u64) -> i64 {
    whole_s.saturating_mul(NANOSECONDS).saturating_add(part_ns.cast_signed())
}

fn timespec(time_ns: i64) -> Timespec {
    Timespec { tv_sec: time_ns.div_euclid(NANOSECONDS), tv_nsec: time_ns.rem_euclid(NANOSECONDS) }
}

pub(super) fn rename(from: &[u8], to: &[u8], replacement: Replacement) -> io::Result<()> {
    match replacement {
        Replacement::Replace => fs::rename(from, to),
        Replacement::Refuse => fs::renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE),
        Replacement::Exchange => fs::renameat_with(CWD, from, CWD, to, RenameFlags::EXCHANGE),
    }
}

fn open_directory(path: &[u8]) -> io::Result<Dir> {
    Dir::new(open(path, &[Flag::Read, Flag::Directory], 0)?)
}

/// The next names but `.` and `..`.
fn names(directory: &mut Dir) -> impl Iterator<Item = io::Result<Bytes>> + '_ {
    let entries = std::iter::from_fn(|| directory.read());
    let names = entries.map(|entry| Ok(Bytes::from(entry?.file_name().to_bytes())));
    names.filter(|name| !matches!(name, Ok(name) if name.0 == b"." || name.0 == b".."))
}

pub(super) fn list(path: &[u8]) -> io::Result<Vec<Bytes>> {
    names(&mut open_directory(path)?).collect()
}

fn remove_tree(path: &[u8]) -> io::Result<()> {
    for name in list(path)? {
        let below = [path, b"/", &name.0[..]].concat();
        match fs::unlink(&below[..]) {
            Err(Errno::ISDIR | Errno::PERM) => remove_tree(&below)?,
            Err(Errno::NOENT) => {} // a listing may be older than a removal
            other => other?,
        }
    }
    fs::rmdir(path)
}
