"""`forebay stage` stopped, killed or held at each of its steps, alone and next to another one for the same files."""

import json
import pathlib
import random
import re
import signal

import pytest

from support.job import DW, finished
from support.strace import EVERY_POINT, calls_made, pause_at_syscall, kill_at_each_syscall, points, traced
from support.trees import (
    CALLS,
    CAREFUL,
    PIECE,
    SEED,
    arrived,
    file_states,
    forget,
    retry_completes,
    stage_list,
    parts,
    tree_state,
    stage,
)
from support.trees import tree  # noqa: F401 (a fixture)
from support.waiting import wait_until

LIMIT_S = 300


def an_older_version(job):
    """What an earlier staging has left at the destination: one file is to be replaced."""
    (job.directory / "out").mkdir()
    (job.directory / "out" / "large").write_bytes(b"older")


def is_old_or_new(job, tree):
    """Nothing under its final name is half written."""
    for path in (job.directory / "out").rglob("*"):
        assert not path.name.endswith(".part"), path
        source = tree / path.relative_to(job.directory / "out")
        if path.is_file() and not path.is_symlink():
            content = path.read_bytes()
            assert content == source.read_bytes() or (path.name, content) == ("large", b"older"), path


def moments(job):
    """With nothing but a directory, with a half file, with one file in place, with the large one in place."""
    out, older = job.directory / "out", b"older"
    large = out / "large"
    return (
        (out / "deep").exists,
        lambda: parts(job),
        (out / "deep" / "small 0").exists,
        lambda: large.exists() and large.read_bytes() != older,
    )


# Calls to hold it at, each at these of the moments; `make soak` takes all calls at all moments.
HELD = [("mkdir", [0]), ("pwrite64", [1]), ("rename", [1, 3])]
if EVERY_POINT:
    others = ["openat", "ftruncate", "utimensat", "fsync", "renameat2", "link"]
    HELD = [(call, range(4)) for call in [*(call for call, _ in HELD), *others]]


# Planning lists and looks; making, copying, syncing, reading again, renaming, linking and attributes are the others.
@pytest.mark.parametrize("call", [*CALLS, "getdents64", "statx", "pread64", "fadvise64"])
def test_stage_sigint_at_any_step_leaves_no_partial_and_retry_completes(job, tree, tmp_path, call):
    before, met = tree_state(tree), 0
    an_older_version(job)
    count = calls_made(job, call, "stage", "out", *CAREFUL, "in", "out", threads=True)
    forget(job)
    for number in points(count):
        an_older_version(job)
        trace = tmp_path / "calls"
        process = traced(
            job, call, f"signal=INT:when={number}", "stage", "out", *CAREFUL, "in", "out", threads=True, trace=trace
        )
        status = process.wait(timeout=LIMIT_S)
        if "SIGINT" not in trace.read_text():
            assert status == 0
            forget(job)
            continue
        met += 1
        # While it looked for its sources it stops with an error; at its last step it may be done.
        assert status in (0, 1, 123, -signal.SIGINT), (number, status)
        is_old_or_new(job, tree)
        assert parts(job) == [] and tree_state(tree) == before
        if status != 0:
            retry_completes(job, tree, was_there=True)
        forget(job)
    assert met > 0 or call in ("link", "linkat", "symlink", "symlinkat", "mkdir"), f"{call} is never called"


@pytest.mark.parametrize(("call", "at"), HELD)
def test_stage_cancelled_at_any_step_leaves_no_partial_and_retry_completes(job, tree, call, at):
    before, out, stopped = tree_state(tree), job.directory / "out", 0
    for moment in (moments(job)[number] for number in at):
        an_older_version(job)
        # Slowly, so that it is not done before it looks whether it is cancelled.
        with pause_at_syscall(job, call, moment, "stage", "out", *CAREFUL, "--rate", "256KiB", "in", "out") as held:
            left = stage_list(job) if held is not None else []  # at its last step it has forgotten it
            if left:
                cancel = job.forebay_starts("stage", "cancel", left[0]["id"])
                # It has asked, and waits for the answer; or that is known already.
                waits = pathlib.Path(f"/proc/{cancel.pid}/wchan")
                wait_until(lambda: cancel.poll() is not None or waits.read_text() == "hrtimer_nanosleep")
        if left:
            done = finished(cancel)
            assert done.returncode == 0 or "there is no staging" in done.stderr, done.stderr
            # At its last step it may be done.
            assert held.returncode in (0, 123), (call, held.returncode)
            stopped += held.returncode == 123
            is_old_or_new(job, tree)
            assert parts(job) == [] and tree_state(tree) == before
            retry_completes(job, tree, was_there=True)
        assert file_states(out) == file_states(tree)
        forget(job)
    assert stopped > 0


