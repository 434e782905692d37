//! Checks the permissions of the kernel and the memory of this node.
//! Never changes the namespaces of this process: another process, `__probe-namespace`, tries the mounts.

use std::path::Path;

use forebay_host::exit_codes;
use forebay_host::{filesystem, memory as host_memory, namespace, probe, system, users};
use forebay_store::SHARED_MEMORY;
use forebay_terminal::print_stdout;
use indicatif::HumanBytes;

use super::diagnosis::{Diagnosis, run_helper, run_probe};

/// The minimum for a useful store in memory.
const MEMORY_BYTES_MIN: u64 = 1 << 30;
const DISK_INSTEAD: &str = "take a store on a local disk: --store DIR";

/// Settings that forbid user namespaces for ordinary users: the setting, the forbidding value, the remedy.
const FORBIDDING: [(&str, &str, &str); 3] = [
    ("user/max_user_namespaces", "0", "as root: sysctl user.max_user_namespaces=10000"),
    ("kernel/unprivileged_userns_clone", "0", "as root: sysctl kernel.unprivileged_userns_clone=1"),
    (
        "kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "as root: an AppArmor profile for forebay with the rule \"userns,\", or \
         sysctl kernel.apparmor_restrict_unprivileged_userns=0",
    ),
];

/// Tries to mount a private tmpfs, in a separate process.
pub(super) fn mount_memory_privately(huge: bool) -> Result<(), String> {
    let program = system::this_program().map_err(|error| error.to_string())?;
    let mut same = forebay_host::process::command(program);
    same.arg("__probe-namespace");
    if huge {
        same.arg("--huge");
    }
    let answer = run_probe(same)?;
    answer.success.then_some(()).ok_or_else(|| answer.output.trim().to_owned())
}

pub fn user_namespaces() -> Diagnosis {
    let value = |name: &str| probe::read_sysctl(&format!("/proc/sys/{name}"));
    let forbidding =
        FORBIDDING.iter().find(|(name, forbidden, _)| value(name).as_deref() == Some(*forbidden));
    let setting =
        forbidding.map(|(name, value, _)| format!("{} = {value}", name.replace('/', ".")));
    let remedy = forbidding.map_or(
        "in a container, its seccomp profile must allow unshare and mount",
        |(_, _, remedy)| remedy,
    );
    let watched = "the size of a memory store is watched, not enforced";
    match (mount_memory_privately(false), setting) {
        (Ok(()), Some(setting)) if users::user_id() == 0 => {
            let found = format!("root can mount a private tmpfs, others cannot: {setting}");
            Diagnosis::warn(found, format!("but for root, {watched}"), remedy)
        }
        (Ok(()), _) => Diagnosis::ok(
            "a private tmpfs can be mounted",
            "the size of a memory store is enforced, by ENOSPC",
        ),
        (Err(error), setting) => {
            let setting = setting.map_or(String::new(), |setting| format!("; {setting}"));
            Diagnosis::warn(format!("{error}{setting}"), watched, remedy)
        }
    }
}

pub fn huge_pages() -> Diagnosis {
    let enabled = |name: &str| {
        let text = probe::read_sysctl(&format!("/sys/kernel/mm/transparent_hugepage/{name}"))?;
        chosen(&text).map(str::to_owned)
    };
    let small =
        "memory stores use pages of 4 KiB; large files are written more slowly than they could";
    let Some(shared) = enabled("shmem_enabled") else {
        let remedy = "none but a kernel with transparent huge pages";
        return Diagnosis::missing("this kernel has none for tmpfs", small, remedy);
    };
    let general = enabled("enabled").unwrap_or_default();
    let settings = format!("enabled={general} shmem_enabled={shared}");
    if shared == "deny" {
        let remedy = "as root: echo advise > /sys/kernel/mm/transparent_hugepage/shmem_enabled";
        return Diagnosis::warn(settings, small, remedy);
    }
    match mount_memory_privately(true) {
        Ok(()) => Diagnosis::ok(
            format!("usable in a private tmpfs; {settings}"),
            "faster for few large files in a memory store, wasteful for many small",
        ),
        Err(error) => Diagnosis::warn(
            format!("{error}; {settings}"),
            small,
            "the same as for user namespaces",
        ),
    }
}

