"""`forebay run` is killed at each call that makes or takes away something; `forebay clean` then finds all of it."""

import json
import os
import pathlib

import pytest
from support.bed_processes import send
from support.job import DW, KILL
from support.strace import (
    EVERY_POINT,
    abandoned,
    calls_made,
    few,
    has_ended,
    inject_between,
    kill_at_syscall,
    kill_at_each_syscall,
    points,
)
from support.slow_model import MODEL
from support.waiting import wait_until
from support.trees import named

ROOMY = DW.replace("64MiB", "256MiB")
STAGE_OUT = "#DW stage_out type=directory source=$DW_JOB_STRIPED/out destination=%d/results"


@pytest.mark.parametrize("store", ["memory", "directory"])
@pytest.mark.parametrize("call", ["mkdir", "rename", "symlink", "unlink"])
def test_job_killed_at_any_step_is_removed_completely(job, store, call):
    job.script("true", DW)
    if store == "memory":
        job.in_memory()
    number = 0
    for number in kill_at_each_syscall(job, call, "run", *job.where, "job.sh"):
        done = job.command("clean", "--kill", "--discard")
        assert done.returncode == 0, (number, done.stderr)
        if job.leftovers():
            abandoned(job)
            job.command("clean")
            job.settings.clear()
        try:
            job.leaves_nothing()
        except AssertionError as kill_running_job:
            raise AssertionError(f"killed at {call} number {number}") from kill_running_job
    assert number > 0, f"the job never calls {call}"


BEGINS = ("symlink", "rename", "bind", "clone", "clone3", "vfork")


WATCHED = ["--drain", "*", "--on-close", "*=true"]


@pytest.mark.parametrize(("store", "options"), few(("memory", []), ("directory", WATCHED)))
def test_job_killed_before_its_script_has_nothing_to_stage_out(job, store, options):
    """And from the script's first step on, all of it must."""
    job.script("touch began; mkdir $DW_JOB_STRIPED/out; echo precious > $DW_JOB_STRIPED/out/it", DW, STAGE_OUT)
    if store == "memory":
        job.in_memory()
    began = set()

    def again():
        for name in ("began", "results/it"):
            (job.directory / name).unlink(missing_ok=True)

    for call in BEGINS:
        for number in kill_at_each_syscall(job, call, "run", *job.where, *options, "job.sh", again=again):
            wait_until(lambda: not any(one["processes"] for one in json.loads(job.command("status", "--json").stdout)))
            done = job.command("clean")
            assert done.returncode == 0, (call, number, done.stderr)
            has_begun = (job.directory / "began").exists()
            assert (job.directory / "results" / "it").exists() == has_begun, (call, number)
            began.add(has_begun)
            again()
        again()
    assert began == {True, False}
    abandoned(job)
    assert job.command("clean").returncode == 0
    job.leaves_nothing()


ENDING = {"memory": ["umount2", "kill"], "directory": ["unlinkat", "rename", "unlink", "rmdir"]}


@pytest.mark.parametrize("store", ENDING)
def test_clean_killed_at_any_step_succeeds_the_next_time(job, store):
    job.script(
        "mkdir $DW_JOB_STRIPED/out; echo precious > $DW_JOB_STRIPED/out/it; touch running; exec sleep 60", DW, STAGE_OUT
    )
    if store == "memory":
        job.in_memory()
    met = 0
    for call in sum(ENDING.values(), []) if EVERY_POINT else few(*ENDING[store], kept=2):
        kill_running_job(job)
        for number in points(calls_made(job, call, "clean", "--kill")):
            kill_running_job(job)
            if kill_at_syscall(job, call, number, "clean", "--kill") is None:
                continue
            done = job.command("clean", "--kill")
            assert done.returncode == 0, (call, number, done.stderr)
            assert (job.directory / "results" / "it").read_text() == "precious\n"
            job.leaves_nothing()
            met += 1
    assert met > 1


def kill_running_job(job) -> None:
    """A job that was killed while its script ran; what an earlier one has left is cleaned."""
    assert job.command("clean", "--kill").returncode == 0
    for name in ("running", "results/it"):
        (job.directory / name).unlink(missing_ok=True)
    process = job.forebay_starts("run", *job.where, "job.sh")
    job.stop_when(process, (job.directory / "running").exists, KILL)


@pytest.mark.parametrize("call", ["statx", "openat", "getdents64"])
def test_directory_filled_while_clean_checks_it_is_kept(job, call):
    """Its run is slow to write its record."""
    filled = job.temporary / "forebay-1000"
    filled.mkdir()
    count = calls_made(job, call, "clean", path=filled)
    for number in points(count):
        filled.mkdir(exist_ok=True)
        code = inject_between(job, call, number, filled, (filled / "script").mkdir, "clean")
        assert filled.exists() == (code == 0), number
        if filled.exists():
            (filled / "script").rmdir()
            filled.rmdir()
    assert count > 0 or call != "statx"


@pytest.fixture
def slow(job):
    model = job.directory.parent / "slow.toml"
    model.write_text(MODEL)
    return ["--pfs-model", str(model)]


