"""Drain while the job computes: what is where before the job ends, and what is left to stage-out."""

import json
import os
import re
import shutil
import subprocess

import pytest

from support.drain import OUT, WAIT, account, counts, drained  # noqa: F401
from support.job import DW, INTERRUPT, KILL
from support.slow_model import MODEL
from support.strace import strace


def test_closed_file_is_drained_while_the_job_runs_and_not_copied_again(drained):
    drained.body(
        "mkdir -m 750 deep",
        "seq 100000 > deep/step-1.nc; echo log > log",
        f'{WAIT} > "$SLURM_SUBMIT_DIR/status"',
        'stat -c %i:%a:%Y "$PFS"/deep/step-1.nc > "$SLURM_SUBMIT_DIR/arrived"; stat -c :%a:%Y deep/step-1.nc > "$SLURM_SUBMIT_DIR/source"',
        'ls "$PFS" > "$SLURM_SUBMIT_DIR/listed"',
    )
    done, _ = account(drained, "--drain", "*.nc")
    status = json.loads((drained.directory / "status").read_text())
    assert counts(status, "enqueued", "dequeued", "done", "waiting", "failures") == [1, 1, 1, 0, []]
    assert (drained.directory / "listed").read_text() == "deep\n"
    arrived = (drained.directory / "arrived").read_text()
    assert arrived[arrived.index(":") :] == (drained.directory / "source").read_text()
    found = os.stat(drained.pfs / "deep" / "step-1.nc")
    assert arrived.startswith(f"{found.st_ino}:")  # the same file stands there still
    assert (drained.pfs / "deep" / "step-1.nc").read_text().splitlines()[-1] == "100000"
    assert (drained.pfs / "log").read_text() == "log\n"
    assert (drained.pfs / "deep").stat().st_mode & 0o777 == 0o750
    assert counts(done["drain"], "done", "bytes") == [1, found.st_size]
    assert counts(done["stage_out"], "files", "unchanged_files") == [2, 1]
    assert done["drain"]["last_safe_s"] > 0


def test_each_closed_version_is_drained_and_the_last_one_remains(drained):
    drained.body(
        f"echo 1 > a.nc; {WAIT} > /dev/null; cat $PFS/a.nc >> $PFS.seen",
        f"echo 2 >> a.nc; {WAIT} > /dev/null; cat $PFS/a.nc >> $PFS.seen",
        f'echo 3 >> a.nc; {WAIT} > "$SLURM_SUBMIT_DIR/status"',
        "echo 4 >> a.nc",
    )
    done, _ = account(drained, "--drain", "a.*")
    assert drained.pfs.with_suffix(".seen").read_text() == "1\n1\n2\n"
    status = json.loads((drained.directory / "status").read_text())
    assert counts(status, "enqueued", "done") == [3, 3]
    assert (drained.pfs / "a.nc").read_text() == "1\n2\n3\n4\n"
    drain = done["drain"]
    assert drain["enqueued"] == 4 == sum(counts(drain, "done", "failed", "superseded", "skipped", "waiting"))


def test_open_file_is_not_drained_until_it_is_closed(drained):
    drained.body(
        "exec 3> a.nc; echo half >&3",
        f"{WAIT} > $PFS.first; test ! -e $PFS/a.nc || exit 9",
        f"echo whole >&3; exec 3>&-; {WAIT} > $PFS.second; cat $PFS/a.nc > $PFS.seen",
    )
    account(drained, "--drain", "*.nc")
    first, second = (json.loads(drained.pfs.with_suffix(end).read_text()) for end in (".first", ".second"))
    assert counts(first, "enqueued", "done") == [0, 0]
    assert counts(second, "enqueued", "done") == [1, 1]
    assert drained.pfs.with_suffix(".seen").read_text() == "half\nwhole\n"


# The first ones are copied for as long as the test wants: a block of each is paid for at so many bytes per second.
def taken(files: int) -> str:
    number = "grep -o '\"dequeued\":[0-9]*'"
    return f"""until [ "$("$FOREBAY" drain status --json | {number})" = '"dequeued":{files}' ]; do :; done"""


