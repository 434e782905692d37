"""What stays known of a staging, for how long, and what `forebay stage cancel` and `forget` take away."""

import json
import os
import shutil
import subprocess
import time

import pytest

from support.job import DW, finished
from support.strace import kill_at_syscall
from support.trees import CAREFUL, arrived, file_states, stage_list, parts, refused, stage, tree  # noqa: F401
from support.waiting import wait_until

DAY_S = 24 * 60 * 60


def killed(job):
    """The id of a staging that was killed with a half file in hand."""
    assert kill_at_syscall(job, "utimensat", 1, "stage", "out", *CAREFUL, "in", "out", threads=True) and parts(job)
    (one,) = stage_list(job)
    assert one["state"] == "interrupted"
    return one["id"]


def failed(job):
    """The id of a staging in which one file cannot have its place."""
    (job.directory / "out" / "large").mkdir(parents=True)
    assert stage(job, "out", "in", "out").returncode == 123
    (id,) = (one["id"] for one in stage_list(job) if one["state"] == "failed")
    return id


def running(job):
    """The id of a staging that takes more than a minute."""
    (job.directory / "slow").write_bytes(bytes(64 << 20))
    started = stage(job, "out", "--background", "--rate", "1MiB", "slow", "copy")
    wait_until(lambda: parts(job))
    return started.stdout.strip()


def test_cancel_of_a_killed_staging_leaves_no_partial_file(job, tree):
    id = killed(job)
    done = stage(job, "cancel", id)
    assert done.returncode == 0 and parts(job) == [], done.stderr
    (one,) = stage_list(job)
    assert one["state"] == "cancelled" and one["missing_files"] > 0
    assert stage(job, "retry", id).returncode == 0
    arrived(job, tree)


def test_forgotten_staging_leaves_no_partial_file_and_no_failure(job, tree):
    id = killed(job)
    assert stage(job, "wait").returncode == 123
    done = stage(job, "forget", id)
    assert done.returncode == 0 and "is forgotten" in done.stderr, done.stderr
    assert parts(job) == [] and stage_list(job) == []
    assert list((job.state / "stagings").iterdir()) == []
    assert stage(job, "wait").returncode == 0
    refused(stage(job, "forget", id), f"there is no staging {id}", "hint: ")
    assert stage(job, "out", "in", "out").returncode == 0
    assert file_states(job.directory / "out") == file_states(tree)


def test_forget_drops_failures_and_keeps_delivered_files(job, tree):
    id = failed(job)
    done = stage(job, "forget", "--json", id)
    assert done.returncode == 0, done.stderr
    assert (json.loads(done.stdout)["id"], json.loads(done.stdout)["state"]) == (id, "failed")
    assert stage_list(job) == []
    assert (job.directory / "out" / "deep" / "small 1").read_bytes() == (tree / "deep" / "small 1").read_bytes()


def test_running_staging_is_not_forgotten(job):
    id = running(job)
    done = stage(job, "forget", id)
    assert done.returncode == 1
    refused(done, f"staging {id} is running", f"hint: cancel it first: forebay stage cancel {id}")
    assert [one["state"] for one in stage_list(job)] == ["running"] and parts(job)
    assert stage(job, "cancel", id).returncode == 0
    assert stage(job, "forget", id).returncode == 0
    assert stage_list(job) == []


def test_job_is_not_forgotten(job):
    job.script("touch running; until [ -e go ]; do sleep 0.01; done", DW)
    process = job.start()
    wait_until((job.directory / "running").exists)
    (one,) = json.loads(job.command("status", "--json").stdout)
    done = stage(job, "forget", one["job_id"])
    assert done.returncode == 1
    refused(done, "is a job", f"hint: forebay clean {one['job_id']}")
    (job.directory / "go").touch()
    assert finished(process).returncode == 0
    job.leaves_nothing()


@pytest.mark.parametrize("words", [["status"], ["wait"], ["list"], ["list", "--failed"]], ids=" ".join)
def test_unreadable_journal_is_a_failure_and_the_others_are_listed(job, tree, words):
    assert stage(job, "wait", stage(job, "out", "--background", "in", "out").stdout.strip()).returncode == 0
    (done,) = stage_list(job)
    journal = job.state / "stagings" / "17.journal"
    journal.write_bytes(b"\x5a" * 8192)
    told = refused(stage(job, *words), f"the journal {journal} is damaged", "hint: ")
    assert told.returncode == 1
    told = stage(job, *words, "--json")
    assert told.returncode == 1
    first, second = json.loads(told.stdout)
    assert (first["id"], first["state"]) == (done["id"], "done")
    assert (second["id"], second["state"], second["journal"]) == ("17", "unreadable", str(journal))
    assert "is damaged" in second["error"] and str(journal) in second["hint"]


def in_background(job, target):
    id = stage(job, "out", "--background", "one", target).stdout.strip()
    assert stage(job, "wait", id).returncode == 0
    # Its process closes the journal last.
    wait_until(lambda: not (job.state / "stagings" / f"{id}.journal-wal").exists())
    return id


def test_finished_background_staging_is_kept_for_days_then_forgotten(job, tree):
    (job.directory / "one").touch()
    begun = [in_background(job, f"{number}") for number in range(25)]
    # The process of the last one looks at those before when it is done.
    failing = failed(job)
    assert stage(job, "wait", *begun).returncode == 0, "none of them is forgotten"
    stagings = job.state / "stagings"
    for id, days in ((begun[0], 8), (begun[1], 6), (failing, 8)):
        then = time.time() - days * DAY_S
        os.utime(stagings / f"{id}.journal", (then, then))
    last = in_background(job, "last")
    wait_until(lambda: begun[0] not in [one["id"] for one in stage_list(job)])
    known = {one["id"]: one["state"] for one in stage_list(job)}
    assert known == {**dict.fromkeys([*begun[1:], last], "done"), failing: "failed"}
    gone = stage(job, "wait", begun[0])
    assert gone.returncode == 1
    refused(gone, f"there is no staging {begun[0]}", "hint: forebay stage list", "7 days")


def test_stagings_can_outnumber_the_open_file_limit(job):
    (job.directory / "one").touch()
    done = job.state / "stagings" / f"{in_background(job, 'copy')}.journal"
    for number in range(60):
        shutil.copy(done, done.with_name(f"{number}.journal"))
    for verb in ("status", "list", "wait"):
        command = ["bash", "-c", 'ulimit -n 60; exec "$@"', "bash", job.forebay, "stage", verb, "--json"]
        told = subprocess.run(command, cwd=job.directory, env=job.environment(), capture_output=True, text=True)
        assert told.returncode == 0, told.stderr
        assert [one["state"] for one in json.loads(told.stdout)] == ["done"] * 61


def test_forget_leaves_no_partial_file_of_a_source_that_was_removed(job, tree):
    id = killed(job)
    shutil.rmtree(tree)
    assert stage(job, "retry", id).returncode == 123
    assert stage(job, "forget", id).returncode == 0
    assert parts(job) == []
