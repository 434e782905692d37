"""`forebay stage` stopped, killed or held at each of its steps, alone and beside another one for the same files."""

import random
import signal
import time

import pytest

from killing import held_at, killed_at, traced
from staged import CALLS, CAREFUL, PIECE, SEED, files_seen, forget, goes_on, kept, parts, seen, stage, tree  # noqa: F401

LIMIT_S = 60


def steps(call):
    """The first calls one by one, then some drawn with a seed: there are some hundred writes."""
    draw, number = random.Random(f"{SEED} {call}"), 1
    while True:
        yield number
        number += 1 if number < 4 else draw.randrange(1, number * 2)


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


# Planning lists and looks; making, copying, syncing, reading again, renaming, linking and attributes are the others.
@pytest.mark.parametrize("call", [*CALLS, "getdents64", "statx", "pread64", "fadvise64"])
def test_stopped_at_any_step_nothing_half_done_stays_and_it_can_be_gone_on_with(job, tree, tmp_path, call):
    before, met = seen(tree), 0
    for number in steps(call):
        an_older_version(job)
        told = tmp_path / "calls"
        process = traced(
            job, call, f"signal=INT:when={number}", "stage", "out", *CAREFUL, "in", "out", threads=True, told=told
        )
        status = process.wait(timeout=LIMIT_S)
        if "SIGINT" not in told.read_text():
            assert status == 0
            break
        met += 1
        # While it looked for its sources it stops with an error; at its last step it may be done.
        assert status in (0, 1, 123, -signal.SIGINT), (number, status)
        is_old_or_new(job, tree)
        assert parts(job) == [] and seen(tree) == before
        if status != 0:
            goes_on(job, tree, was_there=True)
        forget(job)
    assert met > 0 or call in ("link", "linkat", "symlink", "symlinkat", "mkdir"), f"{call} is never called"


@pytest.mark.parametrize("call", ["mkdir", "openat", "pwrite64", "ftruncate", "utimensat", "fsync", "rename", "linkat"])
def test_another_staging_of_the_same_files_does_not_mind_one_that_was_killed(job, tree, call):
    for number in steps(call):
        if not killed_at(job, call, number, "stage", "out", *CAREFUL, "in", "out", threads=True):
            break
        (tree / "large").write_bytes(bytes([number % 256]) * (2 * PIECE))  # and the source is a newer one meanwhile
        left = kept(job)
        done = stage(job, "out", "in", "out")
        assert done.returncode == 0, (number, done.stderr)
        assert files_seen(job.directory / "out") == files_seen(tree), number
        for one in left:
            assert stage(job, "retry", one["id"]).returncode == 0
        assert parts(job) == [], number
        assert files_seen(job.directory / "out") == files_seen(tree), number
        forget(job)


@pytest.mark.parametrize("call", ["mkdir", "openat", "pwrite64", "ftruncate", "utimensat", "fsync", "rename", "link"])
def test_of_two_stagings_at_once_one_is_held_at_any_step_and_no_file_is_half(job, tree, call):
    """The one that is held has read an older source; whoever comes last decides what stands there."""
    out, met = job.directory / "out", 0
    first, second = (tree / "large").read_bytes(), bytes(2 * PIECE + 1)
    # With nothing but a directory, with a half file, with one file in place, with the large one in place.
    moments = (out.exists, lambda: parts(job), lambda: (out / "deep" / "small 0").exists(), (out / "large").exists)
    for moment in moments:
        (tree / "large").write_bytes(first)
        with held_at(job, call, moment, "stage", "out", *CAREFUL, "in", "out") as held:
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
        for one in kept(job):
            assert stage(job, "retry", one["id"]).returncode == 0
        assert stage(job, "out", "in", "out").returncode == 0
        assert files_seen(out) == files_seen(tree)
        forget(job)
    assert met > 0


def test_where_no_locks_are_two_processes_do_not_carry_out_one_journal_either(job, tree):
    """NFS without its lock daemon, or a parallel file system mounted without flock."""
    (tree / "slow").write_bytes(random.Random(SEED).randbytes(64 * PIECE))
    first = traced(job, "flock", "error=ENOLCK", "stage", "out", *CAREFUL, "--rate", "2MiB", "in", "out", threads=True)
    try:
        deadline = time.monotonic() + LIMIT_S
        while not parts(job):
            assert first.poll() is None and time.monotonic() < deadline
            time.sleep(0.01)
        (one,) = kept(job)
        second = traced(job, "flock", "error=ENOLCK", "stage", "retry", one["id"], threads=True)
        assert second.wait(timeout=LIMIT_S) == 1
        assert first.wait(timeout=LIMIT_S) == 0
    finally:
        first.kill()
        first.wait()
    assert seen(job.directory / "out") == seen(tree) and parts(job) == []