/// The word in brackets: "always [madvise] never".
fn chosen(text: &str) -> Option<&str> {
    text.split_once('[')?.1.split_once(']').map(|(word, _)| word)
}

pub fn fuse() -> Diagnosis {
    let device = probe::check_open_rw(Path::new("/dev/fuse"));
    let mounter = system::find_other_program("fusermount3");
    let consequence = "jobs on one node do not need it";
    match (device, mounter) {
        (Ok(()), Some(mounter)) => match run_helper(&mounter, "--version") {
            Ok(found) => Diagnosis::ok(format!("/dev/fuse opens; {found}"), consequence),
            Err(found) => Diagnosis::warn(found, consequence, "to have it: apt-get install fuse3"),
        },
        (Ok(()), None) => Diagnosis::missing(
            "no fusermount3 in PATH",
            consequence,
            "to have it: apt-get install fuse3",
        ),
        (Err(error), _) => Diagnosis::missing(
            error.to_string(),
            consequence,
            "to have it, as root: modprobe fuse && chmod 666 /dev/fuse",
        ),
    }
}

pub fn memory() -> Diagnosis {
    let found = match host_memory::memory() {
        Ok(found) => found,
        Err(error) => return unknown(&error),
    };
    let text = format!(
        "{} available of {}",
        HumanBytes(found.available_bytes),
        HumanBytes(found.total_bytes)
    );
    let consequence = "applications and memory stores share it";
    if found.available_bytes < MEMORY_BYTES_MIN {
        return Diagnosis::warn(text, consequence, DISK_INSTEAD);
    }
    Diagnosis::ok(text, consequence)
}

fn unknown(error: &forebay_host::Error) -> Diagnosis {
    let consequence = "it is not known how large a memory store may be";
    Diagnosis::warn(error.to_string(), consequence, "mount /proc")
}

pub fn memory_cgroup() -> Diagnosis {
    let limit = match host_memory::memory() {
        Ok(found) => found.cgroup,
        Err(error) => return unknown(&error),
    };
    let Some(limit) = limit else {
        return Diagnosis::ok("no limit", "the memory of the machine is the limit");
    };
    let text = format!(
        "{} free of {} in {}",
        HumanBytes(limit.free_bytes),
        HumanBytes(limit.limit_bytes),
        limit.path.display()
    );
    let consequence =
        "memory stores count against it like applications; beyond it the kernel kills";
    if limit.free_bytes < MEMORY_BYTES_MIN {
        let remedy = format!("ask for more memory (Slurm: --mem), or {DISK_INSTEAD}");
        return Diagnosis::warn(text, consequence, &remedy);
    }
    Diagnosis::ok(text, consequence)
}

pub fn shared_memory() -> Diagnosis {
    let path = Path::new(SHARED_MEMORY);
    let consequence = "for memory stores without a private tmpfs, and for the emulation";
    let remedy = "as root: mount -t tmpfs -o mode=1777 tmpfs /dev/shm";
    let space =
        match filesystem::space(path).and_then(|space| probe::check_write(path).map(|()| space)) {
            Ok(space) => space,
            Err(error) => return Diagnosis::missing(error.to_string(), consequence, remedy),
        };
    let mut text = format!(
        "{} free of {} in {SHARED_MEMORY}",
        HumanBytes(space.available_bytes),
        HumanBytes(space.total_bytes)
    );
    if !filesystem::is_in_memory(path).unwrap_or(false) {
        text.push_str(", which is not in memory");
        return Diagnosis::warn(text, consequence, remedy);
    }
    if space.available_bytes < MEMORY_BYTES_MIN {
        let remedy = "remove old files there; as root: mount -o remount,size=50% /dev/shm; \
                      in a container: docker run --shm-size";
        return Diagnosis::warn(text, consequence, remedy);
    }
    Diagnosis::ok(text, consequence)
}

/// The hidden verb that [`mount_memory_privately`] runs.
pub fn probe_namespace(huge: bool) -> i32 {
    match namespace::try_memory(huge) {
        Ok(()) => 0,
        Err(error) => print_stdout(&error.to_string(), exit_codes::FAILED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setting_in_force_is_the_one_in_brackets() {
        assert_eq!(chosen("always [madvise] never"), Some("madvise"));
        assert_eq!(chosen("always"), None);
    }
}
