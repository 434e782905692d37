//! Checks of files that processes of one node map into memory.
//! On a file system without mappings (ENODEV) the checks are not supported, never broken.

use crate::bytes::Data;
use crate::check::{Check, check};
use crate::operation::Flag::{Read, ReadWrite};
use crate::operation::Operation;
use crate::trial::{Expect, same_data, same_data_of};

pub(super) const CHECKS: &[Check] = &[
    check("map_reads_file", "a mapping shows every byte of the file", |t| {
        let seed = t.seed();
        let data = Data::pattern(seed, 10_000);
        t.one().write_file("f", data.clone())?;
        let file = t.one().open("f", &[ReadWrite])?;
        let map = t.one().map(file, 10_000, true)?;
        same_data(&t.one().map_read(map, 0, 10_000)?, &data.contents())
    }),
    check(
        "map_writes_file",
        "what is written to a shared mapping is in the file after msync",
        |t| {
            let seed = t.seed();
            t.one().write_file("f", Data::pattern(seed, 8192))?;
            let file = t.one().open("f", &[ReadWrite])?;
            let map = t.one().map(file, 8192, true)?;
            t.one().map_write(map, 4000, "mapped")?;
            t.one().map_sync(map)?;
            t.one().verify(file, 4000, "mapped")?;
            let mut expected = Data::pattern(seed, 8192).contents();
            expected[4000..4006].copy_from_slice(b"mapped");
            same_data(&t.one().read_file("f")?, &expected)
        },
    ),
    check("map_sees_write", "a shared mapping shows what is written to the file", |t| {
        let seed = t.seed();
        t.one().write_file("f", Data::pattern(seed, 8192))?;
        let file = t.one().open("f", &[ReadWrite])?;
        let map = t.one().map(file, 8192, true)?;
        t.one().map_read(map, 0, 8192)?;
        t.one().write_at(file, 100, "written")?;
        same_data_of("mapped", &t.one().map_read(map, 100, 7)?, b"written")
    }),
    check("map_of_two_processes", "two processes share a mapping", |t| {
        let seed = t.seed();
        t.one().write_file("f", Data::pattern(seed, 4096))?;
        let child = t.one().fork()?;
        let file = t.one().open("f", &[ReadWrite])?;
        let map = t.one().map(file, 4096, true)?;
        let file = t.child(0, child).open("f", &[ReadWrite])?;
        let theirs = t.child(0, child).map(file, 4096, true)?;
        t.one().map_write(map, 10, "ours")?;
        same_data_of("theirs", &t.child(0, child).map_read(theirs, 10, 4)?, b"ours")
    }),
    check("map_private", "what is written to a private mapping is not in the file", |t| {
        t.one().write_file("f", "0123456789")?;
        let file = t.one().open("f", &[ReadWrite])?;
        let map = t.one().map(file, 10, false)?;
        t.one().map_write(map, 0, "private")?;
        same_data_of("mapped", &t.one().map_read(map, 0, 10)?, b"private789")?;
        t.one().verify_file("f", "0123456789")
    }),
    check("map_outlives_handle", "a mapping stays after close and unlink", |t| {
        t.one().write_file("f", "0123456789")?;
        let file = t.one().open("f", &[ReadWrite])?;
        let map = t.one().map(file, 10, true)?;
        t.one().close(file)?;
        t.one().unlink("f")?;
        t.one().map_write(map, 0, "still")?;
        same_data_of("mapped", &t.one().map_read(map, 0, 10)?, b"still56789")?;
        t.one().unmap(map)?;
        t.one().stat("f").fails_with(&["ENOENT"])
    }),
    check(
        "map_needs_access",
        "a file opened to read has no writable shared mapping: EACCES",
        |t| {
            t.one().write_file("f", "data")?;
            let handle = t.one().open("f", &[Read])?;
            let map = Operation::Map { handle, bytes: 4, shared: true, writable: true };
            t.one().call(map).or_unsupported_then(&["ENODEV"], &["EACCES"])
        },
    ),
];
