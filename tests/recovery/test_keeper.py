"""A job's memory, whose keeper was killed: it lives as long as processes of the job, and is reported as lost after that."""

import json
import os
import pathlib
import time

import pytest

from support.job import DW, KILL, finished
from support.leftovers import BODY, STAGE_OUT, killed_while_it_runs, status, when_the_job_has_ended
from support.strace import has_ended
from support.trees import named
from support.waiting import wait_until

MIB = 1 << 20
SLEEP = "exec sleep 600"


def kill_keeper(job):
    keeper = job.keeper()
    os.kill(keeper, KILL)
    wait_until(lambda: has_ended(keeper))


def started_without_keeper(job, body=BODY, name="wrote"):
    """Starts the job, and kills its keeper when the script has made a file of this name."""
    job.script(body, DW, STAGE_OUT)
    process = job.start()
    wait_until((job.directory / name).exists, process=process)
    kill_keeper(job)
    return process


def test_lost_memory_is_reported_as_lost(job):
    job.in_memory()
    killed_while_it_runs(job)
    when_the_job_has_ended(job)
    (record,) = [json.loads(path.read_text()) for path in job.state.glob("*.json")]
    os.kill(record["keeper"]["pid"], KILL)
    while status(job)[0]["state"] != "lost":
        time.sleep(0.01)
    assert "lost" in job.command("status").stdout
    job.script("true")
    assert "is gone" in job.run().stderr
    done = job.command("clean", "--json")
    assert done.returncode == 1 and "its results are lost" in done.stderr
    (told,) = map(json.loads, done.stdout.splitlines())
    assert (told["removed"], told["results_lost"]) == (True, True)
    assert not (job.directory / "results").exists()
    job.leaves_nothing()


def test_discarded_job_whose_memory_is_lost_is_no_error(job):
    job.in_memory()
    shown = killed_while_it_runs(job)
    when_the_job_has_ended(job)
    kill_keeper(job)
    done = job.command("clean", "--discard", shown["job_id"])
    assert done.returncode == 0 and "lost" not in done.stderr, done.stderr
    job.leaves_nothing()


def test_user_who_kills_the_run_by_its_command_line_loses_nothing(memory):
    job = memory
    job.script(BODY, DW, STAGE_OUT)
    process = job.start()
    wait_until((job.directory / "wrote").exists, process=process)
    keeper = job.keeper()
    listed = pathlib.Path(f"/proc/{keeper}/cmdline").read_bytes().rstrip(b"\0")
    assert listed == b"forebay-keeper"
    environment = pathlib.Path(f"/proc/{keeper}/environ").read_bytes()
    assert f"TMPDIR={job.temporary}".encode() in environment.split(b"\0")
    job.stop_when(process, lambda: True, KILL)
    done = job.command("clean", "--kill")
    assert done.returncode == 0, done.stderr
    assert (job.directory / "results" / "x").read_text() == "result\n"
    job.leaves_nothing()


@pytest.mark.parametrize("option", [None, "--kill"], ids=["wait", "kill"])
def test_memory_whose_keeper_was_killed_is_kept_as_long_as_the_job_has_processes(memory, option):
    job = memory
    process = started_without_keeper(job)
    assert status(job)[0]["state"] == "running"
    job.stop_when(process, lambda: True, KILL)
    (shown,) = status(job)
    assert (shown["state"], shown["undrained"], shown["ends_with_processes"]) == ("left", True, True)
    assert shown["processes"] and shown["used_bytes"]
    assert (pathlib.Path(shown["data"]) / "striped" / "out" / "x").read_text() == "result\n"
    assert "ends with them" in job.command("status").stdout
    if option is None:
        done = job.command("clean")
        assert done.returncode == 1 and "still alive" in done.stderr
        (job.directory / "go").touch()
        when_the_job_has_ended(job)
        (shown,) = status(job)
        assert (shown["state"], shown["ends_with_processes"]) == ("left", False)
    done = job.command("clean", *filter(None, [option]))
    assert done.returncode == 0, done.stderr
    assert (job.directory / "results" / "x").read_text() == "result\n"
    assert all(has_ended(pid) for pid in shown["processes"])
    job.leaves_nothing()


def test_job_with_a_new_keeper_is_cleaned_by_one_process(memory):
    """The record is replaced when its new keeper is written down, and stays locked."""
    job = memory
    process = started_without_keeper(job, BODY.replace("echo result", "head -c 2M /dev/zero"))
    job.stop_when(process, lambda: True, KILL)
    first = job.forebay_starts("clean", "--kill", "--rate", "1MiB")
    wait_until(lambda: named(job.directory, "*.part"), process=first)
    second = job.command("clean", "--kill")
    assert second.returncode == 1 and "is being cleaned" in second.stderr, second.stderr
    done = finished(first)
    assert done.returncode == 0, done.stderr
    assert (job.directory / "results" / "x").stat().st_size == 2 * MIB
    job.leaves_nothing()


def test_processes_without_the_variables_of_the_job_keep_its_memory(memory):
    job = memory
    body = BODY.replace("until", "touch free; exec env -i sh -c 'until").replace("done", "done'")
    process = started_without_keeper(job, body, "free")
    job.stop_when(process, lambda: True, KILL)
    wait_until(lambda: status(job)[0]["ends_with_processes"])
    done = job.command("clean", "--kill")
    assert done.returncode == 0, done.stderr
    assert (job.directory / "results" / "x").read_text() == "result\n"
    job.leaves_nothing()


def test_processes_of_a_job_whose_memory_is_lost_are_ended_on_request(job):
    """A program in a mount namespace of its own is not in the view."""
    if os.getuid() != 0:
        pytest.skip("only root can leave the view")
    job.in_memory()
    body = f"exec unshare -m sh -c 'umount -l $DW_JOB_STRIPED/..; echo $$ > pid; touch out; {SLEEP}'"
    process = started_without_keeper(job, body, "out")
    job.stop_when(process, lambda: True, KILL)
    assert status(job)[0]["state"] == "lost"
    sleeping = int((job.directory / "pid").read_text())
    assert not has_ended(sleeping)
    done = job.command("clean", "--kill")
    assert done.returncode == 1 and "its results are lost" in done.stderr
    assert has_ended(sleeping)
    job.leaves_nothing()


def test_files_that_did_not_arrive_outlive_a_run_whose_keeper_was_killed(memory):
    job = memory
    process = started_without_keeper(job)
    (job.directory / "results").write_text("in the way")
    (job.directory / "go").touch()
    done = finished(process)
    assert done.returncode == 123, done.stderr
    (shown,) = status(job)
    assert (shown["state"], shown["undrained"]) == ("kept", True)
    assert f"{shown['data']}" in done.stderr
    (job.directory / "results").unlink()
    done = job.command("clean")
    assert done.returncode == 0, done.stderr
    assert (job.directory / "results" / "x").read_text() == "result\n"
    job.leaves_nothing()


def test_run_whose_keeper_was_killed_leaves_nothing(memory):
    job = memory
    process = started_without_keeper(job)
    (job.directory / "go").touch()
    done = finished(process)
    assert done.returncode == 0, done.stderr
    assert (job.directory / "results" / "x").read_text() == "result\n"
    assert status(job) == []
    wait_until(lambda: job.keepers() == [])  # the new one ends by itself
    job.leaves_nothing()
