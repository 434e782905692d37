//! Checks what a record names. `forebay clean` removes these paths and the scheduler's remote shell is called with the
//! host, so a record that somebody else wrote must not name anything but what a job makes.

use std::path::{Component, Path};

use forebay_engine::{MOUNTED_BELOW, NodesUse};
use forebay_host::files::{self, Kind};
use forebay_host::users;

use crate::Record;

/// Longest id and host name, in bytes.
const NAME_BYTES_MAX: usize = 255;

impl Record {
    /// Checks the id, the host, and the place, name and owner of each path.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub(crate) fn check(&self) -> Result<(), String> {
        let id = &self.id;
        let is_id =
            !id.is_empty() && id.len() <= NAME_BYTES_MAX && id.bytes().all(|c| c.is_ascii_digit());
        if !is_id {
            return Err(format!("{id:?} is not the id of a job"));
        }
        check_host(&self.runner.host)?;
        check_path(&self.job_directory, &format!("forebay-{id}"))?;
        if let Some(place) = &self.place {
            let root = &place.root;
            if let Some(nodes) = &self.nodes {
                check_nodes(nodes, id)?;
                if *root != nodes.mount() {
                    return Err(format!("{root:?} is not the allocation of job {id}"));
                }
            } else if !place.mounted {
                check_path(root, &format!("forebay-{}-{id}", users::user_id()))?;
            } else if *root != Path::new(MOUNTED_BELOW).join(id) {
                return Err(format!("{root:?} is not the allocation of job {id}"));
            }
        }
        if let Some(profile) = &self.profile {
            check_owned(profile)?; // of a series, the record of the run has a name of the caller's
        }
        if let Some(state) = &self.emulation {
            let name = state.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if !name.starts_with("forebay-pfs-") {
                return Err(format!("{state:?} is not the state of an emulation"));
            }
            check_path(state, name)?;
        }
        let is_within =
            |used: &crate::PersistentUse| is_plain(&used.file) && used.file.starts_with(&used.root);
        match self.persistent.iter().find(|used| !is_within(used)) {
            Some(used) => Err(format!("{:?} is not in a persistent allocation", used.file)),
            None => Ok(()),
        }
    }
}

/// A name that a remote shell takes for a host, not for an option.
fn check_host(host: &str) -> Result<(), String> {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let is_host =
        host.len() <= NAME_BYTES_MAX && host.starts_with(|c: char| c.is_ascii_alphanumeric());
    if is_host && host.chars().all(is_of_name) {
        Ok(())
    } else {
        Err(format!("{host:?} is not the name of a host"))
    }
}

/// The directory of a job on its nodes, and their names.
fn check_nodes(nodes: &NodesUse, id: &str) -> Result<(), String> {
    let name = nodes.directory.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if !name.starts_with(&format!("forebay-node-{id}-"))
        || nodes.commands.len() != nodes.nodes.len()
    {
        return Err(format!("{:?} is not the directory of job {id}", nodes.directory));
    }
    check_path(&nodes.directory, name)?;
    nodes.nodes.iter().try_for_each(|node| check_host(node))
}

/// The same, of this name.
fn check_path(path: &Path, name: &str) -> Result<(), String> {
    if path.file_name().is_none_or(|found| found != name) {
        return Err(format!("{path:?} is not a path of this job"));
    }
    check_owned(path)
}

/// A path that does not exist, or belongs to this user and is no link.
fn check_owned(path: &Path) -> Result<(), String> {
    if !is_plain(path) {
        return Err(format!("{path:?} is not a path of this job"));
    }
    match files::status_of_name(path) {
        Ok(status) if status.kind == Kind::Link => Err(format!("{path:?} is a symbolic link")),
        Ok(status) if status.owner != users::user_id() => {
            Err(format!("{path:?} belongs to user {}", status.owner))
        }
        _ => Ok(()),
    }
}

/// Absolute, without `..`.
fn is_plain(path: &Path) -> bool {
    path.is_absolute()
        && path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        let mut record =
            Record::new("17", Path::new("job.sh"), Path::new("/tmp/forebay-17")).expect("made");
        record.runner.host = "node-1.site".to_owned();
        record
    }

    #[test]
    fn record_of_a_job_is_accepted_and_each_foreign_path_refused() {
        assert_eq!(record().check(), Ok(()));
        let user = users::user_id();
        let place = |root: &str, mounted| {
            Some(forebay_engine::AllocationDirectory {
                root: root.into(),
                mounted,
                capacity_bytes: 1,
            })
        };
        for (root, mounted) in
            [(format!("/store/forebay-{user}-17"), false), ("/mnt/forebay/17".into(), true)]
        {
            assert_eq!(Record { place: place(&root, mounted), ..record() }.check(), Ok(()));
        }
        let refused = [
            Record { id: "-oProxyCommand=x".into(), ..record() },
            Record { id: "../17".into(), ..record() },
            Record { job_directory: "/home".into(), ..record() },
            Record { job_directory: "/tmp/../home/forebay-17".into(), ..record() },
            Record { place: place("/home", false), ..record() },
            Record { place: place(&format!("/store/forebay-{}-17", user + 1), false), ..record() },
            Record { place: place("/home", true), ..record() },
            Record { emulation: Some("/etc/passwd".into()), ..record() },
            Record { profile: Some("/home/../etc".into()), ..record() },
            Record {
                persistent: vec![crate::PersistentUse {
                    name: "p".into(),
                    root: "/store/p".into(),
                    file: "/store/p/../../etc/passwd".into(),
                }],
                ..record()
            },
        ];
        for record in refused {
            assert!(record.check().is_err(), "{record:?}");
        }
        for host in ["-oProxyCommand=x", "", "a b", "a;b", "a/b"] {
            let mut record = record();
            record.runner.host = host.to_owned();
            assert!(record.check().is_err(), "{host}");
        }
    }
}
