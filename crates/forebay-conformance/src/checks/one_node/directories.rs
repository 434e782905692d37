//! Checks of directories on one node: creation, removal and complete listings.

use std::collections::BTreeMap;

use crate::bytes::Bytes;
use crate::check::{Check, check};
use crate::operation::{Kind, Loop};
use crate::trial::{Expect, Trial, Verdict, broken, holds, same};

/// More names than a listing reads at once: the C library reads 32 KiB, which is 1,024 of these names.
const NAMES: usize = 1400;

pub(super) const CHECKS: &[Check] = &[
    check("make_directory", "a new directory is empty, and obeys the umask", |t| {
        t.one().make_directory("d")?;
        let found = t.one().stat("d")?;
        same("kind, mode", (found.kind, found.mode & 0o777), (Kind::Directory, 0o755))?;
        same("names", t.one().list("d")?, Vec::new())
    }),
    check("make_existing_directory", "mkdir of an existing name gives EEXIST", |t| {
        t.one().make_directory("d")?;
        t.one().make_directory("d").fails_with(&["EEXIST"])?;
        t.one().write_file("f", "")?;
        t.one().make_directory("f").fails_with(&["EEXIST"])
    }),
    check("make_directory_in_missing", "mkdir in a missing directory gives ENOENT", |t| {
        t.one().make_directory("no/d").fails_with(&["ENOENT"])
    }),
    check("remove_directory", "a removed directory is gone", |t| {
        t.one().make_directory("d")?;
        t.one().remove_directory("d")?;
        t.one().stat("d").fails_with(&["ENOENT"])
    }),
    check("remove_full_directory", "rmdir of a full directory gives ENOTEMPTY or EEXIST", |t| {
        t.one().make_directory("d")?;
        t.one().write_file("d/f", "data")?;
        t.one().remove_directory("d").fails_with(&["ENOTEMPTY", "EEXIST"])?;
        t.one().verify_file("d/f", "data")
    }),
    check("remove_file_as_directory", "rmdir of a file gives ENOTDIR", |t| {
        t.one().write_file("f", "")?;
        t.one().remove_directory("f").fails_with(&["ENOTDIR"])
    }),
    check("remove_missing_directory", "rmdir of a missing directory gives ENOENT", |t| {
        t.one().remove_directory("d").fails_with(&["ENOENT"])
    }),
    check("create_in_removed_directory", "a removed directory takes no names: ENOENT", |t| {
        t.one().make_directory("d")?;
        let open = t.one().open_directory("d")?;
        t.one().remove_directory("d")?;
        same("names", t.one().next_names(open, 10)?, Vec::new())?;
        t.one().write_file("d/f", "").fails_with(&["ENOENT"])
    }),
    check("directory_times", "a new name and a removed name change the directory's times", |t| {
        t.one().make_directory("d")?;
        for step in ["create", "remove"] {
            t.one().set_times("d", 1_000_000_000, 1_000_000_000)?;
            if step == "create" {
                t.one().write_file("d/f", "")?
            } else {
                t.one().unlink("d/f")?
            }
            if t.one().stat("d")?.modified_ns <= 1_000_000_000 {
                return broken(format!("the modification time is older than: {step}"));
            }
        }
        Ok(())
    }),
    check(
        "directory_times_of_move",
        "a name that moves changes the times of both directories",
        |t| {
            t.one().make_directory("from")?;
            t.one().make_directory("to")?;
            t.one().write_file("from/f", "")?;
            t.one().make_directory("from/d")?;
            for name in ["f", "d"] {
                for directory in ["from", "to"] {
                    t.one().set_times(directory, 1_000_000_000, 1_000_000_000)?;
                    t.one().stat(directory)?;
                }
                t.one().rename(&format!("from/{name}"), &format!("to/{name}"))?;
                for directory in ["from", "to"] {
                    let time_ns = t.one().stat(directory)?.modified_ns;
                    holds("the time of a directory is stale", time_ns > 1_000_000_000)?;
                }
            }
            Ok(())
        },
    ),
    check("list_complete", "a listing has each of 1,000 names once", |t| {
        t.one().run(Loop::Create { prefix: "f".into(), count: 1000 })?;
        let mut expected: Vec<Bytes> =
            (0..1000).map(|number| format!("f{number}").into()).collect();
        expected.sort_unstable();
        let found = t.one().list(".")?;
        same("number of names", found.len(), 1000)?;
        same("names", found, expected)
    })
    .costs(5),
    check("list_while_removing", "names that stay are listed once while others are removed", |t| {
        listing_while(t, |t| {
            t.one().run(Loop::Remove { prefix: "gone".into(), count: NAMES / 2 }).map(drop)
        })
    })
    .costs(10),
    check("list_while_creating", "names that stay are listed once while others are created", |t| {
        listing_while(t, |t| {
            t.one().run(Loop::Create { prefix: "new".into(), count: NAMES / 2 }).map(drop)
        })
    })
    .costs(10),
];

/// Lists a directory in two parts, between which names change.
fn listing_while(
    t: &mut Trial<'_>,
    change: impl FnOnce(&mut Trial<'_>) -> crate::trial::OperationResult<()>,
) -> Verdict {
    t.one().run(Loop::Create { prefix: "stays".into(), count: NAMES / 2 })?;
    t.one().run(Loop::Create { prefix: "gone".into(), count: NAMES / 2 })?;
    let open = t.one().open_directory(".")?;
    let mut seen: BTreeMap<Bytes, usize> = BTreeMap::new();
    let mut first = t.one().next_names(open, 100)?;
    change(t)?;
    while !first.is_empty() {
        for name in first {
            *seen.entry(name).or_default() += 1;
        }
        first = t.one().next_names(open, 1000)?;
    }
    if let Some((name, times)) = seen.iter().find(|(_, times)| **times != 1) {
        return broken(format!("{name:?} is listed {times} times"));
    }
    let missing =
        (0..NAMES / 2).find(|number| !seen.contains_key(&format!("stays{number}").into()));
    missing.map_or(Ok(()), |number| broken(format!("stays{number} is not listed")))
}
