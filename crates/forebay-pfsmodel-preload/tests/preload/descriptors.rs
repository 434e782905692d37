//! Descriptors that are reused, copied, or closed unseen by the library.

use crate::bench::{Bench, pattern, program};

#[test]
fn reused_descriptor_numbers_are_distinguished() {
    let bench = Bench::new();
    bench.file("pfs/slow", &pattern(1000));
    bench.file("fast", &pattern(1000));
    bench.python(
        "import os\n\
         for i in range(20):\n\
         \x20   fd = os.open('pfs/slow', 0); os.read(fd, 1000); os.close(fd)\n\
         \x20   again = os.open('fast', 0); assert again == fd; os.read(fd, 1000)\n\
         \x20   os.dup2(os.open('pfs/slow', 0), fd); os.read(fd, 1000); os.close(fd)\n\
         \x20   os.closerange(3, 20)\n",
    );
    assert_eq!(bench.counters().bytes_read, 20 * 2000);
}

/// `fclose` closes inside libc, `fcntl` copies, and direct system calls bypass all libraries. The
/// number then belongs to another file.
#[test]
fn descriptors_changed_by_raw_calls_are_noticed() {
    let bench = Bench::new();
    bench.file("pfs/slow", &pattern(1000));
    bench.file("fast", &pattern(1000));
    bench.run(program("reuse").to_str().unwrap());
    // reuse.c reads 1000 bytes of the emulated file 9 times, and the other file in between.
    assert_eq!(bench.counters().bytes_read, 9000);
}

#[test]
fn errno_of_the_program_is_kept() {
    let bench = Bench::new();
    assert_eq!(bench.run(program("errno").to_str().unwrap()), "ok\n");
}

#[test]
fn descriptors_beyond_the_table_work() {
    let bench = Bench::new();
    bench.file("pfs/a", &pattern(1000));
    let said = bench.bash("ulimit -Hn");
    if said.trim() != "unlimited" && said.trim().parse::<u64>().unwrap() < 70_001 {
        eprintln!("skipped: at most {} descriptors allowed", said.trim());
        return;
    }
    bench.bash("ulimit -n 70001; exec 3< pfs/a; exec cat < /dev/null");
    bench.python(
        "import fcntl, os, resource\n\
         resource.setrlimit(resource.RLIMIT_NOFILE, (70001, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))\n\
         fd = fcntl.fcntl(os.open('pfs/a', 0), fcntl.F_DUPFD, 70000)\n\
         assert len(os.pread(fd, 2000, 0)) == 1000 and len(os.pread(fd, 2000, 0)) == 1000\n",
    );
    assert_eq!(bench.counters().bytes_read, 2000);
}

/// Descriptors that are no files are not emulated, wherever their names are.
#[test]
fn pipes_in_an_emulated_directory_are_not_slowed() {
    let bench = Bench::new();
    bench.bash("mkfifo pfs/p; cat pfs/p > out & head -c 100000 /dev/zero | cat > pfs/p; wait");
    assert_eq!(bench.read("out").len(), 100_000);
    assert_eq!((bench.counters().bytes_read, bench.counters().bytes_written), (0, 0));
}
