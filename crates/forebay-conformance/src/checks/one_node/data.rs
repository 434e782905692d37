//! Checks of reading and writing on one node.
//! `large_offset` assumes holes: its file has a size of 4 GiB and holds 3 bytes.

use crate::bytes::Data;
use crate::check::{Check, check};
use crate::operation::Flag::{Create, Direct, Read, ReadWrite, Write};
use crate::operation::{Operation, Whence};
use crate::trial::{Expect, holds, same, same_data, same_data_of};

pub(super) const CHECKS: &[Check] = &[
    check("write_read", "a file gives every byte that was written", |t| {
        let seed = t.seed();
        let data = Data::pattern(seed, 1_000_003);
        t.one().write_file("f", data.clone())?;
        same("size", t.one().stat("f")?.size_bytes, 1_000_003)?;
        t.one().verify_file("f", data)
    }),
    check("write_pieces", "pieces of odd lengths and offsets, across pages, give the whole", |t| {
        let seed = t.seed();
        let whole = Data::pattern(seed, 20_000).contents();
        let file = t.one().open("f", &[ReadWrite, Create])?;
        for (at, piece) in whole.chunks(1237).enumerate().rev() {
            let data = Data::Given(piece.into());
            t.one().write_at(file, 1237 * at as u64, data)?;
        }
        t.one().verify_file("f", Data::pattern(seed, 20_000))
    }),
    check("overwrite", "writing into the middle of a file changes these bytes only", |t| {
        let seed = t.seed();
        let (old, new) = (Data::pattern(seed, 12_000), Data::pattern(seed + 1, 5000));
        t.one().write_file("f", old.clone())?;
        let file = t.one().open("f", &[ReadWrite])?;
        same("written", t.one().write_at(file, 3000, new.clone())?, 5000)?;
        let mut expected = old.contents();
        expected[3000..8000].copy_from_slice(&new.contents());
        same_data(&t.one().read_at(file, 0, 20_000)?, &expected)
    }),
    check("read_past_end", "a read at the end gives the rest, a read past it gives nothing", |t| {
        t.one().write_file("f", "data")?;
        let file = t.one().open("f", &[Read])?;
        same_data_of("at the end", &t.one().read_at(file, 2, 100)?, b"ta")?;
        same("past the end", t.one().read_at(file, 100, 100)?, Vec::new())
    }),
    check("write_past_end", "a write past the end fills the gap with zeros", |t| {
        let file = t.one().open("f", &[ReadWrite, Create])?;
        t.one().write_at(file, 0, "ab")?;
        t.one().write_at(file, 9000, "yz")?;
        let mut expected = vec![0; 9002];
        expected[..2].copy_from_slice(b"ab");
        expected[9000..].copy_from_slice(b"yz");
        same_data(&t.one().read_file("f")?, &expected)
    }),
    check("write_nothing", "a write of no bytes leaves the size", |t| {
        let file = t.one().open("f", &[ReadWrite, Create])?;
        same("written", t.one().write_at(file, 100, "")?, 0)?;
        same("size", t.one().stat("f")?.size_bytes, 0)
    }),
    check("position", "write moves the position, pwrite does not", |t| {
        let file = t.one().open("f", &[ReadWrite, Create])?;
        t.one().write(file, "0123")?;
        t.one().write_at(file, 8, "89")?;
        t.one().write(file, "4567")?;
        same("position", t.one().seek(file, 0, Whence::Current)?, 8)?;
        t.one().verify_file("f", "0123456789")
    }),
    check("seek_end", "SEEK_END leads to the end, and a seek past it leaves the size", |t| {
        t.one().write_file("f", "data")?;
        let file = t.one().open("f", &[ReadWrite])?;
        same("end", t.one().seek(file, 0, Whence::End)?, 4)?;
        same("past the end", t.one().seek(file, 100, Whence::Start)?, 100)?;
        same("size", t.one().stat("f")?.size_bytes, 4)
    }),
    check("two_handles", "what one open file writes, another reads at once", |t| {
        let seed = t.seed();
        let writing = t.one().open("f", &[Write, Create])?;
        let reading = t.one().open("f", &[Read])?;
        for number in 0..20 {
            let data = Data::pattern(seed + number, 300);
            t.one().write_at(writing, number * 300, data.clone())?;
            t.one().verify(reading, number * 300, data)?;
        }
        same("size", t.one().stat_handle(reading)?.size_bytes, 6000)
    }),
    check("two_processes", "what one process writes, another reads at once", |t| {
        let child = t.one().fork()?;
        let writing = t.one().open("f", &[Write, Create])?;
        let reading = t.child(0, child).open("f", &[Read])?;
        t.one().write_at(writing, 0, "data")?;
        t.child(0, child).verify(reading, 0, "data")
    }),
    check("fsync", "fsync of a file and of a directory succeed, and the data stay", |t| {
        let file = t.one().open("f", &[ReadWrite, Create])?;
        t.one().write_at(file, 0, "data")?;
        t.one().sync(file)?;
        let directory = t.one().open(".", &[Read])?;
        t.one().sync(directory)?;
        t.one().verify_file("f", "data")
    }),
    check("truncate_shorter", "a file that is cut ends there, and grows again with zeros", |t| {
        let seed = t.seed();
        t.one().write_file("f", Data::pattern(seed, 10_000))?;
        t.one().truncate("f", 5000)?;
        same("size", t.one().stat("f")?.size_bytes, 5000)?;
        t.one().verify_file("f", Data::pattern(seed, 5000))?;
        t.one().truncate("f", 10_000)?;
        let read = t.one().read_file("f")?;
        same("length", read.len(), 10_000)?;
        holds("old bytes do not come back", read[5000..].iter().all(|byte| *byte == 0))
    }),
    check("truncate_longer", "a file that grows by truncate has zeros at its end", |t| {
        let file = t.one().open("f", &[ReadWrite, Create])?;
        t.one().write_at(file, 0, "data")?;
        t.one().truncate_handle(file, 5000)?;
        let mut expected = b"data".to_vec();
        expected.resize(5000, 0);
        same_data(&t.one().read_file("f")?, &expected)
    }),
    check(
        "truncate_refused",
        "truncate of a directory gives EISDIR, of a missing file ENOENT",
        |t| {
            t.one().make_directory("d")?;
            t.one().truncate("d", 0).fails_with(&["EISDIR"])?;
            t.one().truncate("f", 0).fails_with(&["ENOENT"])?;
            t.one().write_file("f", "data")?;
            let reading = t.one().open("f", &[Read])?;
            t.one().truncate_handle(reading, 0).fails_with(&["EINVAL", "EBADF"])
        },
    ),
    check("large_offset", "a file may be larger than 4 GiB", |t| {
        let file = t.one().open("f", &[ReadWrite, Create])?;
        let offset = (4 << 30) + 12_345;
        t.one().write_at(file, offset, "far")?;
        same("size", t.one().stat("f")?.size_bytes, offset + 3)?;
        t.one().verify(file, offset, "far")?;
        same("hole", t.one().read_at(file, (4 << 30) - 2, 4)?, vec![0; 4])
    }),
    check("direct", "O_DIRECT writes and reads every byte of aligned blocks", |t| {
        let seed = t.seed();
        let file = t.one().open("f", &[ReadWrite, Create, Direct]).or_unsupported(&["EINVAL"])?;
        let data = Data::pattern(seed, 64 << 10);
        t.one().direct(file, data.clone())?;
        t.one().verify_file("f", data)
    }),
    check("copy_range", "copy_file_range copies the bytes asked for", |t| {
        let seed = t.seed();
        t.one().write_file("a", Data::pattern(seed, 10_000))?;
        t.one().write_file("b", "0123456789")?;
        let (from, to) = (t.one().open("a", &[Read])?, t.one().open("b", &[ReadWrite])?);
        let copy = Operation::CopyRange { from, from_offset: 100, to, to_offset: 5, bytes: 3000 };
        let copied = t.one().call(copy).or_unsupported(&["EXDEV", "EINVAL"])?;
        same("copied", copied, crate::operation::Answer::Number(3000))?;
        let source = Data::pattern(seed, 10_000).contents();
        let expected = [b"01234", &source[100..3100]].concat();
        same_data(&t.one().read_file("b")?, &expected)
    }),
];
