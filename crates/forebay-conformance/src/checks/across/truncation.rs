//! Checks that each node sees the size of a file that another node changed.
//! A read during a truncation may give zeros and bytes of several versions, but no other bytes.

use crate::bytes::Data;
use crate::check::{Check, check};
use crate::operation::Flag::{Create, Read, ReadWrite, Write};
use crate::operation::Loop;
use crate::trial::{expect_zero, same, same_data, same_data_of};

pub(super) const CHECKS: &[Check] = &[
    check(
        "extended",
        "each node sees the size of a file that another extends, at each step",
        |t| {
            let seed = t.seed();
            let file = t.on(0).open("f", &[Write, Create])?;
            for step in 0..5 {
                t.on(0).write_at(file, step * 1000, Data::pattern(seed, 1000))?;
                for node in t.others() {
                    same("size", t.on(node).stat("f")?.size_bytes, (step + 1) * 1000)?;
                }
            }
            Ok(())
        },
    ),
    check(
        "extended_while_open",
        "who has a file open sees its new size and reads its new end",
        |t| {
            let seed = t.seed();
            t.on(0).write_file("f", Data::pattern(seed, 1000))?;
            let file = t.on(0).open("f", &[Write])?;
            let mut reading = Vec::new();
            for node in t.others() {
                let handle = t.on(node).open("f", &[Read])?;
                t.on(node).verify(handle, 0, Data::pattern(seed, 1000))?;
                same("size", t.on(node).stat_handle(handle)?.size_bytes, 1000)?;
                reading.push((node, handle));
            }
            t.on(0).write_at(file, 1000, "the new end")?;
            for (node, handle) in reading {
                same("size", t.on(node).stat_handle(handle)?.size_bytes, 1011)?;
                same_data_of("end", &t.on(node).read_at(handle, 1000, 100)?, b"the new end")?;
            }
            Ok(())
        },
    ),
    check("truncated", "each node sees the size of a file that another cuts, and its end", |t| {
        let seed = t.seed();
        t.on(0).write_file("f", Data::pattern(seed, 10_000))?;
        for bytes in [7000, 3000, 0] {
            t.others().try_for_each(|node| t.on(node).stat("f").map(drop))?;
            t.on(0).truncate("f", bytes as u64)?;
            for node in t.others() {
                same("size", t.on(node).stat("f")?.size_bytes, bytes as u64)?;
                t.on(node).verify_file("f", Data::pattern(seed, bytes))?;
            }
        }
        Ok(())
    }),
    check(
        "truncated_and_extended",
        "old bytes do not come back after another node cut and extended a file",
        |t| {
            let seed = t.seed();
            t.on(0).write_file("f", Data::pattern(seed, 10_000))?;
            t.others()
                .try_for_each(|node| t.on(node).verify_file("f", Data::pattern(seed, 10_000)))?;
            t.on(0).truncate("f", 100)?;
            t.on(0).truncate("f", 10_000)?;
            let mut expected = Data::pattern(seed, 100).contents();
            expected.resize(10_000, 0);
            for node in t.others() {
                same_data(&t.on(node).read_file("f")?, &expected)?;
            }
            Ok(())
        },
    ),
    check(
        "write_after_truncate",
        "a node that has a file open writes where it means to after another cut it",
        |t| {
            let seed = t.seed();
            t.on(0).write_file("f", Data::pattern(seed, 5000))?;
            for node in t.others() {
                let file = t.on(node).open("f", &[ReadWrite])?;
                t.on(node).verify(file, 0, Data::pattern(seed, 4))?;
                t.on(0).truncate("f", 0)?;
                t.on(node).write_at(file, 10, "end")?;
                t.on(0).verify_file("f", "\0\0\0\0\0\0\0\0\0\0end")?;
                t.on(0).write_file("f", Data::pattern(seed, 5000))?;
            }
            Ok(())
        },
    ),
    check(
        "truncate_while_reading",
        "reads while another node cuts and writes give its bytes or zeros",
        |t| {
            let (seed, count, bytes) = (t.seed(), 40, 3000);
            t.on(0).write_file("f", Data::pattern(seed, bytes))?;
            let reading =
                Loop::ReadTruncated { path: "f".into(), count, seed, patterns: count, bytes };
            let mut loops = vec![Loop::Truncate { path: "f".into(), count, seed, bytes }];
            loops.resize(t.count(), reading);
            let answers = t.together(loops)?;
            answers[1..].iter().try_for_each(|answer| expect_zero("wrong reads", answer))?;
            let last = Data::pattern(seed + count as u64 - 1, bytes);
            t.others().try_for_each(|node| t.on(node).verify_file("f", last.clone()))
        },
    ),
];
