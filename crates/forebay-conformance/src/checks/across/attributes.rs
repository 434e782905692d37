//! Checks that each node sees the attributes that another node changed.
//! `owner` needs root: for another user it is not supported.

use crate::check::{Check, check};
use crate::operation::Flag::{Read, Write};
use crate::trial::{Expect, holds, same};

pub(super) const CHECKS: &[Check] = &[
    check("mode", "each node sees a mode that another sets", |t| {
        t.on(0).write_file("f", "")?;
        for mode in [0o600, 0o755, 0o444] {
            t.on(0).change_mode("f", mode)?;
            for node in t.others() {
                same("mode", t.on(node).stat("f")?.mode, mode)?;
            }
        }
        Ok(())
    }),
    check("mode_while_open", "who has a file open sees a mode that another node sets", |t| {
        t.on(0).write_file("f", "")?;
        for node in t.others() {
            t.on(0).change_mode("f", 0o644)?;
            let file = t.on(node).open("f", &[Read])?;
            same("mode", t.on(node).stat_handle(file)?.mode, 0o644)?;
            t.on(0).change_mode("f", 0o640)?;
            same("mode", t.on(node).stat_handle(file)?.mode, 0o640)?;
        }
        Ok(())
    }),
    check("mode_of_directory", "each node sees a directory's mode that another sets", |t| {
        t.on(0).make_directory("d")?;
        for mode in [0o700, 0o755] {
            t.on(0).change_mode("d", mode)?;
            for node in t.others() {
                same("mode", t.on(node).stat("d")?.mode, mode)?;
            }
        }
        Ok(())
    }),
    check("times", "each node sees times that another sets", |t| {
        t.on(0).write_file("f", "")?;
        for time_s in [1_000_000_000, 1_500_000_000] {
            let time_ns = time_s * 1_000_000_000;
            t.on(0).set_times("f", time_ns, time_ns)?;
            for node in t.others() {
                same("modification time", t.on(node).stat("f")?.modified_ns, time_ns)?;
            }
        }
        Ok(())
    }),
    check(
        "time_of_write",
        "each node sees that another's write changed the modification time",
        |t| {
            t.on(0).write_file("f", "data")?;
            t.on(0).set_times("f", 1_000_000_000, 1_000_000_000)?;
            t.others().try_for_each(|node| t.on(node).stat("f").map(drop))?;
            let file = t.on(0).open("f", &[Write])?;
            t.on(0).write_at(file, 0, "new")?;
            t.on(0).close(file)?;
            for node in t.others() {
                holds(
                    "the modification time is stale",
                    t.on(node).stat("f")?.modified_ns > 1_000_000_000,
                )?;
            }
            Ok(())
        },
    ),
    check("owner", "each node sees an owner that root sets on another", |t| {
        t.on(0).write_file("f", "")?;
        for user in [1234, 4321] {
            t.on(0).change_owner("f", user, user).or_unsupported(&["EPERM", "EINVAL"])?;
            for node in t.others() {
                let found = t.on(node).stat("f")?;
                same("owner", (found.user, found.group), (user, user))?;
            }
        }
        Ok(())
    }),
    check("links", "each node sees the link count that another changes", |t| {
        t.on(0).write_file("f", "data")?;
        t.others().try_for_each(|node| t.on(node).stat("f").map(drop))?;
        t.on(0).link("f", "g").or_unsupported(&["EPERM"])?;
        for node in t.others() {
            let (one, other) = (t.on(node).stat("f")?, t.on(node).stat("g")?);
            same("links", (one.links, other.links), (2, 2))?;
            same("inode", one.inode, other.inode)?;
        }
        t.on(0).unlink("g")?;
        for node in t.others() {
            same("links", t.on(node).stat("f")?.links, 1)?;
        }
        Ok(())
    }),
    check(
        "extended_attribute",
        "each node sees an extended attribute that another sets and removes",
        |t| {
            t.on(0).write_file("f", "")?;
            for value in ["one", "other value"] {
                t.on(0).set_attribute("f", "user.a", value.as_bytes())?;
                for node in t.others() {
                    same(
                        "value",
                        t.on(node).get_attribute("f", "user.a")?,
                        value.as_bytes().to_vec(),
                    )?;
                }
            }
            t.on(0).remove_attribute("f", "user.a")?;
            t.others().try_for_each(|node| {
                t.on(node).get_attribute("f", "user.a").fails_with(&["ENODATA"])
            })
        },
    ),
];