@pytest.mark.parametrize("call", ["mkdir", "pwrite64", "fsync", "rename", "renameat2", "linkat"])
def test_staging_of_same_files_succeeds_after_another_was_killed(job, tree, call):
    words = ("stage", "out", *CAREFUL, "in", "out")
    for number in kill_at_each_syscall(job, call, *words, threads=True, again=lambda: forget(job)):
        (tree / "large").write_bytes(bytes([number % 256]) * (2 * PIECE))  # and the source is a newer one meanwhile
        left = stage_list(job)
        done = stage(job, "out", "in", "out")
        assert done.returncode == 0, (number, done.stderr)
        assert file_states(job.directory / "out") == file_states(tree), number
        for one in left:
            assert stage(job, "retry", one["id"]).returncode == 0
        assert parts(job) == [], number
        assert file_states(job.directory / "out") == file_states(tree), number
        forget(job)


@pytest.mark.parametrize(("call", "at"), HELD)
def test_concurrent_stagings_never_expose_a_partial_file(job, tree, call, at):
    """The one that is held has read an older source; whoever comes last decides what stands there."""
    out, met = job.directory / "out", 0
    first, second = (tree / "large").read_bytes(), bytes(2 * PIECE + 1)
    for moment in (moments(job)[number] for number in at):
        (tree / "large").write_bytes(first)
        with pause_at_syscall(job, call, moment, "stage", "out", *CAREFUL, "in", "out") as held:
            if held is not None:
                met += 1
                (job.directory / "newer").write_bytes(second)
                (job.directory / "newer").rename(tree / "large")  # whoever reads it sees one version or the other
                done = stage(job, "out", "in", "out")
                assert done.returncode == 0, done.stderr
                assert (out / "large").read_bytes() == second
        assert held is None or held.returncode in (0, 123)
        assert (out / "large").read_bytes() in (first, second) and parts(job) == []
        # In the end there is one state: that of the source.
        for one in stage_list(job):
            assert stage(job, "retry", one["id"]).returncode == 0
        assert stage(job, "out", "in", "out").returncode == 0
        assert file_states(out) == file_states(tree)
        forget(job)
    assert met > 0


def test_journal_without_flock_is_carried_out_by_one_process(job, tree):
    """NFS without its lock daemon, or a parallel file system mounted without flock."""
    (tree / "slow").write_bytes(random.Random(SEED).randbytes(64 * PIECE))
    first = traced(
        job, "flock", "error=ENOLCK", "stage", "out", *CAREFUL, "--rate", "512KiB", "in", "out", threads=True
    )
    try:
        wait_until(lambda: parts(job), process=first)
        (one,) = stage_list(job)
        second = traced(job, "flock", "error=ENOLCK", "stage", "retry", one["id"], threads=True)
        assert second.wait(timeout=LIMIT_S) == 1
        assert first.wait(timeout=LIMIT_S) == 0
    finally:
        first.kill()
        first.wait()
    assert tree_state(job.directory / "out") == tree_state(tree) and parts(job) == []


def test_staging_stopped_after_the_last_file_finishes_directories(job, tmp_path):
    """Twelve files are one batch: the second sync is that of their names, after which no file is left."""
    source = job.directory / "in"
    (source / "deep").mkdir(parents=True)
    for number in range(12):
        (source / "deep" / f"{number}").write_text("x")
    trace = tmp_path / "calls"
    # The signal is known before the call returns.
    happens = "signal=INT:delay_exit=500000:when=2"
    process = traced(job, "syncfs", happens, "stage", "out", *CAREFUL, "in", "out", threads=True, trace=trace)
    assert process.wait(timeout=LIMIT_S) == 0
    assert "SIGINT" in trace.read_text()
    arrived(job, source)
    assert stage_list(job) == []


# A look at each of so many files takes so long: all of them would take twelve seconds.
FILES, EACH_US = 600, 20_000


