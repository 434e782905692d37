//! Each symbol that transfers data or uses the metadata server is charged exactly once.

use crate::bench::{Bench, pattern, program};

const LENGTH: u64 = 5000;

/// Runs one call of `calls.c` on new files and returns the counters.
fn counters_of(call: &str) -> forebay_pfsmodel::Counters {
    let bench = Bench::new();
    bench.file("pfs/a", &pattern(LENGTH as usize));
    bench.file("plain", &pattern(LENGTH as usize));
    std::fs::create_dir(bench.path("pfs/d")).unwrap();
    assert_eq!(bench.run(&format!("{} {call}", program("calls").display())), "ok\n", "{call}");
    bench.counters()
}

#[test]
fn each_way_to_read_is_charged_once() {
    for call in [
        "read",
        "read_chk",
        "pread",
        "pread64",
        "pread_chk",
        "readv",
        "preadv",
        "preadv64",
        "preadv2",
        "preadv2_here",
    ] {
        let counters = counters_of(call);
        assert_eq!(
            (counters.bytes_read, counters.bytes_written, counters.data_ops),
            (LENGTH, 0, 1),
            "{call}"
        );
        assert_eq!(counters.metadata_ops, 1, "{call}: the open");
    }
}

#[test]
fn each_way_to_write_is_charged_once() {
    for call in [
        "write",
        "pwrite",
        "pwrite64",
        "writev",
        "pwritev",
        "pwritev64",
        "pwritev2",
        "pwritev2_here",
    ] {
        let counters = counters_of(call);
        assert_eq!(
            (counters.bytes_read, counters.bytes_written, counters.data_ops),
            (0, LENGTH, 1),
            "{call}"
        );
    }
}

#[test]
fn transfers_inside_the_kernel_are_charged_on_each_emulated_side() {
    for (call, read, written) in [
        ("copy_file_range_in", 0, LENGTH),
        ("copy_file_range_out", LENGTH, 0),
        ("copy_file_range_within", LENGTH, LENGTH),
        ("copy_file_range_fails", 0, 0),
        ("sendfile_in", 0, LENGTH),
        ("sendfile_out", LENGTH, 0),
        ("splice_out", LENGTH, 0),
    ] {
        let counters = counters_of(call);
        assert_eq!((counters.bytes_read, counters.bytes_written), (read, written), "{call}");
    }
}

#[test]
fn each_metadata_call_is_one_operation() {
    for call in [
        "stat",
        "lstat",
        "fstatat",
        "statx",
        "access",
        "faccessat",
        "unlink",
        "unlinkat",
        "remove",
        "mkdir",
        "mkdirat",
        "rmdir",
        "rename",
        "renameat",
        "renameat2",
        "rename_out",
        "link",
        "linkat",
        "symlink",
        "symlinkat",
        "readlink",
        "readlinkat",
        "truncate",
        "chmod",
        "fchmodat",
        "chown",
        "lchown",
        "fchownat",
        "utime",
        "utimes",
        "lutimes",
        "utimensat",
        "futimesat",
        "opendir",
        "open",
        "open64",
        "openat",
        "openat64",
        "open_2",
        "openat_2",
        "creat",
        "creat64",
        "fopen",
        "fopen64",
        "freopen",
        "mkstemp",
        "mkostemp",
        "mkstemps",
        "mkostemps",
        "missing",
    ] {
        assert_eq!(counters_of(call).metadata_ops, 1, "{call}");
    }
}

/// The open is one operation and the call is another.
#[test]
fn each_metadata_call_on_a_descriptor_is_one_operation() {
    for call in [
        "fstat",
        "fstatat_empty",
        "statx_empty",
        "ftruncate",
        "fallocate",
        "posix_fallocate",
        "fchmod",
        "fchown",
        "futimens",
        "futimes",
    ] {
        assert_eq!(counters_of(call).metadata_ops, 2, "{call}");
    }
}