TAKEN = taken(1)


def test_newest_rule_drains_only_the_last_closed_file(drained):
    drained.body(
        f"head -c 500000 /dev/zero > chk1; {TAKEN}",
        "echo 2 > chk2; echo 3 > chk3",
        f'{WAIT} > "$SLURM_SUBMIT_DIR/status"; ls $PFS > $PFS.seen',
    )
    account(drained, "--drain", "chk*:rate=250kB/s:newest")
    status = json.loads((drained.directory / "status").read_text())
    assert counts(status, "enqueued", "done", "skipped") == [3, 2, 1]
    assert drained.pfs.with_suffix(".seen").read_text() == "chk1\nchk3\n"
    assert sorted(os.listdir(drained.pfs)) == ["chk1", "chk2", "chk3"]  # stage_out takes them all


def test_job_end_waits_neither_for_the_drain_queue_nor_for_its_rate(drained):
    """Four are copied at a time; then two wait."""
    drained.body(f"for n in 1 2 3 4; do head -c 5000000 /dev/zero > a$n; done; {taken(4)}", "echo 2 > b; echo 3 > c")
    done, _ = account(drained, "--drain", "*:rate=1/s")
    assert counts(done["drain"], "done", "waiting") == [4, 2]
    assert counts(done["stage_out"], "files", "unchanged_files") == [6, 4]
    assert (drained.pfs / "a1").stat().st_size == 5000000


def test_drain_to_copies_into_a_directory_that_no_directive_names(job):
    job.in_memory()
    to = job.directory.parent / "elsewhere"
    job.script(
        'mkdir -p "$DW_JOB_STRIPED/a/b"; cd "$DW_JOB_STRIPED"; echo 1 > a/b/x.nc; echo no > a/x.tmp\n'
        f"'{job.forebay}' drain wait; cat {to}/a/b/x.nc > {to}.seen; echo late > late.nc; rm a/b/x.nc",
        DW,
    )
    done, _ = account(job, "--drain", f"*.nc:to={to}")
    assert to.with_suffix(".seen").read_text() == "1\n"
    assert (to / "a/b/x.nc").read_text() == "1\n"  # what was drained stays
    assert (to / "late.nc").read_text() == "late\n"
    assert not (to / "a/x.tmp").exists()
    assert done["drain"]["enqueued"] == 2


def test_drain_to_the_destination_of_a_directive_is_accepted(drained):
    drained.body("echo 1 > a.nc; echo 2 > b.nc")
    account(drained, "--drain", f"out/a.nc:to={drained.pfs.parent}/x", "--drain", f"out/b.nc:to={drained.pfs}/../pfs")
    assert sorted(os.listdir(drained.pfs)) == ["a.nc", "b.nc", "out"]
    assert (drained.pfs.parent / "x/out/a.nc").read_text() == "1\n"


def test_drain_variable_works_like_the_option_and_is_not_inherited(drained):
    drained.body(
        f"echo 1 > a.nc; {WAIT} > /dev/null; cat $PFS/a.nc > $PFS.seen; echo ${{FOREBAY_DRAIN-none}} >> $PFS.seen"
    )
    done, said = account(drained, "--explain", FOREBAY_DRAIN="*.nc:rate=500MB/s")
    assert drained.pfs.with_suffix(".seen").read_text() == "1\nnone\n"
    assert "at most 476.84 MiB/s" in said and "drained before stage-out: 1 file, 2 B; 0 left" in said
    assert done["drain"]["done"] == 1


