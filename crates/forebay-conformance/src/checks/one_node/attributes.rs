//! Checks of modes, owners, times and extended attributes on one node.
//! Compares times that were set to the microsecond, since a file system may store no more.

use crate::check::{Check, check};
use crate::operation::Flag::{Read, ReadWrite};
use crate::operation::{Kind, Operation};
use crate::trial::{Expect, holds, same, same_data_of};

/// A time in the past, in nanoseconds.
const PAST_NS: i64 = 1_234_567_890_123_456_789;

pub(super) const CHECKS: &[Check] = &[
    check("change_mode", "chmod sets each permission bit", |t| {
        t.one().write_file("f", "")?;
        for mode in [0o000, 0o777, 0o640, 0o444] {
            t.one().change_mode("f", mode)?;
            same("mode", t.one().stat("f")?.mode, mode)?;
        }
        t.one().change_mode("no", 0o644).fails_with(&["ENOENT"])
    }),
    check("change_mode_of_directory", "chmod sets the sticky bit of a directory", |t| {
        t.one().make_directory("d")?;
        t.one().change_mode("d", 0o1770)?;
        same("mode", t.one().stat("d")?.mode, 0o1770)
    }),
    check("change_mode_while_open", "an open file sees its new mode", |t| {
        t.one().write_file("f", "")?;
        let file = t.one().open("f", &[Read])?;
        t.one().change_mode("f", 0o600)?;
        same("mode", t.one().stat_handle(file)?.mode, 0o600)
    }),
    check("change_owner", "root sets owner and group", |t| {
        t.one().write_file("f", "")?;
        t.one().change_owner("f", 1234, 5678).or_unsupported(&["EPERM", "EINVAL"])?;
        let found = t.one().stat("f")?;
        same("owner", (found.user, found.group), (1234, 5678))
    }),
    check("owner_of_new_file", "a new file belongs to the user of the process", |t| {
        t.one().write_file("f", "")?;
        match t.one().call(Operation::Hello)? {
            crate::operation::Answer::Facts { user, .. } => {
                same("owner", t.one().stat("f")?.user, user)
            }
            other => Err(crate::trial::Failure::Lost(format!("{other:?}"))),
        }
    }),
    check("set_times", "utimensat sets both times, to the microsecond or better", |t| {
        t.one().write_file("f", "")?;
        t.one().set_times("f", PAST_NS, PAST_NS + 1_000_000_000)?;
        let found = t.one().stat("f")?;
        let micro = |time_ns: i64| time_ns / 1000;
        same("access time", micro(found.accessed_ns), micro(PAST_NS))?;
        same("modification time", micro(found.modified_ns), micro(PAST_NS + 1_000_000_000))
    }),
    check("write_changes_time", "a write changes the modification time, a read does not", |t| {
        t.one().write_file("f", "data")?;
        let file = t.one().open("f", &[ReadWrite])?;
        t.one().set_times("f", PAST_NS, PAST_NS)?;
        t.one().read_at(file, 0, 4)?;
        same("after a read", t.one().stat("f")?.modified_ns / 1000, PAST_NS / 1000)?;
        t.one().write_at(file, 0, "x")?;
        t.one().sync(file)?;
        holds("a write leaves the modification time", t.one().stat("f")?.modified_ns > PAST_NS)
    }),
    check("truncate_changes_time", "truncate changes the modification time", |t| {
        t.one().write_file("f", "data")?;
        t.one().set_times("f", PAST_NS, PAST_NS)?;
        t.one().truncate("f", 2)?;
        holds("truncate leaves the modification time", t.one().stat("f")?.modified_ns > PAST_NS)
    }),
    check(
        "chmod_keeps_time",
        "chmod leaves the modification time and changes the time of change",
        |t| {
            t.one().write_file("f", "data")?;
            t.one().set_times("f", PAST_NS, PAST_NS)?;
            t.one().change_mode("f", 0o600)?;
            let found = t.one().stat("f")?;
            same("modification time", found.modified_ns / 1000, PAST_NS / 1000)?;
            holds("the time of change is set back", found.changed_ns > PAST_NS)
        },
    ),
    check("fifo", "a FIFO is one for stat", |t| {
        let fifo = Operation::MakeFifo { path: "p".into(), mode: 0o600 };
        t.one().call(fifo).or_unsupported(&["EPERM"])?;
        let found = t.one().stat("p")?;
        same("kind, mode", (found.kind, found.mode), (Kind::Other, 0o600))
    }),
    check("attribute", "an extended attribute keeps its value, also a second one", |t| {
        t.one().write_file("f", "")?;
        t.one().set_attribute("f", "user.a", b"one\0two")?;
        same_data_of("value", &t.one().get_attribute("f", "user.a")?, b"one\0two")?;
        t.one().set_attribute("f", "user.a", b"")?;
        same("value", t.one().get_attribute("f", "user.a")?, Vec::new())?;
        t.one().set_attribute("f", "user.a", &[b'v'; 1024])?;
        same("value", t.one().get_attribute("f", "user.a")?, vec![b'v'; 1024])
    }),
    check("attribute_list", "extended attributes are listed, removed, and missing: ENODATA", |t| {
        t.one().write_file("f", "")?;
        t.one().set_attribute("f", "user.a", b"1")?;
        t.one().set_attribute("f", "user.b", b"2")?;
        let ours = |names: Vec<crate::bytes::Bytes>| {
            let mut ours: Vec<_> =
                names.into_iter().filter(|name| name.0.starts_with(b"user.")).collect();
            ours.sort_unstable();
            ours
        };
        let listed = ours(t.one().list_attributes("f")?);
        same("names", listed, vec!["user.a".into(), "user.b".into()])?;
        t.one().remove_attribute("f", "user.a")?;
        t.one().get_attribute("f", "user.a").fails_with(&["ENODATA"])?;
        same("names", ours(t.one().list_attributes("f")?), vec!["user.b".into()])
    }),
    check("attribute_of_directory", "a directory has extended attributes", |t| {
        t.one().make_directory("d")?;
        t.one().set_attribute("d", "user.a", b"1")?;
        same_data_of("value", &t.one().get_attribute("d", "user.a")?, b"1")
    }),
];
