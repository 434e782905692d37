//! Checks of hard links and symbolic links on one node.
//! A link that is refused with EPERM counts as not supported, except a hard link to a directory: EPERM is required.

use crate::check::{Check, check};
use crate::operation::Flag::{Read, Write};
use crate::operation::Kind;
use crate::trial::{Expect, same, same_data_of};

pub(super) const CHECKS: &[Check] = &[
    check("link_counts", "hard links share the inode, and the link count follows them", |t| {
        t.one().write_file("a", "data")?;
        t.one().link("a", "b").or_unsupported(&["EPERM"])?;
        let (one, other) = (t.one().stat("a")?, t.one().stat("b")?);
        same("inode", other.inode, one.inode)?;
        same("links", (one.links, other.links), (2, 2))?;
        t.one().unlink("a")?;
        same("links", t.one().stat("b")?.links, 1)?;
        t.one().verify_file("b", "data")
    }),
    check("link_shares_data", "what is written through one link is read through the other", |t| {
        t.one().write_file("a", "old")?;
        t.one().link("a", "b").or_unsupported(&["EPERM"])?;
        let file = t.one().open("a", &[Write])?;
        t.one().write_at(file, 0, "new data")?;
        t.one().verify_file("b", "new data")
    }),
    check("replaced_link", "a file keeps its other names when a rename replaces one", |t| {
        t.one().write_file("a", "data")?;
        t.one().link("a", "b").or_unsupported(&["EPERM"])?;
        t.one().write_file("new", "")?;
        let file = t.one().open("new", &[Read])?;
        t.one().rename("new", "b")?;
        t.one().sync(file)?; // it is in the journal then
        same("links", t.one().stat("a")?.links, 1)?;
        same("names", t.one().list(".")?, vec!["a".into(), "b".into()])?;
        t.one().verify_file("a", "data")
    }),
    check("link_existing", "a hard link does not replace a file: EEXIST", |t| {
        t.one().write_file("a", "a")?;
        t.one().write_file("b", "b")?;
        t.one().link("a", "b").or_unsupported_then(&["EPERM"], &["EEXIST"])?;
        t.one().verify_file("b", "b")
    }),
    check("link_missing", "a hard link to a missing file gives ENOENT", |t| {
        t.one().link("a", "b").or_unsupported_then(&["EPERM"], &["ENOENT"])
    }),
    check("link_directory", "a hard link to a directory gives EPERM", |t| {
        t.one().make_directory("d")?;
        t.one().link("d", "e").fails_with(&["EPERM"])
    }),
    check("symlink", "a symlink keeps its target's text, and its size is the length of it", |t| {
        t.one().symlink("some/where", "s").or_unsupported(&["EPERM"])?;
        same_data_of("target", &t.one().read_link("s")?, b"some/where")?;
        let found = t.one().stat_link("s")?;
        same("kind, size", (found.kind, found.size_bytes), (Kind::Symlink, 10))
    }),
    check("symlink_follow", "a path through symlinks leads to the target", |t| {
        t.one().make_directory("d")?;
        t.one().write_file("d/f", "data")?;
        t.one().symlink("d", "s").or_unsupported(&["EPERM"])?;
        t.one().symlink("s/f", "u")?;
        same("kind", t.one().stat("u")?.kind, Kind::File)?;
        t.one().verify_file("u", "data")?;
        t.one().verify_file("s/f", "data")
    }),
    check("symlink_dangling", "a symlink without target gives ENOENT when it is followed", |t| {
        t.one().symlink("no", "s").or_unsupported(&["EPERM"])?;
        t.one().stat("s").fails_with(&["ENOENT"])?;
        t.one().open("s", &[Read]).fails_with(&["ENOENT"])
    }),
    check("symlink_loop", "symlinks that lead to each other give ELOOP", |t| {
        t.one().symlink("b", "a").or_unsupported(&["EPERM"])?;
        t.one().symlink("a", "b")?;
        t.one().open("a", &[Read]).fails_with(&["ELOOP"])?;
        t.one().stat("b").fails_with(&["ELOOP"])
    }),
    check("symlink_existing", "a symlink does not replace a file: EEXIST", |t| {
        t.one().write_file("f", "data")?;
        t.one().symlink("x", "f").or_unsupported_then(&["EPERM"], &["EEXIST"])?;
        t.one().verify_file("f", "data")
    }),
    check("symlink_unlink", "removing a symlink keeps its target", |t| {
        t.one().write_file("f", "data")?;
        t.one().symlink("f", "s").or_unsupported(&["EPERM"])?;
        t.one().unlink("s")?;
        t.one().stat_link("s").fails_with(&["ENOENT"])?;
        t.one().verify_file("f", "data")
    }),
    check("symlink_rename", "rename moves a symlink, not its target", |t| {
        t.one().write_file("f", "data")?;
        t.one().symlink("f", "s").or_unsupported(&["EPERM"])?;
        t.one().rename("s", "u")?;
        same_data_of("target", &t.one().read_link("u")?, b"f")?;
        t.one().verify_file("f", "data")
    }),
    check("symlink_long", "a symlink may have a target of 1,000 bytes", |t| {
        let target = "t".repeat(1000);
        t.one().symlink(&target, "s").or_unsupported(&["EPERM"])?;
        same("target", t.one().read_link("s")?, target.into_bytes())
    }),
    check("readlink_of_file", "readlink of a file gives EINVAL", |t| {
        t.one().write_file("f", "")?;
        t.one().read_link("f").fails_with(&["EINVAL"])
    }),
];