@pytest.mark.parametrize(
    ("options", "environment", "code", "part"),
    [
        (["--drain", "*.h5,other/*"], {}, 125, "no stage_out line of the script takes a file other/*"),
        (["--drain", "*:rate=fast"], {}, 2, "rate=fast"),
        (["--drain", "*:newest:latest"], {}, 2, "latest: no such setting"),
        (["--drain", "/abs/*"], {}, 2, "below the burst buffer"),
        (["--drain", "[a"], {}, 2, "[a"),
        (["--drain", "*:to=/proc/nowhere"], {}, 125, "drain to /proc/nowhere"),
        (["--drain", "*:to=job.sh"], {}, 125, "is no directory"),
        (["--drain", "*", "--no-burst-buffer"], {}, 2, "--no-burst-buffer"),
        ([], {"FOREBAY_DRAIN": "*:rate=0/s"}, 125, 'FOREBAY_DRAIN: drain = "*:rate=0/s": rate=0/s'),
        (["--spectral"], {"PERSIST_DIR": "/tmp", "PFS_DIR": "/tmp"}, 125, "it is not in the burst buffer"),
    ],
)
@pytest.mark.parametrize("dry", [False, True])
def test_unusable_drain_rules_are_reported_before_the_job_starts(drained, options, environment, code, part, dry):
    if dry and part.endswith("nowhere"):
        return  # nothing is made
    drained.body("touch $PFS.ran")
    done = drained.run(*options, *(["--dry-run"] if dry else []), **environment)
    assert done.returncode == code, done.stderr
    assert part in done.stderr
    assert not drained.pfs.with_suffix(".ran").exists()
    drained.leaves_nothing()


def test_drain_without_a_burst_buffer_is_refused(job):
    job.script("touch ran")
    done = job.run("--drain", "*")
    assert done.returncode == 125 and "there is no burst buffer" in done.stderr and "hint: add one" in done.stderr
    assert not (job.directory / "ran").exists()


def test_drain_query_outside_a_draining_job_is_an_error(drained):
    for verb in ("status", "wait"):
        done = drained.command("drain", verb)
        assert done.returncode == 1 and "this is no job" in done.stderr and "hint: " in done.stderr
    drained.body('"$FOREBAY" drain wait')
    done = drained.run()
    assert done.returncode == 1 and "nothing of this job is drained" in done.stderr


def test_failed_drain_is_listed_and_stage_out_retries_it(drained):
    # In the way of the directory there is a file, until the application is done.
    drained.body(
        "mkdir d; touch $PFS/d; echo 1 > d/a.nc; echo 2 > b.nc",
        f'{WAIT} > "$SLURM_SUBMIT_DIR/status" && exit 9',
        "rm $PFS/d",
    )
    drained.pfs.mkdir()
    done, said = account(drained, "--drain", "*.nc")
    status = json.loads((drained.directory / "status").read_text())
    assert counts(status, "done", "failed") == [1, 1]
    assert status["failures"][0][0].endswith("/d/a.nc")
    assert "d/a.nc: cannot make the directory" in said and "stage-out tries again" in said
    assert counts(done["stage_out"], "files", "unchanged_files", "failures") == [2, 1, []]
    assert (drained.pfs / "d/a.nc").read_text() == "1\n"
    assert counts(done["drain"], "failed", "done") == [1, 1]


def test_full_drain_destination_does_not_end_the_job(drained):
    """A file system of 1 MiB that a namespace of the test's own has; the job makes room at its end."""
    drained.pfs.mkdir()
    drained.body(
        "head -c 900000 /dev/zero > $PFS/full; head -c 300000 /dev/zero > a.nc",
        f'{WAIT} > "$SLURM_SUBMIT_DIR/status"; ls -a $PFS > "$SLURM_SUBMIT_DIR/listed"; rm $PFS/full',
    )
    mount = f'mount -t tmpfs -o size=1m none "{drained.pfs}" && "{drained.forebay}" run "$@" job.sh && stat -c %s "{drained.pfs}/a.nc" > size'
    real, drained.forebay = drained.forebay, shutil.which("unshare")
    try:
        words = [
            "--user",
            "--map-root-user",
            "--mount",
            "sh",
            "-c",
            mount,
            "sh",
            *map(str, drained.where),
            "--json",
            "--drain",
            "*.nc",
        ]
        done = drained.command(*words)
    finally:
        drained.forebay = real
    assert done.returncode == 0, done.stderr
    status = json.loads((drained.directory / "status").read_text())
    assert counts(status, "done", "failed") == [0, 1] and "No space left" in status["failures"][0][1]
    assert (drained.directory / "listed").read_text().split() == [".", "..", "full"]  # no half file
    assert (drained.directory / "size").read_text() == "300000\n"
    drained.leaves_nothing()


