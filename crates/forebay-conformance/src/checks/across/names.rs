//! Checks that each node sees the names that another node changed.
//! A node that has looked a name up before must not answer from its cache later.

use crate::check::{Check, check};
use crate::operation::Flag::{Read, ReadWrite};
use crate::operation::Kind;
use crate::trial::{Expect, same, same_data_of};

pub(super) const CHECKS: &[Check] = &[
    check("created", "each node sees a new file at once", |t| {
        for number in 0..5 {
            let name = format!("f{number}");
            t.on(0).write_file(&name, "data")?;
            for node in t.others() {
                same("size", t.on(node).stat(&name)?.size_bytes, 4)?;
                t.on(node).access(&name)?;
            }
        }
        Ok(())
    }),
    check(
        "negative_lookup",
        "who has looked for a missing file sees it when another node creates it",
        |t| {
            t.others().try_for_each(|node| t.on(node).stat("f").fails_with(&["ENOENT"]))?;
            t.others()
                .try_for_each(|node| t.on(node).open("f", &[Read]).fails_with(&["ENOENT"]))?;
            t.on(0).write_file("f", "data")?;
            t.others().try_for_each(|node| t.on(node).stat("f").map(drop))?;
            t.others().try_for_each(|node| t.on(node).verify_file("f", "data"))
        },
    ),
    check(
        "negative_lookup_of_directory",
        "who has looked for a missing directory sees it when another makes it",
        |t| {
            t.others().try_for_each(|node| t.on(node).list("d").fails_with(&["ENOENT"]))?;
            t.on(0).make_directory("d")?;
            for node in t.others() {
                t.on(node).write_file(&format!("d/{node}"), "data")?;
            }
            same("number of names", t.on(0).list("d")?.len(), t.count() - 1)
        },
    ),
    check(
        "negative_lookup_of_rename",
        "who has looked for a missing file sees it when another renames to it",
        |t| {
            t.on(0).write_file("a", "data")?;
            t.others().try_for_each(|node| t.on(node).stat("b").fails_with(&["ENOENT"]))?;
            t.on(0).rename("a", "b")?;
            t.others().try_for_each(|node| t.on(node).stat("b").map(drop))?;
            t.others().try_for_each(|node| t.on(node).verify_file("b", "data"))
        },
    ),
    check("unlinked", "a file that one node removes is gone on each", |t| {
        t.on(0).write_file("f", "data")?;
        t.others().try_for_each(|node| t.on(node).stat("f").map(drop))?;
        t.others().try_for_each(|node| t.on(node).verify_file("f", "data"))?;
        t.on(0).unlink("f")?;
        t.others().try_for_each(|node| t.on(node).stat("f").fails_with(&["ENOENT"]))?;
        t.others().try_for_each(|node| t.on(node).open("f", &[Read]).fails_with(&["ENOENT"]))
    }),
    check(
        "recreated",
        "a file that one node removes and creates again is the new one on each",
        |t| {
            t.on(0).write_file("f", "the old data")?;
            t.others().try_for_each(|node| t.on(node).verify_file("f", "the old data"))?;
            t.on(0).unlink("f")?;
            t.on(0).write_file("f", "new")?;
            for node in t.others() {
                same("size", t.on(node).stat("f")?.size_bytes, 3)?;
                t.on(node).verify_file("f", "new")?;
            }
            Ok(())
        },
    ),
    check("renamed", "a file that one node renames has its new name only, on each", |t| {
        t.on(0).write_file("a", "data")?;
        t.others().try_for_each(|node| t.on(node).stat("a").map(drop))?;
        t.on(0).rename("a", "b")?;
        t.others().try_for_each(|node| t.on(node).stat("a").fails_with(&["ENOENT"]))?;
        t.others().try_for_each(|node| t.on(node).verify_file("b", "data"))
    }),
    check("renamed_over", "a file that one node replaces by rename is the new one on each", |t| {
        t.on(0).write_file("f", "the old data")?;
        for step in 0..5 {
            t.others().try_for_each(|node| t.on(node).stat("f").map(drop))?;
            let data = format!("step {step}");
            t.on(0).write_file("new", &*data)?;
            t.on(0).rename("new", "f")?;
            t.others().try_for_each(|node| t.on(node).verify_file("f", &*data))?;
        }
        Ok(())
    }),
    check(
        "renamed_over_open_file",
        "who has a file open keeps its data when another node replaces it",
        |t| {
            for node in t.others() {
                t.on(0).write_file("f", "the old data")?;
                let old = t.on(node).open("f", &[ReadWrite])?;
                t.on(0).write_file("new", "new")?;
                t.on(0).rename("new", "f")?;
                t.on(node).verify(old, 0, "the old data")?;
                t.on(node).write_at(old, 0, "THE")?;
                t.on(node).verify(old, 0, "THE old data")?;
                t.on(node).verify_file("f", "new")?;
            }
            Ok(())
        },
    ),
    check(
        "unlinked_while_open",
        "who has a file open keeps its data when another node removes it",
        |t| {
            for node in t.others() {
                t.on(0).write_file("f", "data")?;
                let file = t.on(node).open("f", &[ReadWrite])?;
                t.on(0).unlink("f")?;
                t.on(node).verify(file, 0, "data")?;
                t.on(node).write_at(file, 4, " more")?;
                t.on(node).verify(file, 0, "data more")?;
                t.on(node).stat("f").fails_with(&["ENOENT"])?;
            }
            Ok(())
        },
    ),
    check("kind_changed", "a file that one node replaces by a directory is one on each", |t| {
        t.on(0).write_file("n", "data")?;
        t.others().try_for_each(|node| t.on(node).stat("n").map(drop))?;
        t.on(0).unlink("n")?;
        t.on(0).make_directory("n")?;
        for node in t.others() {
            same("kind", t.on(node).stat("n")?.kind, Kind::Directory)?;
            t.on(node).write_file(&format!("n/{node}"), "data")?;
        }
        Ok(())
    }),
    check(
        "symlink_changed",
        "a symlink that one node replaces leads each to the new target",
        |t| {
            t.on(0).write_file("a", "a")?;
            t.on(0).write_file("b", "b")?;
            t.on(0).symlink("a", "s").or_unsupported(&["EPERM"])?;
            t.others().try_for_each(|node| t.on(node).verify_file("s", "a"))?;
            t.on(0).symlink("b", "new")?;
            t.on(0).rename("new", "s")?;
            for node in t.others() {
                same_data_of("target", &t.on(node).read_link("s")?, b"b")?;
                t.on(node).verify_file("s", "b")?;
            }
            Ok(())
        },
    ),
];
