"""What `forebay status` and `forebay clean` do where the user may not look: at processes, or into a directory."""

import contextlib
import json
import os
import subprocess

import pytest

from recovery.test_leftovers import BODY, STAGE_OUT, status
from support.job import DW, KILL, finished
from support.leftovers import killed_while_it_runs, when_the_job_has_ended
from support.waiting import wait_until


def test_process_with_another_group_that_may_be_the_jobs_is_waited_for(job):
    """As `sg` starts it in a job's script. The kernel lets its own user not look at it, nor at its parent here."""
    if os.getuid() != 0:
        pytest.skip("only root can be of any group")
    job.user = 40003  # alone: such a process prevents what other jobs of its user do
    for directory in (job.directory, job.store, job.temporary, job.state):
        os.chown(directory, job.user, job.user)
    job.script(BODY, DW, STAGE_OUT)
    process = job.start()
    job.stop_when(process, (job.directory / "wrote").exists, KILL)
    other = subprocess.Popen(["sleep", "600"], user=job.user, group=100, extra_groups=[])
    try:
        assert [one["state"] for one in status(job)] == ["elsewhere"]
        done = job.command("clean", "--kill")
        assert done.returncode == 0 and job.allocations(), done.stderr
        assert "is left alone: its processes cannot be looked at" in done.stderr
    finally:
        other.kill()
        other.wait()
    assert job.command("clean", "--kill").returncode == 0
    assert (job.directory / "results" / "x").read_text() == "result\n"
    job.leaves_nothing()


def test_running_job_is_seen_where_proc_hides_processes(job):
    """In the view of a job, hidepid hides the user's processes outside of it."""
    if os.getuid() != 0:
        pytest.skip("only root can mount /proc with hidepid")
    job.as_nobody()
    job.script(BODY, DW, STAGE_OUT)
    inside = "forebay status --json >status; forebay clean >cleaned 2>&1"
    (job.directory / "memory.sh").write_text(
        f"#!/bin/bash\n#DW jobdw type=scratch access_mode=striped capacity=1MiB\n{inside}\n"
    )
    hidden = "mount -t proc -o hidepid=invisible proc /proc && exec setpriv --reuid=65534 --regid=65534 --clear-groups"
    first = job.start()
    with contextlib.ExitStack() as stack:
        stack.callback(finished, first)
        stack.callback((job.directory / "go").touch)
        wait_until((job.directory / "wrote").exists, process=first)
        environment = job.environment(PATH=f"{job.forebay.parent}:{os.environ['PATH']}")
        second = ["unshare", "--mount", "sh", "-c", f'{hidden} "$@"', "sh", job.forebay, "run", "memory.sh"]
        done = subprocess.run(second, cwd=job.directory, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        states = [one["state"] for one in json.loads((job.directory / "status").read_text())]
        assert states == ["running", "running"], (job.directory / "cleaned").read_text()
    assert first.returncode == 0
    assert (job.directory / "results" / "x").read_text() == "result\n"
    job.leaves_nothing()


@pytest.mark.parametrize("temporary", ["closed", "missing"])
def test_clean_does_without_the_names_in_tmpdir(job, temporary):
    if os.getuid() == 0:
        job.as_nobody()
    job.script(BODY, DW, STAGE_OUT)
    process = job.start()
    job.stop_when(process, (job.directory / "wrote").exists, KILL)
    place = job.directory / "of tmpdir"
    if temporary == "closed":
        place.mkdir(mode=0o333)
    done = job.command("clean", "--kill", TMPDIR=str(place))
    assert done.returncode == 0, done.stderr
    assert (job.directory / "results" / "x").read_text() == "result\n"


def test_state_directory_below_a_file_holds_no_jobs(job):
    """Such a path gives ENOTDIR, also to root. Jobs use the fallback, and the commands that list look into both."""
    (job.directory / "file").touch()
    job.state = job.directory / "file" / "state"
    (job.directory / "memory.sh").write_text("#!/bin/bash\n#DW jobdw type=scratch access_mode=striped capacity=1MiB\n")
    for arguments in (["run", "memory.sh"], ["status"], ["clean"], ["persistent", "list"], ["stage", "list"], ["why"]):
        done = job.command(*arguments)
        assert done.returncode == 0, (arguments, done.stderr)
        assert "Not a directory" not in done.stderr, (arguments, done.stderr)


def test_job_with_a_truncated_record_is_listed_and_forgotten_by_its_whole_id(job):
    id = killed_while_it_runs(job)["job_id"]
    (record,) = job.state.glob("*.json")
    when_the_job_has_ended(job)
    record.write_text("")
    shown = job.command("status")
    assert "nothing left behind" not in shown.stdout and f"forebay-{os.getuid()}-{id}" in shown.stderr
    done = job.command("clean", id)
    assert done.returncode == 1 and f"forebay clean --discard {id}" in done.stderr, done.stderr
    assert job.command("clean", "--discard", id[:-2]).returncode == 1 and record.exists()
    done = job.command("clean", "--discard", "--json", id)
    assert done.returncode == 0 and "its allocation was not removed" in done.stderr, done.stderr
    assert json.loads(done.stdout)["removed"] is False
    (kept,) = job.allocations()
    assert (kept / "striped" / "out" / "x").read_text() == "result\n" and job.leftovers() == []
    subprocess.run(["rm", "-r", kept], check=True)
