//! Layouts are bound when a file is created, inherited by directories, and never change.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use forebay_pfsmodel::Striping;

use crate::bench::{Bench, pattern};

pub fn c_path(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap()
}

fn set(path: &Path, stripe_count: i32, stripe_size_bytes: u64, first_target: i32) {
    Striping { stripe_count, stripe_size_bytes, first_target }
        .store_at_path(&c_path(path))
        .unwrap();
}

fn get(path: &Path) -> Option<Striping> {
    Striping::of_path(&c_path(path)).unwrap()
}

fn used_targets(bench: &Bench) -> Vec<(usize, u64)> {
    bench
        .counters()
        .targets
        .iter()
        .map(|target| target.bytes)
        .enumerate()
        .filter(|(_, bytes)| *bytes > 0)
        .collect()
}

#[test]
fn directories_pass_their_striping_to_children() {
    let bench = Bench::new();
    set(&bench.path("pfs"), 4, 131_072, -1);
    bench.file("in", &pattern(1 << 20));
    bench.bash("mkdir -p pfs/x/y; cp in pfs/x/y/file");
    assert_eq!(get(&bench.path("pfs/x/y")), get(&bench.path("pfs")));
    let file = get(&bench.path("pfs/x/y/file")).unwrap();
    assert_eq!((file.stripe_count, file.stripe_size_bytes), (4, 131_072));
    assert!(file.first_target >= 0, "bound");
    assert_eq!(used_targets(&bench).len(), 4);
    assert!(used_targets(&bench).iter().all(|(_, bytes)| *bytes == 1 << 18));
}

#[test]
fn existing_files_never_change() {
    let bench = Bench::new();
    bench.file("in", &pattern(1 << 20));
    bench.run("cp in pfs/old");
    let before = get(&bench.path("pfs/old")).unwrap();
    set(&bench.path("pfs"), 8, 65_536, -1);
    bench.bash("cat in > pfs/old; cp in pfs/old; cp in pfs/new");
    assert_eq!(get(&bench.path("pfs/old")), Some(before));
    assert_eq!(get(&bench.path("pfs/new")).unwrap().stripe_count, 8);
    // A renamed file keeps its layout; a copy gets that of its new directory.
    bench.bash("mkdir pfs/d; mv pfs/old pfs/d/old; cp pfs/d/old pfs/d/copy");
    assert_eq!(get(&bench.path("pfs/d/old")), Some(before));
    assert_eq!(get(&bench.path("pfs/d/copy")).unwrap().stripe_count, 8);
}

#[test]
fn stripe_count_minus_one_is_all_targets_and_zero_the_default() {
    let bench = Bench::new();
    set(&bench.path("pfs"), -1, 0, 3);
    bench.bash("head -c 1M /dev/zero | cat > pfs/all");
    let all = get(&bench.path("pfs/all")).unwrap();
    assert_eq!((all.stripe_count, all.stripe_size_bytes, all.first_target), (8, 65_536, 3));
    set(&bench.path("pfs"), 0, 0, -1);
    bench.bash(": > pfs/default");
    assert_eq!(get(&bench.path("pfs/default")).unwrap().stripe_count, 1);
}

#[test]
fn new_files_take_turns_over_the_targets() {
    let bench = Bench::new();
    set(&bench.path("pfs"), 2, 0, -1);
    bench.bash("for i in 0 1 2 3; do : > pfs/$i; done");
    let firsts: Vec<i32> = (0..4)
        .map(|index| get(&bench.path(&format!("pfs/{index}"))).unwrap().first_target)
        .collect();
    assert_eq!(firsts, [0, 2, 4, 6], "four files of two stripes use all eight targets");
}

#[test]
fn existing_file_gets_a_target_from_its_inode() {
    let bench = Bench::new();
    let path = bench.file("pfs/old", &pattern(300_000));
    let inode = std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(&path).unwrap());
    bench.run("dd if=pfs/old of=/dev/null bs=64K");
    assert_eq!(used_targets(&bench), [((inode % 8) as usize, 300_000)]);
    assert_eq!(get(&path), None, "reading binds nothing");
    bench.run("dd if=/dev/zero of=pfs/old bs=1K count=1 conv=notrunc");
    assert_eq!(get(&path), None, "it is not empty, so it keeps the layout it had");
}

/// Many processes create the same file together, as MPI ranks do: all must use the same layout.
#[test]
fn concurrent_creators_agree_on_the_layout() {
    let bench = Bench::new();
    set(&bench.path("pfs"), 1, 0, -1);
    bench.bash(
        "for round in 1 2 3 4 5; do\n\
           for i in 1 2 3 4 5 6; do head -c 64K /dev/zero | dd of=pfs/$round bs=64K conv=notrunc oflag=dsync status=none & done\n\
           wait\n\
         done",
    );
    for (target, counters) in bench.counters().targets.iter().enumerate() {
        assert_eq!(counters.bytes % (6 * 65_536), 0, "target {target}: {counters:?}");
    }
}

#[test]
fn temporary_files_and_streams_get_a_layout() {
    let bench = Bench::new();
    set(&bench.path("pfs"), 3, 0, -1);
    let name = bench.run("mktemp pfs/XXXXXX");
    assert_eq!(get(&bench.path(name.trim())).unwrap().stripe_count, 3);
    bench.bash("printf 'a\\nb\\n' > in; sort -o pfs/sorted in");
    assert_eq!(get(&bench.path("pfs/sorted")).unwrap().stripe_count, 3);
}

/// A write across a stripe boundary is charged to two targets.
#[test]
fn write_across_a_stripe_boundary_uses_two_targets() {
    let bench = Bench::new();
    set(&bench.path("pfs"), 2, 65_536, 6);
    bench.python("import os; fd = os.open('pfs/a', os.O_CREAT | os.O_WRONLY); os.pwrite(fd, bytes(100), 65536 - 30)");
    assert_eq!(used_targets(&bench), [(6, 30), (7, 70)]);
}

/// Appended data is charged at the end of the file, whatever the position or offset of the call.
#[test]
fn appended_bytes_are_charged_where_they_land() {
    let bench = Bench::new();
    set(&bench.path("pfs"), 4, 65_536, 0);
    bench.python(
        "import os\n\
         fd = os.open('pfs/a', os.O_CREAT | os.O_WRONLY | os.O_APPEND)\n\
         os.ftruncate(fd, 65536)\n\
         os.write(fd, bytes(65536)); os.pwrite(fd, bytes(65536), 0)\n",
    );
    assert_eq!(used_targets(&bench), [(1, 65_536), (2, 65_536)]);
}

/// Calls without an offset are charged at the descriptor's position, which copies of it share.
#[test]
fn reads_and_writes_follow_the_file_position() {
    let bench = Bench::new();
    set(&bench.path("pfs"), 4, 65_536, 0);
    bench.python(
        "import os\n\
         fd = os.open('pfs/a', os.O_CREAT | os.O_RDWR)\n\
         os.lseek(fd, 3 * 65536, 0); os.write(fd, bytes(100))\n\
         os.lseek(os.dup(fd), 65536, 0); os.writev(fd, [bytes(50), bytes(50)])\n",
    );
    assert_eq!(used_targets(&bench), [(1, 100), (3, 100)]);
}
