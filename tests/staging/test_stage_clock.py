"""Staging where times are odd: files from the past and the future, and a wall clock that jumps both ways."""

import json
import os
import time

import pytest

from support.job import DW
from support.trees import CAREFUL, file_states, stage_list, parts, tree_state, stage, tree  # noqa: F401

NANO = 1_000_000_000
# Before 1970, at its begin, beyond what 32 bits hold, and beyond what 64 bits hold in nanoseconds.
TIMES_S = [-(10**9), -1, 0, 2**31 + 5, 2**33, 15_000_000_000]


def test_past_and_future_file_times_are_kept_and_recognized_next_time(job, tree):
    for number, seconds in enumerate(TIMES_S):
        path = tree / f"from {number}"
        path.write_text(str(seconds))
        os.utime(path, ns=(seconds * NANO + 7, seconds * NANO + 999_999_999))
    os.utime(tree / "large", ns=(2**33 * NANO, 2**33 * NANO))
    assert stage(job, "out", *CAREFUL, "in", "out").returncode == 0
    out = job.directory / "out"
    assert tree_state(out) == tree_state(tree)
    if (tree / "from 5").stat().st_mtime_ns // NANO != TIMES_S[5]:
        assert (out / "from 5").stat().st_mtime_ns == (tree / "from 5").stat().st_mtime_ns
    before = {path: path.lstat().st_ino for path in out.rglob("*")}
    assert stage(job, "out", "in", "out").returncode == 0
    assert before == {path: path.lstat().st_ino for path in out.rglob("*")}, "what is there is not made anew"
    # An older version is another version.
    (tree / "from 4").write_text("older")
    os.utime(tree / "from 4", ns=(0, -5 * NANO))
    assert stage(job, "out", "in", "out").returncode == 0
    assert (out / "from 4").read_text() == "older" and file_states(out) == file_states(tree)


@pytest.fixture
def jumping(build):
    """A library under which the wall clock jumps."""
    return {"LD_PRELOAD": str(build / "tests" / "jumping_clock.so")}


def years_off(milliseconds):
    return abs(milliseconds / 1000 - time.time()) / (365 * 24 * 3600)


def test_staging_is_correct_under_a_clock_that_jumps(job, tree, jumping):
    (tree / "slow").write_bytes(bytes(8 << 20))
    started = stage(job, "out", "--background", "--rate", "1MiB", "in", "out", **jumping)
    id = started.stdout.strip()
    assert started.returncode == 0 and years_off(int(id)) > 9, "the clock was to jump"
    assert stage(job, "status", id, **jumping).returncode == 0
    assert stage(job, "cancel", id, **jumping).returncode == 0
    assert parts(job) == [] and stage_list(job)[0]["state"] == "cancelled"
    assert stage(job, "retry", id, **jumping).returncode == 0
    assert tree_state(job.directory / "out") == tree_state(tree)
    assert stage(job, "out", "in", "out", **jumping).returncode == 0


@pytest.mark.parametrize("store", ["directory", "memory"])
def test_job_is_correct_under_a_clock_that_jumps(job, store, jumping):
    if store == "memory":
        job.in_memory()
    (job.directory / "input").write_text("input\n")
    job.script(
        "mkdir $DW_JOB_STRIPED/out; cat $DW_JOB_STRIPED/input > $DW_JOB_STRIPED/out/a; forebay drain wait\n"
        "cp results/a drained; echo b > $DW_JOB_STRIPED/out/b",
        DW,
        "#DW stage_in type=file source=%d/input destination=$DW_JOB_STRIPED/input",
        "#DW stage_out type=directory source=$DW_JOB_STRIPED/out destination=%d/results",
    )
    path = f"{job.forebay.parent}:{os.environ['PATH']}"
    done = job.run("--drain", "a", "--time", "10", PATH=path, **jumping)
    assert done.returncode == 0, done.stderr
    assert (job.directory / "drained").read_text() == (job.directory / "results" / "a").read_text() == "input\n"
    assert (job.directory / "results" / "b").read_text() == "b\n"
    job.leaves_nothing()


TEN_YEARS_S = 10 * 365 * 24 * 3600


@pytest.mark.parametrize(
    ("by_s", "deadline", "goes_on_s", "code"),
    [(TEN_YEARS_S, "0:24", 4, 0), (-TEN_YEARS_S, "0:12", 60, 124)],
    ids=["ahead", "back"],
)
def test_job_end_is_in_time_under_a_clock_that_jumps(job, jumping, by_s, deadline, goes_on_s, code):
    """Looks are taken every 3.3 s at most."""
    job.script(
        f"mkdir $DW_JOB_STRIPED/out; echo x > $DW_JOB_STRIPED/out/x; touch jumped; exec sleep {goes_on_s}",
        DW,
        "#DW stage_out type=directory source=$DW_JOB_STRIPED/out destination=%d/results",
    )
    jumps = {"CLOCK_JUMPS_WHEN": str(job.directory / "jumped"), "CLOCK_JUMPS_BY_S": str(by_s)}
    done = job.run("--json", "--deadline", deadline, "--drain-margin", "0:01", **jumping, **jumps)
    assert (done.returncode, json.loads(done.stdout)["deadline"]["ended_job"]) == (code, code == 124), done.stderr
    assert (job.directory / "results" / "x").read_text() == "x\n"
