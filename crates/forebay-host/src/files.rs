//! Handles files and directories. `path` next to an open file only names the file in errors.

mod attributes;
mod create;
mod direct;
mod directory;
mod errors;
mod json;
mod lock;
pub(crate) mod mount_table;
mod printable;
mod project_quota;
mod read;
mod remove;
mod rename;
mod resolve;
mod status;
mod sync;

pub use attributes::{
    ExtendedAttribute, extended_attribute, extended_attributes, open_name,
    remove_extended_attribute, set_extended_attribute, set_extended_attribute_of_path, set_mode,
    set_mode_of, set_mode_of_name, set_mode_of_opened, set_owner_of, set_owner_of_name,
    set_owner_of_opened, set_times, set_times_of,
};
pub use create::{
    make_directories, make_directory, make_file, make_hard_link, make_link, open_existing_rw,
    open_or_make, open_streams, open_to_append, open_to_write, write_atomically,
    write_atomically_as,
};
pub use direct::{DIRECT_BYTES, Direct};
pub use directory::Directory;
pub use errors::{is_data_lost, is_full, is_loop, is_over_quota, with_path};
pub use json::{read_json, read_own_json, to_json, write_json, write_json_as};
pub use lock::{is_locked, lock, lock_or_create};
pub use mount_table::refuse_mounts_below;
pub use printable::{lossy, lossy_option, lossy_path, lossy_paths, printable, printable_text};
pub use project_quota::NoQuota;
pub use read::{
    data_from, open_directory, open_source, open_to_read, read_bytes, read_link, read_lossy,
    read_plain, read_record, read_to_string,
};
pub use remove::{
    directory_kept_by_another, empty_directory, remove_empty, remove_file, remove_if_present,
    remove_tree,
};
pub use rename::{rename, rename_directory_noreplace, rename_file_noreplace};
pub use resolve::{final_path, nearest_real_path, parent_of, path_of, real_path};
pub use status::{
    Identity, Kind, Status, identity_of, is_private_dir, kinds_in, names_in, status, status_of,
    status_of_name, tree_bytes, tree_bytes_within, tree_size,
};
pub(crate) use sync::sync_opened;
pub use sync::{close, drop_page_cache, sync_directory, sync_file_system, sync_names, sync_tree};

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn atomic_write_replaces_a_link_or_fifo_under_its_temporary_name() {
        let scratch = tempfile::tempdir().expect("tempdir");
        let at = |name: &str| scratch.path().join(name);
        std::fs::write(at("kept"), "kept").expect("written");
        make_link(&at("kept"), &at("fresh")).expect("linked");
        write_atomically_as(&at("file"), &at("fresh"), b"new", 0o604).expect("written");
        assert_eq!(read_to_string(&at("kept")).expect("read"), "kept");
        let found = status_of_name(&at("file")).expect("there");
        assert_eq!((found.kind, found.mode, found.size_bytes), (Kind::File, 0o604, 3));
        let fifo = std::process::Command::new("mkfifo").arg(at("fresh")).status().expect("run");
        assert!(fifo.success());
        write_atomically(&at("file"), &at("fresh"), b"newer").expect("written");
        assert_eq!(read_to_string(&at("file")).expect("read"), "newer");
    }

    #[test]
    fn unwritable_tree_is_removed_and_links_are_not_followed() {
        let scratch = tempfile::tempdir().expect("tempdir");
        let tree = scratch.path().join("tree");
        let kept = scratch.path().join("kept");
        make_directories(&tree.join("a/b"), 0o755).expect("mkdir");
        make_directories(&kept, 0o755).expect("mkdir");
        make_link(&kept, &tree.join("a/link")).expect("link");
        set_mode_of_name(&tree.join("a/b"), 0o000).expect("chmod");
        set_mode_of_name(&tree.join("a/link"), 0o711).expect_err("a link");
        assert_ne!(status(&kept).expect("kept").mode, 0o711);
        remove_tree(&tree).expect("remove");
        assert!(status(&tree).expect_err("gone").is_not_found());
        assert_eq!(status(&kept).expect("kept").kind, Kind::Directory);
    }

    #[test]
    fn errors_name_operation_and_path() {
        let error = read_to_string(Path::new("/no/such")).expect_err("missing");
        assert_eq!(
            error.to_string(),
            "cannot read /no/such: No such file or directory (os error 2)"
        );
    }
}
