//! Checks of space on one node: holes, allocation, the capacity.
//! Never fills the file system: no check writes more than some kilobytes.

use crate::bytes::Data;
use crate::check::{Check, check};
use crate::operation::Flag::{Create, ReadWrite};
use crate::operation::{Answer, Operation, Whence};
use crate::trial::{Expect, Failure, holds, same, same_data};

const MIB: u64 = 1 << 20;

pub(super) const CHECKS: &[Check] = &[
    check("sparse", "a hole of 1 GiB takes less than 1 MiB of space", |t| {
        let file = t.one().open("f", &[ReadWrite, Create])?;
        t.one().write_at(file, 1 << 30, "end")?;
        t.one().sync(file)?;
        let found = t.one().stat("f")?;
        same("size", found.size_bytes, (1 << 30) + 3)?;
        if found.allocated_bytes == found.size_bytes.next_multiple_of(512) {
            return Err(Failure::NotSupported("st_blocks follows the size".to_owned()));
        }
        holds("the hole takes space", found.allocated_bytes < MIB)
    }),
    check("seek_hole_and_data", "SEEK_HOLE and SEEK_DATA never take data for a hole", |t| {
        let seed = t.seed();
        let file = t.one().open("f", &[ReadWrite, Create])?;
        t.one().write_at(file, 0, Data::pattern(seed, 4096))?;
        t.one().write_at(file, 8 * MIB, Data::pattern(seed, 4096))?;
        let hole = t.one().seek(file, 0, Whence::Hole).or_unsupported(&["EINVAL"])?;
        holds("a hole within data", hole >= 4096)?;
        let data = t.one().seek(file, 4096, Whence::Data)?;
        holds("data are skipped", data <= 8 * MIB)?;
        same("end", t.one().seek(file, 8 * MIB, Whence::Hole)?, 8 * MIB + 4096)?;
        t.one().seek(file, 8 * MIB + 4096, Whence::Data).fails_with(&["ENXIO"])
    }),
    check("allocate", "fallocate extends a file with zeros and keeps its data", |t| {
        let file = t.one().open("f", &[ReadWrite, Create])?;
        t.one().write_at(file, 0, "data")?;
        let whole =
            Operation::Allocate { handle: file, offset: 0, bytes: 10_000, keep_size: false };
        t.one().call(whole).or_unsupported(&["EINVAL"])?;
        let mut expected = b"data".to_vec();
        expected.resize(10_000, 0);
        same_data(&t.one().read_file("f")?, &expected)
    }),
    check("allocate_keep_size", "fallocate with FALLOC_FL_KEEP_SIZE leaves the size", |t| {
        let file = t.one().open("f", &[ReadWrite, Create])?;
        t.one().write_at(file, 0, "data")?;
        let beyond =
            Operation::Allocate { handle: file, offset: 0, bytes: 10_000, keep_size: true };
        t.one().call(beyond).or_unsupported(&["EINVAL"])?;
        t.one().verify_file("f", "data")?;
        same("size", t.one().stat("f")?.size_bytes, 4)
    }),
    check("punch_hole", "a punched hole reads as zeros, and the rest stays", |t| {
        let seed = t.seed();
        let data = Data::pattern(seed, 12_288);
        t.one().write_file("f", data.clone())?;
        let handle = t.one().open("f", &[ReadWrite])?;
        let hole = Operation::PunchHole { handle, offset: 4096, bytes: 4096 };
        t.one().call(hole).or_unsupported(&["EINVAL"])?;
        let mut expected = data.contents();
        expected[4096..8192].fill(0);
        same_data(&t.one().read_file("f")?, &expected)
    }),
    check(
        "statfs",
        "statfs gives a capacity, not more free than that, and names of 255 bytes",
        |t| match t.one().call(Operation::FileSystem { path: ".".into() })? {
            Answer::FileSystem { capacity_bytes, free_bytes, name_bytes_max } => {
                holds("the capacity is 0", capacity_bytes > 0)?;
                holds("more is free than there is", free_bytes <= capacity_bytes)?;
                same("longest name", name_bytes_max, 255)
            }
            other => Err(Failure::Lost(format!("{other:?}"))),
        },
    ),
];
