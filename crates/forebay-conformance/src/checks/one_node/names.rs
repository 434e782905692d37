//! Checks of names on one node: rename(2), unlink(2), and which names are valid.

use crate::check::{Check, check};
use crate::operation::Flag::{Read, ReadWrite};
use crate::operation::Replacement;
use crate::trial::{Expect, same};

pub(super) const CHECKS: &[Check] = &[
    check("rename", "a renamed file has its new name only, and keeps inode and data", |t| {
        t.one().write_file("a", "data")?;
        let inode = t.one().stat("a")?.inode;
        t.one().rename("a", "b")?;
        t.one().stat("a").fails_with(&["ENOENT"])?;
        same("inode", t.one().stat("b")?.inode, inode)?;
        t.one().verify_file("b", "data")
    }),
    check("rename_over_file", "rename replaces a file", |t| {
        t.one().write_file("a", "new")?;
        t.one().write_file("b", "old data")?;
        t.one().rename("a", "b")?;
        t.one().verify_file("b", "new")?;
        same("names", t.one().list(".")?, vec!["b".into()])
    }),
    check("rename_over_open_file", "who has a replaced file open keeps its data", |t| {
        t.one().write_file("a", "new")?;
        t.one().write_file("b", "old")?;
        let old = t.one().open("b", &[ReadWrite])?;
        t.one().rename("a", "b")?;
        t.one().verify(old, 0, "old")?;
        t.one().write_at(old, 0, "OLD")?;
        t.one().verify(old, 0, "OLD")?;
        t.one().verify_file("b", "new")
    }),
    check("rename_missing", "renaming a missing file gives ENOENT", |t| {
        t.one().rename("a", "b").fails_with(&["ENOENT"])
    }),
    check("rename_file_over_directory", "a file cannot replace a directory: EISDIR", |t| {
        t.one().write_file("f", "")?;
        t.one().make_directory("d")?;
        t.one().rename("f", "d").fails_with(&["EISDIR"])
    }),
    check("rename_directory_over_file", "a directory cannot replace a file: ENOTDIR", |t| {
        t.one().write_file("f", "")?;
        t.one().make_directory("d")?;
        t.one().rename("d", "f").fails_with(&["ENOTDIR"])
    }),
    check(
        "rename_over_empty_directory",
        "a directory replaces an empty one with all below it",
        |t| {
            t.one().make_directory("a")?;
            t.one().write_file("a/f", "data")?;
            t.one().make_directory("b")?;
            t.one().rename("a", "b")?;
            t.one().verify_file("b/f", "data")?;
            t.one().stat("a/f").fails_with(&["ENOENT"])
        },
    ),
    check(
        "rename_over_full_directory",
        "a directory cannot replace a full one: ENOTEMPTY or EEXIST",
        |t| {
            t.one().make_directory("a")?;
            t.one().make_directory("b")?;
            t.one().write_file("b/f", "data")?;
            t.one().rename("a", "b").fails_with(&["ENOTEMPTY", "EEXIST"])?;
            t.one().verify_file("b/f", "data")
        },
    ),
    check("rename_below_itself", "a directory cannot go below itself: EINVAL", |t| {
        t.one().make_directory("a")?;
        t.one().rename("a", "a/b").fails_with(&["EINVAL"])
    }),
    check("rename_same_file", "renaming a file over another of its links changes nothing", |t| {
        t.one().write_file("a", "data")?;
        t.one().link("a", "b").or_unsupported(&["EPERM"])?;
        t.one().rename("a", "b")?;
        same("names", t.one().list(".")?, vec!["a".into(), "b".into()])
    }),
    check("rename_without_replacing", "RENAME_NOREPLACE keeps an existing file: EEXIST", |t| {
        t.one().write_file("a", "a")?;
        t.one().write_file("b", "b")?;
        let refused = t.one().rename_with("a", "b", Replacement::Refuse);
        refused.or_unsupported_then(&["EINVAL"], &["EEXIST"])?;
        t.one().verify_file("b", "b")?;
        t.one().rename_with("a", "c", Replacement::Refuse)?;
        t.one().verify_file("c", "a")
    }),
    check("rename_exchange", "RENAME_EXCHANGE exchanges two files", |t| {
        t.one().write_file("a", "a")?;
        t.one().write_file("b", "b")?;
        t.one().rename_with("a", "b", Replacement::Exchange).or_unsupported(&["EINVAL"])?;
        t.one().verify_file("a", "b")?;
        t.one().verify_file("b", "a")
    }),
    check("unlink", "a removed file is gone", |t| {
        t.one().write_file("f", "data")?;
        t.one().unlink("f")?;
        t.one().stat("f").fails_with(&["ENOENT"])?;
        same("names", t.one().list(".")?, Vec::new())
    }),
    check("unlink_missing", "removing a missing file gives ENOENT", |t| {
        t.one().unlink("f").fails_with(&["ENOENT"])
    }),
    check("unlink_directory", "unlink of a directory gives EISDIR or EPERM", |t| {
        t.one().make_directory("d")?;
        t.one().unlink("d").fails_with(&["EISDIR", "EPERM"])
    }),
    check("unlink_while_open", "a removed file that is open keeps its data, with 0 links", |t| {
        t.one().write_file("f", "data")?;
        let file = t.one().open("f", &[ReadWrite])?;
        t.one().unlink("f")?;
        t.one().verify(file, 0, "data")?;
        t.one().write_at(file, 4, " more")?;
        t.one().verify(file, 0, "data more")?;
        same("links", t.one().stat_handle(file)?.links, 0)
    }),
    check("recreate", "a file that was removed and created again is another file", |t| {
        t.one().write_file("f", "old data")?;
        let old = t.one().open("f", &[Read])?;
        t.one().unlink("f")?;
        t.one().write_file("f", "new")?;
        t.one().verify_file("f", "new")?;
        t.one().verify(old, 0, "old data")
    }),
    check("name_of_255_bytes", "a name may have 255 bytes", |t| {
        let name = "n".repeat(255);
        t.one().write_file(&name, "data")?;
        t.one().verify_file(&name, "data")?;
        same("names", t.one().list(".")?, vec![name.into()])
    }),
    check("name_of_256_bytes", "a name of 256 bytes gives ENAMETOOLONG", |t| {
        t.one().write_file(&"n".repeat(256), "").fails_with(&["ENAMETOOLONG"])
    }),
    check("path_too_long", "a path of more than 4,096 bytes gives ENAMETOOLONG", |t| {
        t.one().stat(&"d/".repeat(2100)).fails_with(&["ENAMETOOLONG"])
    }),
    check("deep_path", "a file below 40 directories is found", |t| {
        let mut path = String::from("d");
        for _ in 0..40 {
            t.one().make_directory(&path)?;
            path.push_str("/directory");
        }
        t.one().write_file(&path, "data")?;
        t.one().verify_file(&path, "data")
    }),
    check("name_of_any_bytes", "a name may hold each byte but 0 and /", |t| {
        let bytes = (1..=255).filter(|byte| *byte != b'/').collect::<Vec<u8>>();
        for name in [&bytes[..127], &bytes[127..]] {
            let path = crate::bytes::Bytes(name.to_vec());
            let data = "data".into();
            t.one()
                .call(crate::operation::Operation::WriteFile { path: path.clone(), data })
                .or_unsupported(&["EILSEQ", "EINVAL"])?;
            let read = t.one().call(crate::operation::Operation::ReadFile { path })?;
            same("data", read, crate::operation::Answer::Bytes("data".into()))?;
        }
        let expected = [&bytes[..127], &bytes[127..]].map(crate::bytes::Bytes::from);
        same("names", t.one().list(".")?, expected.to_vec())
    }),
    check("name_with_case", "names that differ in case are two files", |t| {
        t.one().write_file("name", "small")?;
        t.one().write_file("NAME", "large")?;
        t.one().verify_file("name", "small")?;
        same("names", t.one().list(".")?, vec!["NAME".into(), "name".into()])
    }),
];
