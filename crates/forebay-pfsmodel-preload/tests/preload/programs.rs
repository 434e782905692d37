//! Common programs: the charged bytes are those transferred, and the data is correct.

use std::process::Stdio;

use crate::bench::{Bench, library, other_library, pattern, program, static_program};

const MIB: u64 = 1 << 20;

#[test]
fn dd_is_charged() {
    let bench = Bench::new();
    bench.file("in", &pattern(3 << 20));
    bench.run("dd if=in of=pfs/a bs=64K");
    let counters = bench.counters();
    assert_eq!((counters.bytes_written, counters.bytes_read), (3 * MIB, 0));
    assert_eq!(counters.data_ops, 48);
    assert_eq!(counters.clients, 1);

    bench.run("dd if=pfs/a of=pfsx/out bs=1M");
    assert_eq!(bench.counters().bytes_read, 3 * MIB);
    assert_eq!(bench.read("pfsx/out"), pattern(3 << 20));
}

#[test]
fn cp_into_within_and_out_of_the_root_is_charged() {
    let bench = Bench::new();
    bench.file("in", &pattern(1_234_567));
    bench.run("cp in pfs/a");
    assert_eq!((bench.counters().bytes_written, bench.counters().bytes_read), (1_234_567, 0));
    bench.run("cp pfs/a pfs/b");
    assert_eq!(
        (bench.counters().bytes_written, bench.counters().bytes_read),
        (2 * 1_234_567, 1_234_567)
    );
    bench.run("cp pfs/b pfsx/c");
    assert_eq!(bench.counters().bytes_read, 2 * 1_234_567);
    assert_eq!(bench.read("pfsx/c"), pattern(1_234_567));
}

#[test]
fn cat_with_redirection_and_append_is_charged() {
    let bench = Bench::new();
    bench.file("in", &pattern(100_000));
    bench.bash("cat in > pfs/a; cat in >> pfs/a; cat < pfs/a > out");
    let counters = bench.counters();
    assert_eq!((counters.bytes_written, counters.bytes_read), (200_000, 200_000));
    assert_eq!(bench.read("out"), [pattern(100_000), pattern(100_000)].concat());
    // With the default layout of one stripe, the appended data is on the single target of the file.
    assert_eq!(counters.targets.iter().filter(|target| target.bytes > 0).count(), 1);
}

/// Bash builtins write through stdio, inside libc. docs/explanation/emulation.md says that the model does not see this.
#[test]
fn bash_echo_writes_its_data_uncharged() {
    let bench = Bench::new();
    bench.bash("echo hello > pfs/a");
    assert_eq!(bench.read("pfs/a"), b"hello\n");
    assert_eq!(bench.counters().bytes_written, 0);
}

#[test]
fn tar_is_charged() {
    let bench = Bench::new();
    std::fs::create_dir(bench.path("tree")).unwrap();
    for index in 0..20 {
        bench.file(&format!("tree/{index}"), &pattern(index * 1000));
    }
    bench.run("tar -cf pfs/a.tar tree");
    let archive = bench.read("pfs/a.tar").len() as u64;
    assert_eq!(bench.counters().bytes_written, archive);
    bench.run("tar -xf pfs/a.tar -C pfs");
    let content: u64 = (0..20).map(|index| index * 1000).sum();
    assert_eq!(bench.counters().bytes_written, archive + content);
    assert_eq!(bench.counters().bytes_read, archive);
    for index in 0..20 {
        assert_eq!(bench.read(&format!("pfs/tree/{index}")), pattern(index * 1000));
    }
}

