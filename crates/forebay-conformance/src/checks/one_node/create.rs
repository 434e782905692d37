//! Checks of open(2) on one node: creation, flags and errors.

use crate::check::{Check, check};
use crate::operation::Flag::{
    Append, Create, Directory, Exclusive, NoFollow, Read, ReadWrite, Truncate, Unnamed, Write,
};
use crate::operation::Kind;
use crate::trial::{Expect, broken, same};

pub(super) const CHECKS: &[Check] = &[
    check("create", "a created file is an empty file with one link and the mode asked for", |t| {
        t.one().open_mode("f", &[Write, Create], 0o640)?;
        let found = t.one().stat("f")?;
        same("kind", found.kind, Kind::File)?;
        same("mode", found.mode, 0o640)?;
        same("size, links", (found.size_bytes, found.links), (0, 1))
    }),
    check("create_obeys_mask", "umask clears permission bits of new files", |t| {
        t.one().set_mask(0o077)?;
        t.one().open_mode("f", &[Write, Create], 0o666)?;
        same("mode", t.one().stat("f")?.mode, 0o600)
    }),
    check("create_keeps_data", "O_CREAT of an existing file keeps its data, mode and inode", |t| {
        t.one().write_file("f", "data")?;
        t.one().change_mode("f", 0o600)?;
        let inode = t.one().stat("f")?.inode;
        t.one().open_mode("f", &[Write, Create], 0o644)?;
        let found = t.one().stat("f")?;
        same("mode, inode", (found.mode, found.inode), (0o600, inode))?;
        t.one().verify_file("f", "data")
    }),
    check("create_missing_parent", "a file in a missing directory gives ENOENT", |t| {
        t.one().open("no/f", &[Write, Create]).fails_with(&["ENOENT"])
    }),
    check("create_through_symlink", "O_CREAT through a dangling symlink creates its target", |t| {
        t.one().symlink("target", "s").or_unsupported(&["EPERM"])?;
        t.one().write_file("s", "data")?;
        t.one().verify_file("target", "data")
    }),
    check("open_missing", "opening a missing file gives ENOENT", |t| {
        t.one().open("f", &[Read]).fails_with(&["ENOENT"])
    }),
    check("open_below_file", "a file as a directory in a path gives ENOTDIR", |t| {
        t.one().write_file("f", "")?;
        t.one().open("f/g", &[Read]).fails_with(&["ENOTDIR"])?;
        t.one().stat("f/").fails_with(&["ENOTDIR"])
    }),
    check("exclusive_existing", "O_EXCL of an existing file gives EEXIST", |t| {
        t.one().write_file("f", "")?;
        t.one().open("f", &[Write, Create, Exclusive]).fails_with(&["EEXIST"])
    }),
    check("exclusive_symlink", "O_EXCL does not follow a dangling symlink: EEXIST", |t| {
        t.one().symlink("target", "s").or_unsupported(&["EPERM"])?;
        t.one().open("s", &[Write, Create, Exclusive]).fails_with(&["EEXIST"])?;
        t.one().stat("target").fails_with(&["ENOENT"])
    }),
    check("truncate_on_open", "O_TRUNC empties a file", |t| {
        t.one().write_file("f", "data")?;
        t.one().open("f", &[Write, Truncate])?;
        same("size", t.one().stat("f")?.size_bytes, 0)
    }),
    check("open_directory_to_write", "opening a directory to write gives EISDIR", |t| {
        t.one().make_directory("d")?;
        t.one().open("d", &[Write]).fails_with(&["EISDIR"])?;
        t.one().open("d", &[ReadWrite]).fails_with(&["EISDIR"])
    }),
    check("open_file_as_directory", "O_DIRECTORY of a file gives ENOTDIR", |t| {
        t.one().write_file("f", "")?;
        t.one().open("f", &[Read, Directory]).fails_with(&["ENOTDIR"])
    }),
    check("open_symlink_nofollow", "O_NOFOLLOW of a symlink gives ELOOP", |t| {
        t.one().write_file("f", "")?;
        t.one().symlink("f", "s").or_unsupported(&["EPERM"])?;
        t.one().open("s", &[Read, NoFollow]).fails_with(&["ELOOP"])
    }),
    check(
        "access_mode_is_kept",
        "a file opened to read cannot be written, and the reverse: EBADF",
        |t| {
            t.one().write_file("f", "data")?;
            let reading = t.one().open("f", &[Read])?;
            t.one().write_at(reading, 0, "x").fails_with(&["EBADF"])?;
            let writing = t.one().open("f", &[Write])?;
            t.one().read_at(writing, 0, 1).fails_with(&["EBADF"])?;
            t.one().verify_file("f", "data")
        },
    ),
    check("unnamed_file", "O_TMPFILE gives a file without a name that holds data", |t| {
        let unnamed = t
            .one()
            .open(".", &[ReadWrite, Unnamed])
            .or_unsupported(&["EISDIR", "ENOENT", "EINVAL"])?;
        t.one().write_at(unnamed, 0, "data")?;
        t.one().verify(unnamed, 0, "data")?;
        same("names", t.one().list(".")?, Vec::new())
    }),
    check("append", "O_APPEND writes at the end, wherever the position is", |t| {
        t.one().write_file("f", "one ")?;
        let file = t.one().open("f", &[Write, Append])?;
        t.one().seek(file, 0, crate::operation::Whence::Start)?;
        t.one().write(file, "two ")?;
        let other = t.one().open("f", &[Write, Append])?;
        t.one().write(other, "three ")?;
        t.one().write(file, "four")?;
        t.one().verify_file("f", "one two three four")
    }),
    check("append_after_truncate", "O_APPEND writes at the new end of a file that was cut", |t| {
        let file = t.one().open("f", &[Write, Create, Append])?;
        t.one().write(file, "12345678")?;
        t.one().truncate("f", 4)?;
        t.one().write(file, "xy")?;
        t.one().verify_file("f", "1234xy")
    }),
    check("many_open_files", "200 files are open at the same time, each with its own data", |t| {
        let mut files = Vec::new();
        for number in 0..200 {
            let file = t.one().open(&format!("f{number}"), &[ReadWrite, Create])?;
            t.one().write_at(file, 0, &*format!("file {number}"))?;
            files.push(file);
        }
        for (number, file) in files.into_iter().enumerate() {
            t.one().verify(file, 0, &*format!("file {number}"))?;
        }
        if t.one().list(".")?.len() == 200 { Ok(()) } else { broken("not 200 names") }
    })
    .costs(10),
];
