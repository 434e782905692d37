//! Checks that each node reads the data that another node wrote.
//! Some checks read before the writer closes the file, so close-to-open consistency does not pass.

use crate::bytes::Data;
use crate::check::{Check, check};
use crate::operation::Flag::{Append, Create, Read, ReadWrite, Write};
use crate::operation::Loop;
use crate::trial::{same, same_data};

pub(super) const CHECKS: &[Check] = &[
    check(
        "read_after_write",
        "each node reads every byte of a file that one node has written",
        |t| {
            let seed = t.seed();
            let data = Data::pattern(seed, 300_001);
            t.on(0).write_file("f", data.clone())?;
            t.others().try_for_each(|node| t.on(node).verify_file("f", data.clone()))
        },
    ),
    check("read_while_open", "each node reads what one node wrote and has not closed", |t| {
        let seed = t.seed();
        let data = Data::pattern(seed, 10_000);
        let file = t.on(0).open("f", &[ReadWrite, Create])?;
        t.on(0).write_at(file, 0, data.clone())?;
        t.others().try_for_each(|node| t.on(node).verify_file("f", data.clone()))
    }),
    check("overwritten", "who has read a file and opens it again reads its new bytes", |t| {
        let seed = t.seed();
        for step in 0..3 {
            let data = Data::pattern(seed + step, 50_000);
            t.on(0).write_file("f", data.clone())?;
            t.others().try_for_each(|node| t.on(node).verify_file("f", data.clone()))?;
        }
        Ok(())
    }),
    check("overwritten_while_open", "who has a file open reads its new bytes at once", |t| {
        let seed = t.seed();
        t.on(0).write_file("f", Data::pattern(seed, 20_000))?;
        let file = t.on(0).open("f", &[ReadWrite])?;
        let mut reading = Vec::new();
        for node in t.others() {
            let handle = t.on(node).open("f", &[Read])?;
            t.on(node).verify(handle, 0, Data::pattern(seed, 20_000))?;
            reading.push((node, handle));
        }
        for step in 1..4 {
            let data = Data::pattern(seed + step, 20_000);
            t.on(0).write_at(file, 0, data.clone())?;
            for (node, handle) in &reading {
                t.on(*node).verify(*handle, 0, data.clone())?;
            }
        }
        Ok(())
    }),
    check(
        "overwritten_within_page",
        "a few bytes that change within a page are seen, and no others",
        |t| {
            let seed = t.seed();
            let mut expected = Data::pattern(seed, 4096).contents();
            t.on(0).write_file("f", Data::pattern(seed, 4096))?;
            t.others()
                .try_for_each(|node| t.on(node).verify_file("f", Data::pattern(seed, 4096)))?;
            let file = t.on(0).open("f", &[Write])?;
            t.on(0).write_at(file, 1001, "changed")?;
            expected[1001..1008].copy_from_slice(b"changed");
            for node in t.others() {
                same_data(&t.on(node).read_file("f")?, &expected)?;
            }
            Ok(())
        },
    ),
    check(
        "overwritten_same_size",
        "new bytes are seen although size and modification time stay",
        |t| {
            let seed = t.seed();
            t.on(0).write_file("f", Data::pattern(seed, 5000))?;
            t.on(0).set_times("f", 1_000_000_000, 1_000_000_000)?;
            t.others()
                .try_for_each(|node| t.on(node).verify_file("f", Data::pattern(seed, 5000)))?;
            t.on(0).write_file("f", Data::pattern(seed + 1, 5000))?;
            t.on(0).set_times("f", 1_000_000_000, 1_000_000_000)?;
            t.others()
                .try_for_each(|node| t.on(node).verify_file("f", Data::pattern(seed + 1, 5000)))
        },
    ),
    check(
        "neighbours_in_page",
        "nodes that write one byte each of a page, in turn, lose none",
        |t| {
            let seed = t.seed();
            t.on(0).write_file("f", Data::pattern(seed, 4096))?;
            let mut expected = Data::pattern(seed, 4096).contents();
            let mut files = Vec::new();
            for node in t.all() {
                files.push(t.on(node).open("f", &[ReadWrite])?);
            }
            for (offset, byte) in expected.iter_mut().enumerate().skip(100).take(40) {
                let node = offset % t.count();
                t.on(node).write_at(files[node], offset as u64, "!")?;
                *byte = b'!';
            }
            for node in t.all() {
                same_data(&t.on(node).read_at(files[node], 0, 4097)?, &expected)?;
            }
            Ok(())
        },
    ),
    check(
        "records_at_the_same_time",
        "nodes that write interleaved records at the same time lose no byte",
        |t| {
            let (records, bytes, nodes) = (100, 47, t.count());
            t.on(0).write_file("f", "")?;
            let seed = |node: usize| 1_000_000 * (node as u64 + 1);
            let loops = (0..nodes).map(|node| Loop::WriteStrided {
                path: "f".into(),
                first: (node * bytes) as u64,
                stride: (nodes * bytes) as u64,
                count: records,
                seed: seed(node),
                bytes,
            });
            t.together(loops.collect())?;
            let mut expected = Vec::new();
            for record in 0..records {
                for node in 0..nodes {
                    expected.extend(Data::pattern(seed(node) + record as u64, bytes).contents());
                }
            }
            for node in t.all() {
                let read = t.on(node).read_file("f")?;
                same("size", read.len(), expected.len())?;
                let wrong = crate::bytes::first_difference(&read, &expected);
                same("first differing record", wrong.map(|offset| offset / bytes), None)?;
            }
            Ok(())
        },
    ),
    check(
        "in_turn",
        "nodes that write and read one file in turn always read the last write",
        |t| {
            let seed = t.seed();
            t.on(0).write_file("f", "")?;
            let mut files = Vec::new();
            for node in t.all() {
                files.push(t.on(node).open("f", &[ReadWrite])?);
            }
            for step in 0..20 {
                let (writer, reader) = (step % t.count(), (step + 1) % t.count());
                let data = Data::pattern(seed + step as u64, 200);
                t.on(writer).write_at(files[writer], 0, data.clone())?;
                t.on(reader).verify(files[reader], 0, data)?;
            }
            Ok(())
        },
    ),
    check("append_in_turn", "nodes that append to one file in turn append at its end", |t| {
        let mut files = Vec::new();
        for node in t.all() {
            files.push(t.on(node).open("f", &[Write, Create, Append])?);
        }
        let mut expected = String::new();
        for step in 0..12 {
            let (node, record) = (step % t.count(), format!("record {step};"));
            t.on(node).write(files[node], &*record)?;
            expected.push_str(&record);
        }
        t.all().try_for_each(|node| t.on(node).verify_file("f", &*expected))
    }),
    check("written_hole", "a hole that another node has read shows what is written into it", |t| {
        t.on(0).write_file("f", "")?;
        t.on(0).truncate("f", 100_000)?;
        let mut expected = vec![0; 100_000];
        for node in t.others() {
            same_data(&t.on(node).read_file("f")?, &expected)?;
        }
        let file = t.on(0).open("f", &[Write])?;
        t.on(0).write_at(file, 50_000, "data")?;
        expected[50_000..50_004].copy_from_slice(b"data");
        for node in t.others() {
            same_data(&t.on(node).read_file("f")?, &expected)?;
        }
        Ok(())
    }),
];