#[test]
fn python_reads_at_offsets_and_past_the_end_are_charged() {
    let bench = Bench::new();
    bench.file("pfs/a", &pattern(10_000));
    let said = bench.python(
        "import os, shutil\n\
         fd = os.open('pfs/a', os.O_RDWR)\n\
         print(len(os.pread(fd, 4096, 8000)), len(os.pread(fd, 10, 20000)), os.pwrite(fd, b'xyz', 10000))\n\
         os.lseek(fd, 10000, 0); print(os.read(fd, 100)); print(os.read(fd, 100))\n\
         os.close(fd)\n\
         shutil.copyfile('pfs/a', 'pfs/b')\n",
    );
    assert_eq!(said, "2000 0 3\nb'xyz'\nb''\n");
    let counters = bench.counters();
    assert_eq!(counters.bytes_read, 2000 + 3 + 10_003);
    assert_eq!(counters.bytes_written, 3 + 10_003);
    assert_eq!(bench.read("pfs/b"), bench.read("pfs/a"));
}

#[test]
fn mv_within_the_root_is_metadata_and_out_of_it_data() {
    let bench = Bench::new();
    bench.file("pfs/a", &pattern(5000));
    bench.run("mv pfs/a pfs/b");
    let renamed = bench.counters();
    assert_eq!(renamed.bytes_read + renamed.bytes_written, 0);
    assert!(renamed.metadata_ops >= 1);
    let elsewhere = tempfile::tempdir_in("/dev/shm").unwrap();
    bench.run(&format!("mv pfs/b {}", elsewhere.path().display()));
    assert_eq!(std::fs::read(elsewhere.path().join("b")).unwrap(), pattern(5000));
    assert_eq!(bench.counters().bytes_read, 5000);
    assert!(!bench.path("pfs/b").exists());
}

#[test]
fn ls_and_stat_are_metadata() {
    let bench = Bench::new();
    for name in ["pfs/a", "pfs/b", "pfs/c"] {
        bench.file(name, b"1");
    }
    assert_eq!(bench.run("ls -l pfs").lines().count(), 4);
    let listed = bench.counters();
    assert!(listed.metadata_ops >= 4, "{listed:?}");
    bench.run("stat pfs/a");
    assert_eq!(bench.counters().metadata_ops, listed.metadata_ops + 1);
    assert_eq!(bench.counters().data_ops, 0);
}

#[test]
fn other_directories_cost_nothing() {
    let bench = Bench::new();
    bench.file("in", &pattern(50_000));
    bench.bash("cp in pfsx/a; cat pfsx/a > pfsx/b; mkdir pfsx/d; mv pfsx/b pfsx/d; rm -r pfsx/d; cp in pfs/../pfsx/c; ls -l pfsx");
    let counters = bench.counters();
    assert_eq!(
        (counters.data_ops, counters.metadata_ops, counters.clients, counters.unmodelled),
        (0, 0, 0, 0)
    );
    assert!(counters.attached >= 7, "the library was loaded: {counters:?}");
}

#[test]
fn paths_with_dots_and_links_are_charged() {
    let bench = Bench::new();
    bench.file("pfs/a", b"1234");
    std::fs::create_dir(bench.path("pfs/d")).unwrap();
    bench.python(
        "import os\n\
         os.chdir('pfsx'); os.stat('../pfs/a'); os.stat('../pfsx')\n\
         os.chdir('../pfs/d'); os.stat('./../a'); os.stat('../../pfsx/../pfs//a'); os.stat('../../pfsx')\n\
         d = os.open('..', os.O_PATH | os.O_DIRECTORY); os.stat('a', dir_fd=d)\n",
    );
    assert_eq!(bench.counters().metadata_ops, 5, "four stats and one open");
}

#[test]
fn symlink_is_followed_for_data() {
    let bench = Bench::new();
    bench.file("pfs/a", &pattern(1000));
    bench.file("plain", &pattern(77));
    std::os::unix::fs::symlink(bench.path("pfs"), bench.path("into")).unwrap();
    std::os::unix::fs::symlink(bench.path("plain"), bench.path("pfs/out_of")).unwrap();
    bench.python("import os; fd = os.open('into/a', 0); os.read(fd, 5000)");
    assert_eq!(bench.counters().bytes_read, 1000);
    bench.python("import os; fd = os.open('pfs/out_of', 0); os.read(fd, 5000)");
    assert_eq!(bench.counters().bytes_read, 1000);
    bench.python(
        "import os; fd = os.open('into/new', os.O_CREAT | os.O_WRONLY); os.write(fd, b'12345')",
    );
    assert_eq!(bench.counters().bytes_written, 5);
    assert!(
        forebay_pfsmodel::Striping::of_path(&crate::layouts::c_path(&bench.path("pfs/new")))
            .unwrap()
            .is_some()
    );
}