def test_discard_removes_partial_files(job, slow):
    job.script("mkdir $DW_JOB_STRIPED/out; head -c 50M /dev/zero > $DW_JOB_STRIPED/out/it", DW, STAGE_OUT)
    parts = lambda: named(job.directory, "*.part")
    # stop_when takes the state of the emulation away itself: clean must not mind.
    job.stop_when(job.start(*slow), parts, KILL)
    assert parts() != []
    done = job.command("clean", "--discard")
    assert done.returncode == 0, done.stderr
    assert parts() == []
    job.leaves_nothing()


def test_partial_stage_out_is_removed_after_the_memory_is_lost(job, slow):
    job.in_memory()
    job.script("mkdir $DW_JOB_STRIPED/out; head -c 50M /dev/zero > $DW_JOB_STRIPED/out/it", DW, STAGE_OUT)
    parts = lambda: named(job.directory, "*.part")
    job.stop_when(job.start(*slow), parts, KILL)
    keeper = job.keeper()
    os.kill(keeper, KILL)
    wait_until(lambda: has_ended(keeper))
    assert parts() != []
    done = job.command("clean")
    assert done.returncode == 1 and "its results are lost" in done.stderr
    assert parts() == []
    job.leaves_nothing()


def test_keeper_whose_memory_is_being_freed_counts_as_dead(job):
    """Its process is there as long as that takes, which is longer than clean takes to look at it."""
    job.in_memory()
    job.script(
        "mkdir $DW_JOB_STRIPED/out; head -c 100M /dev/zero > $DW_JOB_STRIPED/out/it; touch running; exec sleep 60",
        ROOMY,
        STAGE_OUT,
    )
    for _ in range(2):
        (job.directory / "running").unlink(missing_ok=True)
        job.stop_when(job.start(), (job.directory / "running").exists, KILL)
        (one,) = json.loads(job.command("status", "--json").stdout)
        keeper = job.keeper()
        for process in [*one["processes"], keeper]:
            send(process, KILL)
            wait_until(lambda: process == keeper or has_ended(process))
        done = job.command("clean", one["job_id"])
        has_arrived = (job.directory / "results" / "it").exists()
        # A keeper that was not given its end yet is entered.
        assert done.returncode == (0 if has_arrived else 1), done.stderr
        assert has_arrived or "its results are lost" in done.stderr
        wait_until(lambda: has_ended(keeper))
        job.leaves_nothing()


@pytest.mark.soak
@pytest.mark.parametrize(("call", "looks_at"), [("openat", "stat"), ("readlink", "root")])
def test_clean_delivers_or_reports_the_loss_when_a_keeper_dies_meanwhile(job, call, looks_at):
    """The memory is lost once the processes of the job have ended, unless clean is in the view already."""
    job.in_memory()
    job.script(
        "mkdir $DW_JOB_STRIPED/out; echo precious > $DW_JOB_STRIPED/out/it; touch running; exec sleep 60", DW, STAGE_OUT
    )
    ended, number = set(), 1
    while True:
        for name in ("running", "results/it"):
            (job.directory / name).unlink(missing_ok=True)
        job.stop_when(job.start(), (job.directory / "running").exists, KILL)
        keeper = job.keeper()

        def dies():
            os.kill(keeper, KILL)
            wait_until(lambda: has_ended(keeper))

        code = inject_between(job, call, number, f"/proc/{keeper}/{looks_at}", dies, "clean", "--kill")
        has_arrived = (job.directory / "results" / "it").exists()
        assert (code, has_arrived) in ((0, True), (1, False), (None, True)), number
        job.leaves_nothing()
        if code is None:
            break
        ended.add(has_arrived)
        number += 1
    assert ended == {True, False}


def test_emulation_state_is_removed_with_the_job(job, slow):
    job.script("mkdir $DW_JOB_STRIPED/out; touch running; sleep 60", DW, STAGE_OUT)
    process = job.start(*slow)
    wait_until((job.directory / "running").exists, process=process)
    (state,) = pathlib.Path("/dev/shm").glob(f"forebay-pfs-{process.pid}-*")
    process.kill()
    process.wait()
    done = job.command("clean", "--kill")
    assert done.returncode == 0, done.stderr
    assert not state.exists()
    job.leaves_nothing()


@pytest.mark.parametrize("is_ours", [True, False])
def test_emulation_state_of_unrecorded_killed_job_is_removed(job, slow, is_ours):
    """But not by one who has another state directory."""
    job.script("true", DW)
    # forebay starts itself again under the emulation.
    pid = kill_at_syscall(job, "execve", 1, "run", *job.where, *slow, "job.sh")
    (kill_running_job,) = pathlib.Path("/dev/shm").glob(f"forebay-pfs-{pid}-*")
    state = job.state if is_ours else job.directory.parent / "other state"
    try:
        abandoned(job)
        assert job.command("clean", FOREBAY_STATE=str(state)).returncode == 0
        assert kill_running_job.exists() != is_ours
    finally:
        kill_running_job.unlink(missing_ok=True)
