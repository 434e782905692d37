//! Tests when a file counts as closed, with the real kernel and each way to keep a file open.
#![allow(clippy::disallowed_methods, clippy::expect_used)] // the test writes the files itself

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{Command, Stdio};

use forebay_host::close_watch::{CloseEvent, CloseWatcher};
use parking_lot::{Mutex, MutexGuard};
use tempfile::TempDir;

/// Names and versions of all files closed so far.
fn told(closes: &mut CloseWatcher, top: &Path) -> Vec<(String, u64)> {
    let ticket = closes.handle().request_ticket().expect("ask");
    let mut found = Vec::new();
    loop {
        match closes.wait().expect("wait") {
            CloseEvent::Closed(closed) => {
                let path = closed.path.strip_prefix(top).expect("below the top");
                found.push((path.to_str().expect("text").to_owned(), closed.version));
            }
            CloseEvent::Drained(reached) if reached == ticket => return found,
            other => panic!("{other:?}"),
        }
    }
}

/// A directory of one test at a time: a child that another test starts holds all open files up to its exec.
struct Top {
    directory: TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl Top {
    fn path(&self) -> &Path {
        self.directory.path()
    }
}

fn watched() -> (Top, CloseWatcher) {
    static ONE_TEST: Mutex<()> = Mutex::new(());
    let directory = tempfile::tempdir().expect("tempdir");
    let top = Top { directory, _alone: ONE_TEST.lock() };
    fs::write(top.path().join("before"), "known").expect("write");
    let closes = CloseWatcher::watch(&[top.path()]).expect("watch");
    (top, closes)
}

fn once(name: &str) -> Vec<(String, u64)> {
    vec![(name.to_owned(), 1)]
}

#[test]
fn each_version_is_reported_once_and_existing_files_are_known() {
    let (top, mut closes) = watched();
    assert_eq!(told(&mut closes, top.path()), []);
    let path = top.path().join("a");
    fs::write(&path, "1").expect("write");
    assert_eq!(told(&mut closes, top.path()), once("a"));
    assert_eq!(told(&mut closes, top.path()), []);
    let mut file = OpenOptions::new().append(true).open(&path).expect("open");
    file.write_all(b"2").expect("write");
    assert_eq!(told(&mut closes, top.path()), []);
    drop(file);
    assert_eq!(told(&mut closes, top.path()), [("a".to_owned(), 2)]);
    fs::read(&path).expect("read");
    assert_eq!(told(&mut closes, top.path()), []);
    fs::write(top.path().join("before"), "now").expect("write");
    assert_eq!(told(&mut closes, top.path()), once("before"));
}

#[test]
fn duplicated_descriptor_keeps_the_file_open() {
    let (top, mut closes) = watched();
    let file = File::create(top.path().join("a")).expect("create");
    let second = file.try_clone().expect("dup");
    drop(file);
    assert_eq!(told(&mut closes, top.path()), []);
    drop(second);
    assert_eq!(told(&mut closes, top.path()), once("a"));
}

#[test]
fn inherited_descriptor_keeps_the_file_open_until_the_child_is_killed() {
    let (top, mut closes) = watched();
    let file = File::create(top.path().join("a")).expect("create");
    let output = Stdio::from(file.try_clone().expect("dup"));
    let sleep = || Command::new("sleep").arg("600").stdout(output).spawn();
    let mut child = sleep().expect("spawn");
    drop(file);
    assert_eq!(told(&mut closes, top.path()), []);
    child.kill().expect("kill -9");
    child.wait().expect("wait");
    assert_eq!(told(&mut closes, top.path()), once("a"));
}

#[test]
fn close_of_the_last_of_two_writers_is_reported() {
    let (top, mut closes) = watched();
    let path = top.path().join("a");
    let first = File::create(&path).expect("create");
    let second = OpenOptions::new().append(true).open(&path).expect("open");
    drop(first);
    assert_eq!(told(&mut closes, top.path()), []);
    drop(second);
    assert_eq!(told(&mut closes, top.path()), once("a"));
}

/// The number of rounds of a loop. `make soak` sets SOAK_ROUNDS.
fn rounds(few: u32) -> u32 {
    let given = std::env::var("SOAK_ROUNDS").ok();
    given.map_or(few, |rounds| rounds.parse().expect("SOAK_ROUNDS"))
}

#[test]
fn writers_that_close_at_the_same_time_make_one_version() {
    let (top, mut closes) = watched();
    for round in 0..rounds(50) {
        let name = format!("shared-{round}");
        let path = top.path().join(&name);
        File::create(&path).expect("create");
        let open = || OpenOptions::new().write(true).open(&path).expect("open");
        let writers: Vec<_> = (0..4).map(|_| open()).collect();
        let mut found = std::thread::scope(|scope| {
            for mut writer in writers {
                scope.spawn(move || writer.write_all(b"rank").expect("write"));
            }
            told(&mut closes, top.path()) // while the writers close the file
        });
        found.extend(told(&mut closes, top.path()));
        assert_eq!(found, once(&name));
    }
    closes.handle().finish().expect("finish");
    assert!(matches!(closes.wait().expect("wait"), CloseEvent::End));
}

#[test]
fn shared_mapping_keeps_the_file_open_after_close() {
    const BYTES: usize = 4096;
    let (top, mut closes) = watched();
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    let file = options.open(top.path().join("a")).expect("open");
    file.set_len(BYTES as u64).expect("size");
    // SAFETY: a new mapping of an open file of that size, at an address that the kernel chooses.
    let mapped = unsafe {
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        libc::mmap(std::ptr::null_mut(), BYTES, access, kind, file.as_raw_fd(), 0)
    };
    assert_ne!(mapped, libc::MAP_FAILED);
    drop(file);
    assert_eq!(told(&mut closes, top.path()), []);
    // SAFETY: the mapping is writable, and no other code uses it.
    unsafe { mapped.cast::<u8>().write(b'x') };
    assert_eq!(told(&mut closes, top.path()), []);
    // SAFETY: the mapping from above, which no code uses any more.
    assert_eq!(unsafe { libc::munmap(mapped, BYTES) }, 0);
    assert_eq!(told(&mut closes, top.path()), once("a"));
    assert_eq!(fs::read(top.path().join("a")).expect("read")[0], b'x');
}

#[test]
fn close_by_a_static_binary_is_reported() {
    let (top, mut closes) = watched();
    let tools = tempfile::tempdir().expect("tempdir");
    let (source, program) = (tools.path().join("w.c"), tools.path().join("w"));
    let text = "#include <stdio.h>\nint main(int n, char **w) { FILE *f = fopen(w[n - 1], \"w\"); \
                return !f || fputs(\"x\", f) < 0 || fclose(f); }\n";
    fs::write(&source, text).expect("write");
    let mut cc = Command::new("cc");
    let made = cc.arg("-static").arg(&source).arg("-o").arg(&program).status();
    assert!(made.expect("cc").success());
    let ran = Command::new(&program).arg(top.path().join("a")).status();
    assert!(ran.expect("run").success());
    assert_eq!(told(&mut closes, top.path()), once("a"));
}

#[test]
fn file_renamed_into_place_is_reported_under_that_name_only() {
    let (top, mut closes) = watched();
    let (temporary, path) = (top.path().join(".a"), top.path().join("a"));
    fs::write(&temporary, "1").expect("write");
    fs::rename(&temporary, &path).expect("rename");
    assert_eq!(told(&mut closes, top.path()), once("a"));
    // A move from outside over an existing file, by a writer that continues to write.
    let outside = tempfile::tempdir().expect("tempdir");
    let mut file = File::create(outside.path().join("b")).expect("create");
    fs::rename(outside.path().join("b"), &path).expect("rename");
    assert_eq!(told(&mut closes, top.path()), []);
    file.write_all(b"2").expect("write");
    drop(file);
    assert_eq!(told(&mut closes, top.path()), [("a".to_owned(), 2)]);
}

#[test]
fn removed_and_special_files_are_not_reported() {
    let (top, mut closes) = watched();
    let path = top.path().join("a");
    fs::write(&path, "1").expect("write");
    fs::remove_file(&path).expect("remove");
    std::os::unix::fs::symlink("before", top.path().join("link")).expect("symlink");
    let made = Command::new("mkfifo").arg(top.path().join("fifo")).status();
    assert!(made.expect("mkfifo").success());
    assert_eq!(told(&mut closes, top.path()), []);
}

#[test]
fn new_and_moved_directories_are_followed() {
    let (top, mut closes) = watched();
    let outside = tempfile::tempdir_in(top.path().parent().expect("parent")).expect("tempdir");
    fs::create_dir_all(outside.path().join("in/deep")).expect("mkdir");
    fs::write(outside.path().join("in/deep/a"), "1").expect("write");
    fs::rename(outside.path().join("in"), top.path().join("in")).expect("rename");
    fs::create_dir_all(top.path().join("new/er")).expect("mkdir");
    fs::write(top.path().join("new/er/b"), "1").expect("write");
    let mut found = told(&mut closes, top.path());
    found.sort();
    assert_eq!(found, [("in/deep/a".to_owned(), 1), ("new/er/b".to_owned(), 1)]);
    // A rename within the tree: the new name counts. A move out of the tree: no reports.
    fs::rename(top.path().join("new"), top.path().join("other")).expect("rename");
    assert_eq!(told(&mut closes, top.path()), once("other/er/b"));
    fs::write(top.path().join("other/er/c"), "1").expect("write");
    assert_eq!(told(&mut closes, top.path()), once("other/er/c"));
    fs::rename(top.path().join("in"), outside.path().join("out")).expect("rename");
    fs::write(outside.path().join("out/deep/a"), "2").expect("write");
    assert_eq!(told(&mut closes, top.path()), []);
}

#[test]
fn files_beyond_the_kernel_queue_are_all_reported_once() {
    let (top, mut closes) = watched();
    let limit = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").expect("read");
    let limit: usize = limit.trim().parse().expect("number");
    assert!(limit <= 1 << 20, "this kernel queues {limit} events: too many to go beyond in a test");
    let files = limit / 2 + 1000; // two events each: create and close
    for number in 0..files {
        fs::write(top.path().join(number.to_string()), "x").expect("write");
    }
    let mut found = told(&mut closes, top.path());
    found.sort();
    let mut wanted: Vec<_> = (0..files).map(|number| (number.to_string(), 1)).collect();
    wanted.sort();
    assert!(found == wanted, "{} of {files} were told", found.len());
}

#[test]
fn truncation_by_path_is_reported_at_the_end() {
    let (top, mut closes) = watched();
    let cut = Command::new("perl")
        .args(["-e", "truncate($ARGV[0], 2) or die"])
        .arg(top.path().join("before"))
        .status();
    assert!(cut.expect("perl").success());
    fs::hard_link(top.path().join("before"), top.path().join("linked")).expect("link");
    let mut found = told(&mut closes, top.path());
    assert_eq!(found, []);
    closes.handle().finish().expect("finish");
    while let CloseEvent::Closed(closed) = closes.wait().expect("wait") {
        found.push((
            closed.path.file_name().expect("name").to_str().expect("text").to_owned(),
            closed.version,
        ));
    }
    found.sort();
    assert_eq!(found, [("before".to_owned(), 1), ("linked".to_owned(), 1)]);
}

#[test]
fn writer_that_opens_during_the_lease_check_is_not_disturbed() {
    let (top, mut closes) = watched();
    let rounds = rounds(500);
    let path = top.path().join("a");
    let writer = {
        let path = path.clone();
        std::thread::spawn(move || {
            for round in 0..rounds {
                fs::write(&path, round.to_string()).expect("write");
            }
        })
    };
    let mut last = 0;
    while !writer.is_finished() {
        for (name, version) in told(&mut closes, top.path()) {
            assert_eq!((name.as_str(), version), ("a", last + 1));
            last = version;
        }
    }
    writer.join().expect("join");
    told(&mut closes, top.path());
    let last = fs::read_to_string(&path).expect("read");
    assert_eq!(last, (rounds - 1).to_string());
}

#[test]
fn files_written_during_the_scan_are_all_reported_once() {
    let (top, mut closes) = watched();
    let handle = closes.handle();
    let directory = top.path().to_owned();
    let files = rounds(200);
    let writer = std::thread::spawn(move || {
        for number in 0..files {
            fs::write(directory.join(number.to_string()), "x").expect("write");
        }
        handle.request_ticket().expect("ask");
    });
    let mut count = 0;
    loop {
        match closes.wait().expect("wait") {
            CloseEvent::Closed(closed) => {
                assert_eq!(closed.version, 1);
                count += 1;
            }
            CloseEvent::Drained(_) => break,
            other => panic!("{other:?}"),
        }
    }
    writer.join().expect("join");
    assert_eq!(count, files);
}

#[test]
fn watch_ends_when_its_directory_is_removed() {
    let (top, mut closes) = watched();
    fs::remove_dir_all(top.path()).expect("remove");
    assert!(matches!(closes.wait().expect("wait"), CloseEvent::End));
    let missing = CloseWatcher::watch(&[top.path()]).err().expect("missing");
    assert!(missing.is_not_found(), "{missing}");
}
