//! Users and groups: IDs, names, and access to files. Names come from the name services.
//! Assumes that the name services answer: a look-up waits for them without a limit.
//! `user_id` is the real user; `is_root` and `own_group_id` are about the effective ones.

use std::ffi::CString;
use std::path::Path;

use nix::unistd::{Gid, Group, Uid, User, getgrouplist};
use rustix::fs::{Access, XattrFlags};
use rustix::io::Errno;

use crate::{Result, files, with_context};

/// Whether this process runs as root, and so can give files to any user.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Groups that this process may give its files to.
pub fn groups() -> Vec<u32> {
    let groups = rustix::process::getgroups().unwrap_or_default();
    let mut groups: Vec<_> = groups.into_iter().map(rustix::fs::Gid::as_raw).collect();
    if let Some(unknown) = unknown_group() {
        groups.retain(|group| *group != unknown);
    }
    groups.push(own_group_id());
    groups
}

/// Whether this process is in a user namespace that knows only some users and groups.
pub fn in_user_namespace() -> bool {
    unknown_group().is_some()
}

/// The number by which a user namespace shows all groups that it does not know: user_namespaces(7). None
/// where all are known.
fn unknown_group() -> Option<u32> {
    let read = |path: &str| files::read_lossy(Path::new(path)).ok();
    let known = read("/proc/self/gid_map")?;
    if known.split_whitespace().eq(["0", "0", "4294967295"]) {
        return None;
    }
    read("/proc/sys/kernel/overflowgid")?.trim().parse().ok()
}

/// The supplementary groups of another process or thread; none if it has ended.
pub fn groups_of_process(number: u32) -> Option<Vec<u32>> {
    let status = files::read_lossy(Path::new(&format!("/proc/{number}/status"))).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Groups:"))?;
    Some(line.split_whitespace().filter_map(|group| group.parse().ok()).collect())
}

/// The ID of the user.
pub fn user_id() -> u32 {
    rustix::process::getuid().as_raw()
}

/// The group of this process.
pub fn own_group_id() -> u32 {
    rustix::process::getegid().as_raw()
}

/// The name of the user: `$USER`, else `$LOGNAME`, else from the name services, else the ID.
pub fn user_name() -> String {
    let name = std::env::var("USER").or_else(|_| std::env::var("LOGNAME"));
    name.unwrap_or_else(|_| user_named(user_id()))
}

/// The name of a user, or the ID if the user is not listed.
pub fn user_named(id: u32) -> String {
    let found = User::from_uid(Uid::from_raw(id)).ok().flatten();
    found.map_or_else(|| id.to_string(), |user| user.name)
}

/// The name of a group, or the ID if the group is not listed.
pub fn group_named(id: u32) -> String {
    let found = Group::from_gid(Gid::from_raw(id)).ok().flatten();
    found.map_or_else(|| id.to_string(), |group| group.name)
}

/// A user whom the name services list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// The user's ID.
    pub user: u32,
    /// The user's name.
    pub name: String,
    /// The primary group.
    pub group: u32,
    /// All groups, the primary one included.
    pub groups: Vec<u32>,
}

/// The account of a user; none if the name services do not list the ID.
pub fn account_of(id: u32) -> Result<Option<Account>> {
    let found = User::from_uid(Uid::from_raw(id)).map_err(std::io::Error::from);
    let shown = id.to_string();
    with_context(found, "look up the user", Path::new(&shown))?.map(account).transpose()
}

/// The account with this name; none if the name services do not list it.
pub fn account_named(name: &str) -> Result<Option<Account>> {
    let found = User::from_name(name).map_err(std::io::Error::from);
    with_context(found, "look up the user", Path::new(name))?.map(account).transpose()
}

fn account(user: User) -> Result<Account> {
    let name = CString::new(user.name.as_bytes()).map_err(std::io::Error::from);
    let groups = name.and_then(|name| Ok(getgrouplist(&name, user.gid)?));
    let groups = with_context(groups, "look up the groups of", Path::new(&user.name))?;
    Ok(Account {
        user: user.uid.as_raw(),
        name: user.name,
        group: user.gid.as_raw(),
        groups: groups.into_iter().map(Gid::as_raw).collect(),
    })
}

/// The ID of a group, from its name or ID; none if there is no such name.
pub fn group_id(group: &str) -> Result<Option<u32>> {
    if let Ok(number) = group.parse() {
        return Ok(Some(number));
    }
    let found = Group::from_name(group).map_err(std::io::Error::from);
    let found = with_context(found, "look up the group", Path::new(group))?;
    Ok(found.map(|group| group.gid.as_raw()))
}

/// The group of a file or directory.
pub fn group_of(path: &Path) -> Result<u32> {
    Ok(files::status(path)?.group)
}

/// Gives a file or directory to a group. An ordinary user must be a member of the group.
pub fn give_to_group(path: &Path, group: u32) -> Result<()> {
    let given = std::os::unix::fs::chown(path, None, Some(group));
    with_context(given, "give to a group", path)
}

/// Gives a directory's owner full access to files that others create there, and group and others
/// the rights of `mode`, by an inherited ACL (acl(5)) and not by umask. No effect without ACLs.
pub fn share_with_owner(directory: &Path, owner: u32, mode: u32) -> Result<()> {
    const VERSION: u32 = 2; // linux/posix_acl_xattr.h; the numbers are little-endian
    const NOBODY_ELSE: u32 = u32::MAX;
    const ALL: u16 = 0o7;
    let bits = |shift: u32| u16::try_from((mode >> shift) & 0o7).unwrap_or(0);
    let entries: [(u16, u16, u32); 5] = [
        (0x01, ALL, NOBODY_ELSE),     // the creator
        (0x02, ALL, owner),           // this user
        (0x04, bits(3), NOBODY_ELSE), // its group
        (0x10, ALL, NOBODY_ELSE),     // the mask: limits the two before
        (0x20, bits(0), NOBODY_ELSE), // others
    ];
    let mut list = VERSION.to_le_bytes().to_vec();
    for (who, rights, id) in entries {
        list.extend(who.to_le_bytes());
        list.extend(rights.to_le_bytes());
        list.extend(id.to_le_bytes());
    }
    let flags = XattrFlags::empty();
    match rustix::fs::setxattr(directory, "system.posix_acl_default", &list, flags) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
        set => with_context(set, "set what is inherited in", directory),
    }
}

/// Whether this process can list the directory and use its entries.
pub fn is_readable_dir(directory: &Path) -> bool {
    rustix::fs::access(directory, Access::READ_OK | Access::EXEC_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn account_has_its_primary_group_and_unknown_users_have_none() {
        let root = account_named("root").expect("users").expect("root");
        assert_eq!((root.user, root.group), (0, 0));
        assert!(root.groups.contains(&0));
        assert_eq!(account_of(0).expect("users"), Some(root));
        assert_eq!(account_of(4_000_000_000).expect("users"), None);
    }

    #[test]
    fn users_and_groups_have_names_or_numbers() {
        assert_eq!(user_named(0), "root");
        assert_eq!(user_named(4_000_000_000), "4000000000");
        assert_eq!(group_id("root").expect("groups"), Some(0));
        assert_eq!(group_id("77").expect("groups"), Some(77));
        assert_eq!(group_id("no such group").expect("groups"), None);
        assert_eq!(group_named(0), "root");
    }
}