SLOW = "*.nc:rate=1/s"  # the first block of it takes for ever


def half_done(job):
    """A file is on its way."""
    return lambda: job.pfs.exists() and any(name.endswith(".part") for name in os.listdir(job.pfs))


def test_ctrl_c_during_drain_loses_no_file(drained):
    drained.body("head -c 9000000 /dev/zero > a.nc; echo 2 > b.nc; sleep 600")
    code, err = drained.stop_when(drained.start("--drain", SLOW), half_done(drained), INTERRUPT)
    assert code == 130, err
    assert sorted(os.listdir(drained.pfs)) == ["a.nc", "b.nc"]
    assert (drained.pfs / "a.nc").stat().st_size == 9000000
    drained.leaves_nothing()


def test_kill_during_drain_loses_no_file_and_leaves_no_partial_file(drained):
    drained.body("head -c 9000000 /dev/zero > a.nc; echo 2 > b.nc; sleep 600")
    drained.stop_when(drained.start("--drain", SLOW), half_done(drained), KILL)
    assert not (drained.pfs / "a.nc").exists()
    done = drained.command("clean", "--kill")
    assert done.returncode == 0, done.stderr
    assert sorted(os.listdir(drained.pfs)) == ["a.nc", "b.nc"]
    assert (drained.pfs / "a.nc").stat().st_size == 9000000
    drained.leaves_nothing()


@pytest.mark.parametrize("discard", [False, True])
def test_kill_during_drain_leaves_no_partial_file_in_any_directory(drained, discard):
    """What lies deep is in no journal yet, and the first file of the stage-out is another one."""
    drained.body("echo 1 > a; mkdir -p d/e; for n in 1 2 3; do head -c 9000000 /dev/zero > d/e/$n.nc; done; sleep 600")
    deep = drained.pfs / "d" / "e"
    three = lambda: deep.exists() and sum(name.endswith(".part") for name in os.listdir(deep)) == 3
    drained.stop_when(drained.start("--drain", SLOW), three, KILL)
    done = drained.command("clean", "--kill", *(["--discard"] if discard else []))
    assert done.returncode == 0, done.stderr
    files = sorted(path.name for path in drained.pfs.rglob("*") if path.is_file())
    assert files == ([] if discard else ["1.nc", "2.nc", "3.nc", "a"])
    drained.leaves_nothing()


def test_partial_drain_below_a_mapped_path_is_reported(drained):
    (drained.directory / "behind").mkdir()
    drained.script('cd "$DW_JOB_STRIPED"; head -c 9000000 /dev/zero > a.nc; sleep 600', DW)
    parts = lambda: list((drained.directory / "behind").glob("*.part"))
    shown = ("--map", f"/shown={drained.directory}/behind", "--drain", f"{SLOW}:to=/shown")
    drained.stop_when(drained.start(*shown), parts, KILL)
    done = drained.command("clean", "--kill", "--discard")
    assert done.returncode == 0 and "half drained in /shown" in done.stderr, done.stderr
    drained.leaves_nothing()


def test_killed_job_files_drained_elsewhere_are_drained_by_clean(drained):
    drained.script('cd "$DW_JOB_STRIPED"; head -c 9000000 /dev/zero > a.nc; echo 2 > b.nc; echo no > c; sleep 600', DW)
    drained.stop_when(drained.start("--drain", f"{SLOW}:to={drained.pfs}"), half_done(drained), KILL)
    shown = json.loads(drained.command("status", "--json").stdout)
    assert shown[0]["undrained"] is True
    done = drained.command("clean", "--kill")
    assert done.returncode == 0, done.stderr
    assert sorted(os.listdir(drained.pfs)) == ["a.nc", "b.nc"]
    drained.leaves_nothing()


