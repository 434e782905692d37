//! Clients, queues and lock switches with several processes and threads.

use std::process::Stdio;
use std::time::{Duration, Instant};

use forebay_pfsmodel::{Counters, Model, Striping};

use crate::bench::Bench;
use crate::layouts::c_path;

#[test]
fn forked_child_is_a_separate_client() {
    let bench = Bench::new();
    bench.python(
        "import os\n\
         fd = os.open('pfs/a', os.O_CREAT | os.O_RDWR)\n\
         os.write(fd, b'parent')\n\
         if os.fork() == 0:\n\
         \x20   os.write(fd, b'child'); os._exit(0)\n\
         os.wait()\n\
         os.write(fd, b'parent')\n",
    );
    let counters = bench.counters();
    assert_eq!((counters.clients, counters.attached, counters.bytes_written), (2, 1, 17));
    assert_eq!(counters.target_switches, 2);
    assert_eq!(bench.read("pfs/a"), b"parentchildparent");
}

#[test]
fn inherited_descriptors_are_charged_after_exec() {
    let bench = Bench::new();
    bench.file("in", &[7; 1000]);
    bench.bash("exec 5> pfs/a; cat in >&5; (cat in >&5); exec cat in >&5");
    assert_eq!(bench.counters().bytes_written, 3000);
    assert_eq!(bench.read("pfs/a"), [7; 3000]);
}

#[test]
fn python_subprocess_is_charged() {
    let bench = Bench::new();
    bench.file("in", &[7; 1000]);
    bench.python("import subprocess as s; f = open('pfs/a', 'wb'); s.run(['cat', 'in'], stdout=f, check=True); f.write(b'12'); f.close()");
    assert_eq!(bench.counters().bytes_written, 1002);
}

#[test]
fn threads_share_one_client() {
    let bench = Bench::new();
    bench.python(
        "import os, threading\n\
         def work(n):\n\
         \x20   fd = os.open('pfs/%d' % n, os.O_CREAT | os.O_RDWR)\n\
         \x20   for i in range(50): os.pwrite(fd, bytes([n]) * 1000, i * 1000); os.pread(fd, 500, 0)\n\
         \x20   os.close(fd)\n\
         threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]\n\
         [t.start() for t in threads]; [t.join() for t in threads]\n",
    );
    let counters = bench.counters();
    assert_eq!((counters.clients, counters.target_switches), (1, 0));
    assert_eq!((counters.bytes_written, counters.bytes_read), (8 * 50_000, 8 * 25_000));
    for n in 0..8 {
        assert_eq!(bench.read(&format!("pfs/{n}")), vec![n; 50_000]);
    }
}

/// Two processes write in turn: every write but the first finds the lock of the other process.
#[test]
fn alternating_writers_switch_exactly_each_time() {
    let bench = Bench::new();
    bench.python(
        "import os\n\
         fd = os.open('pfs/a', os.O_CREAT | os.O_RDWR)\n\
         r1, w1 = os.pipe(); r2, w2 = os.pipe()\n\
         child = os.fork() == 0\n\
         mine, theirs = (r1, w2) if child else (r2, w1)\n\
         if not child: os.write(w2, b'x')\n\
         for i in range(25):\n\
         \x20   os.read(mine, 1); os.pwrite(fd, b'abc', 3 * i); os.write(theirs, b'x')\n\
         if child: os._exit(0)\n\
         os.wait()\n",
    );
    let counters = bench.counters();
    assert_eq!(counters.bytes_written, 150);
    assert_eq!(counters.target_switches, 49);
    assert_eq!(counters.clients, 2);
}

/// Four writers are faster with wide striping than with one target. Measured in model time, from
/// the first start to the last finish of all processes.
#[test]
fn eight_stripes_are_faster_than_one_for_four_writers() {
    let makespan = |stripe_count| {
        let bench = Bench::with(|model: &mut Model| {
            // So slow that the processes begin at about the same time also on a busy machine.
            model.targets.bandwidth_bytes_per_s.value = 3_125_000;
            model.targets.switch_penalty_ns.value = 1_000_000;
        });
        let striping = Striping { stripe_count, stripe_size_bytes: 65_536, first_target: 0 };
        striping.store_at_path(&c_path(&bench.path("pfs"))).unwrap();
        bench.bash(
            "for i in 0 1 2 3; do\n\
               dd if=/dev/zero of=pfs/shared bs=1M count=4 seek=$((4 * i)) conv=notrunc status=none &\n\
             done; wait",
        );
        bench.counters()
    };
    let (narrow, wide): (Counters, Counters) = (makespan(1), makespan(8));
    assert_eq!(narrow.bytes_written, 16 << 20);
    assert_eq!(wide.bytes_written, 16 << 20);
    assert!(narrow.makespan_ns > 5_360_000_000, "16 MiB at 3.125 MB/s: {narrow:?}");
    assert!(
        narrow.makespan_ns > 3 * wide.makespan_ns,
        "{} ns, {} ns",
        narrow.makespan_ns,
        wide.makespan_ns
    );
    let busy: u64 = wide.targets.iter().map(|target| target.busy_ns).sum();
    assert_eq!(wide.targets.iter().filter(|target| target.bytes == 2 << 20).count(), 8);
    assert!(wide.makespan_ns >= busy / 8, "no target worked two requests at once");
}