@pytest.fixture
def slow(job):
    """A directory in which each look takes long, and less than one portion of them."""
    (job.directory / "in").mkdir()
    for number in range(FILES):
        (job.directory / "in" / f"{number}").write_text("x")
    return job.directory / "in"


def start_slow_scan(job, trace, *words):
    return traced(job, "newfstatat", f"delay_enter={EACH_US}", *words, threads=True, trace=trace)


def files_examined(trace):
    """How many of the files were looked at."""
    return len(re.findall(r'newfstatat\(\d+, "\d+",', trace.read_text())) if trace.exists() else 0


def stopped(job, process, id, how):
    if how == "cancel":
        done = stage(job, "cancel", id)
        assert done.returncode == 0, done.stderr
    else:
        process.send_signal(how)
    return process.wait(timeout=LIMIT_S)


@pytest.mark.soak
@pytest.mark.parametrize("how", ["cancel", signal.SIGTERM])
def test_stage_stopped_while_listing_sources_stops_within_a_directory(job, slow, tmp_path, how):
    trace = tmp_path / "calls"
    process = start_slow_scan(job, trace, "stage", "out", "in", "out")
    wait_until(lambda: files_examined(trace) > 5)
    (one,) = stage_list(job)
    assert stopped(job, process, one["id"], how) == 1
    assert files_examined(trace) < FILES and not (job.directory / "out").exists()
    left = stage_list(job)
    if how == "cancel":
        assert [one["state"] for one in left] == ["cancelled"]
        assert stage(job, "retry", one["id"]).returncode == 0
        assert tree_state(job.directory / "out") == tree_state(slow)
    else:
        assert left == [], "it was not begun"


@pytest.mark.parametrize("how", ["cancel", signal.SIGINT])
def test_retry_that_scans_again_can_be_stopped(job, slow, tmp_path, how):
    process = start_slow_scan(job, tmp_path / "first", "stage", "out", "in", "out")
    wait_until(lambda: files_examined(tmp_path / "first") > 5)
    (one,) = stage_list(job)
    process.kill()
    process.wait()
    trace = tmp_path / "second"
    process = start_slow_scan(job, trace, "stage", "retry", one["id"])
    wait_until(lambda: files_examined(trace) > 5)
    assert stopped(job, process, one["id"], how) == 1
    assert files_examined(trace) < FILES
    (left,) = stage_list(job)
    assert left["state"] == ("cancelled" if how == "cancel" else "interrupted")
    assert stage(job, "retry", one["id"]).returncode == 0
    assert tree_state(job.directory / "out") == tree_state(slow)


@pytest.mark.soak
@pytest.mark.parametrize("how", ["cancel", signal.SIGINT])
def test_job_can_be_stopped_while_it_scans_for_stage_out(job, slow, tmp_path, how):
    job.script(
        "mv in $DW_JOB_STRIPED/out",
        DW,
        "#DW stage_out type=directory source=$DW_JOB_STRIPED/out destination=%d/results",
    )
    trace = tmp_path / "calls"
    process = start_slow_scan(job, trace, "run", *job.where, "job.sh")
    wait_until(lambda: files_examined(trace) > 5)
    (one,) = json.loads(job.command("status", "--json").stdout)
    assert stopped(job, process, one["job_id"], how) == 123
    assert files_examined(trace) < FILES and not (job.directory / "results").exists()
    (left,) = json.loads(job.command("status", "--json").stdout)
    assert (left["state"], left["undrained"]) == ("kept", True)
    cleaned = job.command("clean")
    assert cleaned.returncode == 0, cleaned.stderr
    assert len(list((job.directory / "results").iterdir())) == FILES
    job.leaves_nothing()


@pytest.mark.parametrize("how", ["cancel", signal.SIGINT])
def test_job_stopped_while_it_scans_for_stage_in_leaves_nothing(job, slow, tmp_path, how):
    job.script("touch started", DW, "#DW stage_in type=directory source=%d/in destination=$DW_JOB_STRIPED/in")
    trace = tmp_path / "calls"
    process = start_slow_scan(job, trace, "run", *job.where, "job.sh")
    wait_until(lambda: files_examined(trace) > 5)
    (one,) = json.loads(job.command("status", "--json").stdout)
    assert stopped(job, process, one["job_id"], how) == 125
    assert files_examined(trace) < FILES and not (job.directory / "started").exists()
    job.leaves_nothing()