@pytest.mark.parametrize("drained", ["directory"], indirect=True)
def test_file_changed_during_drain_is_drained_after_its_next_close(drained):
    """The change comes while the copy waits for its rate, or between the look at the file and its first byte."""
    drained.body(
        f"head -c 5000000 /dev/zero > a.nc; {TAKEN}",
        "exec 3>> a.nc; echo more >&3",
        # Until the copy is given up, it is neither done nor waits.
        'until "$FOREBAY" drain status --json | grep -q \'"superseded":1\'; do :; done',
        "ls $PFS > $PFS.seen; exec 3>&-",
        f"{WAIT} > /dev/null; stat -c %s $PFS/a.nc >> $PFS.seen",
    )
    account(drained, "--drain", "*.nc:rate=1MB/s")
    assert drained.pfs.with_suffix(".seen").read_text() == "5000005\n"


def test_older_files_of_a_newest_rule_are_staged_out_at_the_job_end(drained, tmp_path):
    to = tmp_path / "elsewhere"
    drained.body("for n in 1 2 3; do echo $n > chk$n; done")
    account(drained, "--drain", f"chk*:newest:to={to}")
    assert sorted(path.name for path in to.rglob("chk*")) == ["chk1", "chk2", "chk3"]


def traced(job, calls, *options):
    """Lines of those calls of a run. What is one call to us may be two lines, where another thread's comes between."""
    trace = job.directory.parent / "told"
    tracer = [*strace(), "-f", "-qq", "-o", trace, "-e", f"trace={calls}", "-e", "signal=none"]
    words = [*tracer, job.forebay, "run", *job.where, *options, "job.sh"]
    subprocess.run(words, cwd=job.directory, env=job.environment(), check=True)
    return trace.read_text().splitlines()


@pytest.mark.parametrize("drained", ["directory"], indirect=True)
def test_drain_copies_have_low_priority_only_while_the_job_runs(drained):
    """The class is that of the thread which copies, not of the one that waits for it and from which it has it."""
    (drained.directory / "slow.toml").write_text(MODEL.replace("20 MB/s", "8 MB/s"))
    drained.pfs.mkdir()
    drained.body(
        "head -c 30M /dev/zero > big.nc; until ls -A $PFS | grep -q part; do sleep 0.01; done",
        'cut -d " " -f 19 /proc/$PPID/task/*/stat > "$SLURM_SUBMIT_DIR/nice"',
    )
    options = ["--drain", "*.nc", "--pfs-model", "slow.toml", "--pfs-root", drained.pfs]
    lines = traced(drained, "ioprio_set,setpriority", *options)
    asked = lambda what: len([line for line in lines if re.search(rf"PROCESS, 0, (IOPRIO.*)?{what}", line)])  # noqa: E731
    assert (asked("CLASS_IDLE"), asked("\\b10\\b"), asked("CLASS_NONE")) == (4, 4, 1), lines
    assert not [line for line in lines if " = -1" in line], lines
    nice = (drained.directory / "nice").read_text().split()
    assert nice.count("10") > 4, nice  # the four, and the one that copies
    assert (drained.pfs / "big.nc").stat().st_size == 30 << 20
    drained.leaves_nothing()


@pytest.mark.parametrize("drained", ["directory"], indirect=True)
def test_drain_rate_covers_verification_until_the_job_ends(drained):
    """What is one block waits for its rate when it is written, which the end of the job ends. Then it is read again:
    who is not to wait any more wants the disk as others do."""
    drained.body(
        f"head -c 1M /dev/zero > a.nc; {TAKEN}",
        'until [ "$(stat -c %s "$PFS"/.*.part)" = 1048576 ]; do sleep 0.01; done; sleep 0.1',
    )
    drained.pfs.mkdir()
    lines = traced(drained, "ioprio_set", "--drain", SLOW, "--stage-verify", "end")
    assert len([line for line in lines if "CLASS_NONE" in line]) == 1, lines
    assert (drained.pfs / "a.nc").stat().st_size == 1 << 20
    drained.leaves_nothing()
