//! How long an allocation in memory lasts.

use std::path::Path;

use forebay_host::{files, users};
use forebay_scheduler::in_a_schedulers_job;

/// Where systemd says that it runs the machine (sd_booted(3)), and whose services go on without a login.
const SYSTEMD: &str = "/run/systemd/system";
const LINGERING: &str = "/var/lib/systemd/linger";
/// systemd clears up after no user with a number below (systemd's `SYSTEM_UID_MAX`).
const FIRST_REGULAR_USER: u32 = 1000;

/// When an allocation in this store is lost, for its user.
pub(crate) fn in_memory(name: &str, store: &Path) -> String {
    let mut lost = format!(
        "{name} lies in memory ({}): it is gone when this machine restarts",
        store.display()
    );
    if is_cleared_at_logout() {
        lost.push_str(
            "; also when you log out, unless loginctl enable-linger was called, or logind.conf has RemoveIPC=no",
        );
    }
    if in_a_schedulers_job() {
        lost.push_str(
            "; also with this job, if the scheduler gives each job a memory file system of its own",
        );
    }
    lost
}

/// May systemd remove a regular user's files in shared memory once his last session ends?
fn is_cleared_at_logout() -> bool {
    let lingers = || {
        let of_user = Path::new(LINGERING).join(users::user_name());
        files::status_of_name(&of_user).is_ok()
    };
    users::user_id() >= FIRST_REGULAR_USER
        && files::status(Path::new(SYSTEMD)).is_ok()
        && !lingers()
}
