//! Checks that each node sees the directories that another node changed.
//! While names change, only those that stay are compared: each must be listed exactly once.

use crate::bytes::Bytes;
use crate::check::{Check, check};
use crate::operation::{Flag, Loop};
use crate::trial::{Expect, expect_zero, holds, same};

pub(super) const CHECKS: &[Check] = &[
    check(
        "listed",
        "each node lists a name that another creates, and not one that it removes",
        |t| {
            let mut expected: Vec<Bytes> = Vec::new();
            for number in 0..5 {
                let name = format!("f{number}");
                t.on(0).write_file(&name, "")?;
                expected.push(name.into());
                for node in t.others() {
                    same("names", t.on(node).list(".")?, expected.clone())?;
                }
            }
            for number in 0..5 {
                t.on(0).unlink(&format!("f{number}"))?;
                expected.remove(0);
                for node in t.others() {
                    same("names", t.on(node).list(".")?, expected.clone())?;
                }
            }
            Ok(())
        },
    ),
    check(
        "listed_in_large",
        "each node lists all of 500 names that the nodes create at the same time",
        |t| {
            let each = 500 / t.count();
            let loops = t
                .all()
                .map(|node| Loop::Create { prefix: format!("n{node}.").into(), count: each });
            t.together(loops.collect())?;
            for node in t.all() {
                same("number of names", t.on(node).list(".")?.len(), each * t.count())?;
            }
            Ok(())
        },
    )
    .costs(4),
    check(
        "listed_while_changing",
        "names that stay are in each listing while other nodes create and remove",
        |t| {
            t.on(0).run(Loop::Create { prefix: "stays".into(), count: 300 })?;
            let listing = Loop::ListStable {
                path: ".".into(),
                count: 20,
                stable: "stays".into(),
                names: 300,
            };
            let mut loops = vec![listing];
            loops.extend(
                t.others()
                    .map(|node| Loop::Churn { prefix: format!("n{node}.").into(), count: 200 }),
            );
            expect_zero("wrong listings", &t.together(loops)?[0])
        },
    )
    .costs(4),
    check("removed_directory", "a directory that one node removes is gone on each", |t| {
        t.on(0).make_directory("d")?;
        t.others().try_for_each(|node| t.on(node).list("d").map(drop))?;
        t.on(0).remove_directory("d")?;
        t.others().try_for_each(|node| t.on(node).stat("d").fails_with(&["ENOENT"]))?;
        t.others().try_for_each(|node| t.on(node).write_file("d/f", "").fails_with(&["ENOENT"]))
    }),
    check(
        "full_directory",
        "a directory in which another node created a file cannot be removed",
        |t| {
            for node in t.others() {
                let directory = format!("d{node}");
                t.on(0).make_directory(&directory)?;
                same("names", t.on(0).list(&directory)?, Vec::new())?;
                t.on(node).write_file(&format!("{directory}/f"), "data")?;
                t.on(0).remove_directory(&directory).fails_with(&["ENOTEMPTY", "EEXIST"])?;
                t.on(0).verify_file(&format!("{directory}/f"), "data")?;
            }
            Ok(())
        },
    ),
    check("emptied_directory", "a directory that another node emptied can be removed", |t| {
        for node in t.others() {
            t.on(0).make_directory("d")?;
            t.on(0).write_file("d/f", "data")?;
            t.on(node).unlink("d/f")?;
            t.on(0).remove_directory("d")?;
        }
        Ok(())
    }),
    check(
        "renamed_directory",
        "each node finds files below a directory that another renames",
        |t| {
            t.on(0).make_directory("a")?;
            t.on(0).write_file("a/f", "data")?;
            t.others().try_for_each(|node| t.on(node).stat("a/f").map(drop))?;
            t.on(0).rename("a", "b")?;
            t.others().try_for_each(|node| t.on(node).verify_file("b/f", "data"))?;
            t.others().try_for_each(|node| t.on(node).stat("a/f").fails_with(&["ENOENT"]))
        },
    ),
    check(
        "renamed_directory_again",
        "a directory that one node moved is moved on by another, also back to its old place",
        |t| {
            for node in t.others() {
                let [old, new, next] = ["a", "b", "c"].map(|name| format!("{name}{node}"));
                for name in [&old, &new, &next] {
                    t.on(0).make_directory(name)?;
                }
                let [old, new, next] = [old, new, next].map(|name| format!("{name}/d"));
                t.on(0).make_directory(&old)?;
                t.on(0).write_file(&format!("{old}/f"), "data")?;
                let file = t.on(node).open(&format!("{old}/f"), &[Flag::Read])?;
                t.on(0).rename(&old, &new)?;
                t.on(node).rename(&new, &next)?;
                t.on(0).rename(&next, &new)?;
                t.on(node).rename(&new, &next)?;
                t.on(node).stat(&new).fails_with(&["ENOENT"])?;
                t.on(0).rename(&next, &old)?;
                t.on(node).rename(&old, &next)?;
                t.on(node).verify(file, 0, "data")?;
                t.on(0).verify_file(&format!("{next}/f"), "data")?;
            }
            Ok(())
        },
    ),
    check(
        "work_below_moving_directory",
        "nodes work below a directory that another renames meanwhile",
        |t| {
            t.on(0).make_directory("a")?;
            let mut loops = vec![Loop::Move { one: "a".into(), other: "b".into(), count: 60 }];
            for node in t.others() {
                let directory = t.on(node).open("a", &[Flag::Read, Flag::Directory])?;
                loops.push(Loop::WorkBelow {
                    directory,
                    prefix: format!("n{node}.").into(),
                    count: 30,
                });
            }
            let answers = t.together(loops)?;
            answers[1..]
                .iter()
                .try_for_each(|answer| expect_zero("files with wrong data", answer))?;
            for node in t.all() {
                same("number of names", t.on(node).list("a")?.len(), 30 * (t.count() - 1))?;
            }
            Ok(())
        },
    ),
    check(
        "time_of_directory",
        "each node sees that another's new name changed the time of a directory",
        |t| {
            t.on(0).make_directory("d")?;
            for node in t.others() {
                t.on(0).set_times("d", 1_000_000_000, 1_000_000_000)?;
                t.on(node).stat("d")?;
                t.on(0).write_file(&format!("d/{node}"), "")?;
                holds("its time is stale", t.on(node).stat("d")?.modified_ns > 1_000_000_000)?;
            }
            Ok(())
        },
    ),
];