#[test]
fn streams_and_mappings_are_counted_as_unmodelled() {
    let bench = Bench::new();
    bench.file("pfs/a", &pattern(5000));
    bench.run("sha256sum pfs/a");
    let stdio = bench.counters();
    assert_eq!((stdio.unmodelled, stdio.bytes_read), (1, 0));
    bench.python(
        "import mmap, os; m = mmap.mmap(os.open('pfs/a', 0), 0, prot=mmap.PROT_READ); m[0]",
    );
    assert_eq!(bench.counters().unmodelled, 2);
}

#[test]
fn fsync_waits_for_each_target_of_the_file() {
    let bench = Bench::new();
    bench.python(
        "import os\n\
         fd = os.open('pfs/a', os.O_CREAT | os.O_WRONLY); os.write(fd, b'1')\n\
         os.fsync(fd); os.fdatasync(fd)\n\
         os.fsync(os.open('pfs', os.O_DIRECTORY))\n",
    );
    let counters = bench.counters();
    assert_eq!(
        (counters.sync_ops, counters.metadata_ops),
        (2, 3),
        "two opens and a directory's fsync"
    );
}

/// In either order, each library sees each call once.
#[test]
fn preload_works_with_another_preload() {
    let other = other_library().display().to_string();
    let ours = library().display().to_string();
    for both in [format!("{ours}:{other}"), format!("{other} {ours}")] {
        let bench = Bench::new();
        bench.file("pfs/a", b"");
        let mut writer = bench.command(program("calls").to_str().unwrap());
        let output = writer.env("LD_PRELOAD", both).arg("write").output().unwrap();
        assert!(output.status.success());
        assert_eq!(String::from_utf8_lossy(&output.stderr), "other saw 1 calls\n");
        assert_eq!((bench.counters().bytes_written, bench.counters().data_ops), (5000, 1));
    }
}

/// The loader ignores preloads for static programs; they run without delays.
#[test]
fn static_programs_run() {
    let bench = Bench::new();
    let program = static_program();
    bench.run(program.to_str().unwrap());
    assert_eq!(bench.read("pfs/a"), b"0123456789");
    assert_eq!(bench.counters().attached, 0);
}

#[test]
fn program_without_the_variable_is_unchanged() {
    let bench = Bench::new();
    bench.file("in", &pattern(5000));
    let mut copy = bench.command("cp");
    assert!(
        copy.env_remove(forebay_pfsmodel::STATE_ENV)
            .args(["in", "pfs/a"])
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(bench.read("pfs/a"), pattern(5000));
    assert_eq!((bench.counters().attached, bench.counters().data_ops), (0, 0));
}

#[test]
fn unusable_state_ends_the_program_with_an_error() {
    let bench = Bench::new();
    bench.file("garbage", &pattern(5000));
    for state in ["nowhere", "garbage", "pfs"] {
        let mut command = bench.command("true");
        let output = command
            .env(forebay_pfsmodel::STATE_ENV, bench.path(state))
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(125), "{message}");
        assert!(message.contains(state) && message.contains("hint: unset"), "{message}");
    }
}

/// The library needs only libc and the loader, so any program can load it.
#[test]
fn library_needs_only_libc() {
    let mut readelf = std::process::Command::new("readelf");
    let output = readelf.arg("-d").arg(library()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let needed: Vec<&str> = text.lines().filter(|line| line.contains("(NEEDED)")).collect();
    assert!(!needed.is_empty());
    for line in &needed {
        assert!(["libc.so", "ld-linux", "ld64"].iter().any(|name| line.contains(name)), "{line}");
    }
}
