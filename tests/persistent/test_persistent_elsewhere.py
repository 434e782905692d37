"""Persistent allocations of jobs that other machines or containers run, where locks do not tell."""

import os
import time

import pytest
from support.persistent import begun, listed, made, assert_job_allocations_removed, root

# As on NFS, which locks no directory.
NO_LOCKS = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=flock", "-e", "inject=flock:error=EBADF"]


def through(job, wrapper: list[str], start):
    """What forebay does behind another command."""
    real, job.forebay = job.forebay, wrapper[0]
    starts = job.forebay_starts
    job.forebay_starts = lambda *words, **environment: starts(*wrapper[1:], real, *words, **environment)
    try:
        return start()
    finally:
        job.forebay = real
        del job.forebay_starts


def without_locks(job, *words):
    return through(job, NO_LOCKS, lambda: job.command(*words))


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make a namespace of processes with its /proc")
@pytest.mark.parametrize("in_the_end", ["locks tell", "its file is removed"])
def test_allocation_used_on_another_node_without_locks_is_not_destroyed(job, in_the_end):
    made(job)
    container = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    process = through(job, container, lambda: begun(job, "there"))
    (use,) = listed(job)["proj1"]["jobs"]
    assert use["state"] == "elsewhere"
    for hurry in ([], ["--hurry"]):
        done = without_locks(job, "persistent", "destroy", *hurry, "proj1", *job.where)
        assert done.returncode == 1, done.stderr
        asked = f"nothing here tells whether others still use the persistent allocation proj1: job {use['run_id']}"
        assert asked in done.stderr and f"remove what is in {root(job)}/uses" in done.stderr, done.stderr
    assert (root(job) / "striped" / "there").read_text() == "there\n"
    process.kill()  # and the container with it
    process.communicate()
    destroy = ["persistent", "destroy", "proj1", *job.where]
    assert without_locks(job, *destroy).returncode == 1
    if in_the_end == "locks tell":
        done = job.command(*destroy)
    else:
        (file,) = (root(job) / "uses").iterdir()
        file.unlink()
        done = without_locks(job, *destroy)
    assert done.returncode == 0, done.stderr
    assert job.allocations() == []


def test_allocation_created_on_another_node_is_no_leftover_without_locks(job):
    began_ms = int((time.time() - 60) * 1000)
    young = job.store / f"forebay-unfinished~young~{began_ms}~1"
    old = job.store / f"forebay-unfinished~old~{began_ms - 3_600_000}~1"
    for path in (young, old):
        (path / "striped").mkdir(parents=True)
    done = without_locks(job, "persistent", "create", "a", "--capacity", "1MiB", *job.where)
    assert done.returncode == 0, done.stderr
    assert young.exists() and not old.exists()
    made(job, "b")
    assert_job_allocations_removed(job, "a", "b")
