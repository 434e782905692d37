//! When an allocation in memory is lost.

use std::path::Path;

use forebay_host::{files, users};
use forebay_scheduler::in_a_schedulers_job;

/// Exists if systemd is the init system (sd_booted(3)). Services of lingering users run without a login.
const SYSTEMD: &str = "/run/systemd/system";
const LINGERING: &str = "/var/lib/systemd/linger";
/// systemd removes no files of users below this number (systemd's `SYSTEM_UID_MAX`).
const FIRST_REGULAR_USER: u32 = 1000;

/// The message that says when an allocation in this store is lost.
pub(crate) fn in_memory(name: &str, store: &Path) -> String {
    let mut lost =
        format!("{name} is in memory ({}): it is lost when this machine restarts", store.display());
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

/// True if systemd may remove the user's files in shared memory when the last session ends.
fn is_cleared_at_logout() -> bool {
    let lingers = || {
        let of_user = Path::new(LINGERING).join(users::user_name());
        files::status_of_name(&of_user).is_ok()
    };
    users::user_id() >= FIRST_REGULAR_USER
        && files::status(Path::new(SYSTEMD)).is_ok()
        && !lingers()
}
