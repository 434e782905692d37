//! Checks of files that several nodes map into memory.
//! Expects data after msync(2) and through a new mapping or open. Never expects that open mappings agree.

use crate::bytes::Data;
use crate::check::{Check, check};
use crate::operation::Flag::{Read, ReadWrite};
use crate::operation::Operation;
use crate::trial::{Expect, same_data};

const BYTES: usize = 8192;

pub(super) const CHECKS: &[Check] = &[
    check(
        "mapped_write",
        "after msync each node that opens the file reads what another wrote to its mapping",
        |t| {
            let seed = t.seed();
            t.on(0).write_file("f", Data::pattern(seed, BYTES))?;
            t.others()
                .try_for_each(|node| t.on(node).verify_file("f", Data::pattern(seed, BYTES)))?;
            let file = t.on(0).open("f", &[ReadWrite])?;
            let map = t.on(0).map(file, BYTES, true)?;
            t.on(0).map_write(map, 4000, Data::pattern(seed + 1, 1000))?;
            t.on(0).map_sync(map)?;
            let mut expected = Data::pattern(seed, BYTES).contents();
            expected[4000..5000].copy_from_slice(&Data::pattern(seed + 1, 1000).contents());
            for node in t.others() {
                same_data(&t.on(node).read_file("f")?, &expected)?;
            }
            Ok(())
        },
    ),
    check("mapped_read", "a new mapping shows what another node wrote", |t| {
        let seed = t.seed();
        for step in 0..3 {
            let data = Data::pattern(seed + step, BYTES);
            t.on(0).write_file("f", data.clone())?;
            for node in t.others() {
                let handle = t.on(node).open("f", &[Read])?;
                let map = Operation::Map { handle, bytes: BYTES, shared: true, writable: false };
                let map = match t.on(node).call(map).or_unsupported(&["ENODEV"])? {
                    crate::operation::Answer::Number(map) => map,
                    other => return Err(crate::trial::Failure::Lost(format!("{other:?}"))),
                };
                same_data(&t.on(node).map_read(map, 0, BYTES)?, &data.contents())?;
                t.on(node).unmap(map)?;
                t.on(node).close(handle)?;
            }
        }
        Ok(())
    }),
    check(
        "mapped_neighbours",
        "nodes that change parts of a page through mappings, in turn, lose none",
        |t| {
            let seed = t.seed();
            t.on(0).write_file("f", Data::pattern(seed, BYTES))?;
            let mut expected = Data::pattern(seed, BYTES).contents();
            for step in 0..8 {
                let (node, offset) = (step % t.count(), 100 * step);
                let file = t.on(node).open("f", &[ReadWrite])?;
                let map = t.on(node).map(file, BYTES, true)?;
                t.on(node).map_write(map, offset, "mapped")?;
                t.on(node).map_sync(map)?;
                t.on(node).unmap(map)?;
                t.on(node).close(file)?;
                expected[offset..offset + 6].copy_from_slice(b"mapped");
            }
            for node in t.all() {
                same_data(&t.on(node).read_file("f")?, &expected)?;
            }
            Ok(())
        },
    ),
];