/// Metadata operations of all processes wait in the same queue.
#[test]
fn metadata_operations_of_all_processes_queue() {
    let bench = Bench::with(|model| model.metadata.operation_ns.value = 2_000_000);
    bench.bash(
        "for i in 1 2 3 4; do (for j in 1 2 3 4 5; do stat pfs >> pfsx/log; done) & done; wait",
    );
    let counters = bench.counters();
    assert_eq!(counters.metadata_ops, 20);
    assert_eq!(counters.metadata_busy_ns, 40_000_000);
    assert!(counters.makespan_ns >= 40_000_000);
}

/// A process that is killed in its sleep leaves only its reserved time in the queue.
#[test]
fn killed_process_blocks_no_other() {
    let bench = Bench::with(|model| model.targets.bandwidth_bytes_per_s.value = 1_000_000);
    let mut sleeper = bench.command("dd");
    sleeper
        .args(["if=/dev/zero", "of=pfs/a", "bs=3M", "count=1", "status=none"])
        .stdin(Stdio::null());
    let mut sleeper = sleeper.spawn().unwrap();
    wait_until(|| bench.counters().data_ops == 1);
    let killed = Instant::now();
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    assert_eq!(bench.read("pfs/a").len(), 0, "it slept before it wrote");
    bench.run("dd if=/dev/zero of=pfs/a bs=1K count=1 status=none");
    assert_eq!(bench.read("pfs/a").len(), 1024);
    // 3 MiB at 1 MB/s take 3.1 s; the bound only distinguishes waiting from blocking.
    assert!(killed.elapsed() < Duration::from_secs(60));
}

/// Kills at arbitrary moments with one shared state: other processes continue and the sums stay consistent.
#[test]
fn kills_at_random_moments_leave_a_working_state() {
    let bench = Bench::new();
    for round in 0..30 {
        let mut writer = bench.command("dd");
        writer.args(["if=/dev/zero", "of=pfs/a", "bs=1K", "count=1000000", "status=none"]);
        let mut writer = writer.spawn().unwrap();
        std::thread::sleep(Duration::from_micros(500 + 731 * round));
        writer.kill().unwrap();
        writer.wait().unwrap();
    }
    let before = bench.counters();
    bench.run("dd if=/dev/zero of=pfs/b bs=1K count=10 status=none");
    assert_eq!(bench.counters().bytes_written, before.bytes_written + 10_240);
}

/// A signal handler runs during the sleep, and the sleep still lasts until the end in the model.
#[test]
fn signals_interrupt_the_delay_without_shortening_it() {
    let bench = Bench::with(|model| model.targets.latency_ns.value = 200_000_000);
    let said = bench.python(
        "import os, signal, time\n\
         hits = []\n\
         signal.signal(signal.SIGALRM, lambda *a: hits.append(1))\n\
         signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)\n\
         fd = os.open('pfs/a', os.O_CREAT | os.O_WRONLY)\n\
         t = time.monotonic(); os.write(fd, b'1'); t = time.monotonic() - t\n\
         signal.setitimer(signal.ITIMER_REAL, 0)\n\
         print(t >= 0.19, len(hits) > 0)\n",
    );
    assert_eq!(said, "True True\n");
}

/// A thread catches up its delay (late wake-ups, the real call), and no more.
#[test]
fn delays_of_small_reads_add_up_to_the_charged_time() {
    let bench = Bench::with(|model| model.targets.latency_ns.value = 4_000_000);
    bench.file("pfs/a", &[1; 1000]);
    let said = bench.python(
        "import os, time\n\
         fd = os.open('pfs/a', 0)\n\
         t = time.monotonic()\n\
         for i in range(50): os.pread(fd, 1, i)\n\
         print(time.monotonic() - t >= 0.199)\n",
    );
    assert_eq!(said, "True\n");
    assert_eq!(
        bench.counters().targets.iter().map(|target| target.busy_ns).max(),
        Some(50 * 4_000_001)
    );
}

fn wait_until(condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < deadline, "waited 60 s in vain");
        std::thread::sleep(Duration::from_millis(1));
    }
}
