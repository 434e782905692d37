"""The staging of a job itself, as `forebay stage` shows, waits for and cancels it by the job's id."""

import json
import pathlib
import signal
import time

import pytest

from job import DW, finished, until
from staged import stage

STAGE_OUT = "#DW stage_out type=directory source=$DW_JOB_STRIPED/out destination=%d/results"
WRITES = "mkdir $DW_JOB_STRIPED/out; head -c 8M /dev/zero > $DW_JOB_STRIPED/out/x; echo y > $DW_JOB_STRIPED/out/y"


def shown(job, *words):
    done = stage(job, *words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def staging_out(job):
    """A job that stages out at one MiB a second; its process and its id."""
    job.script(WRITES, DW, STAGE_OUT)
    process = job.start("--stage-rate", "1MiB")
    deadline = time.monotonic() + 60
    while not list(job.directory.rglob("*.part")):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    (one,) = json.loads(job.command("status", "--json").stdout)
    return process, one["job_id"]


def staging_in(job, *options):
    """A job that stages in at one MiB a second; its process and its id."""
    (job.directory / "input").write_bytes(bytes(8 << 20))
    stage_in = "#DW stage_in type=file source=%d/input destination=$DW_JOB_STRIPED/input"
    job.script("touch started", DW, stage_in, STAGE_OUT)
    process = job.start("--stage-rate", "1MiB", *options)
    deadline = time.monotonic() + 60
    while True:
        listed = json.loads(job.command("status", "--json").stdout)
        asked = stage(job, "status", "--json", listed[0]["job_id"]) if listed else None
        if asked and asked.returncode == 0 and json.loads(asked.stdout)[0]["state"] == "running":
            break
        assert process.poll() is None and time.monotonic() < deadline
    return process, listed[0]["job_id"]


@pytest.mark.parametrize("store", ["directory", "memory"])
def test_a_jobs_stage_out_is_cancelled_and_clean_brings_it_home_later(job, store):
    if store == "memory":
        job.in_memory()
    process, id = staging_out(job)
    (one,) = shown(job, "status", id)
    assert (one["id"], one["direction"], one["state"], one["files"]) == (id, "out", "running", 2)
    assert [one["id"] for one in shown(job, "list", id)] == [id]
    cancelled = shown(job, "cancel", id)
    assert cancelled["state"] == "cancelled" and cancelled["missing_files"] > 0
    done = finished(process)
    assert done.returncode == 123 and "staging was stopped" in done.stderr, done.stderr
    assert f"forebay clean {id}" in done.stderr
    assert list(job.directory.rglob("*.part")) == []
    (left,) = json.loads(job.command("status", "--json").stdout)
    assert (left["state"], left["undrained"]) == ("kept", True)
    assert stage(job, "wait", id).returncode == 123
    assert job.command("clean", id).returncode == 0
    assert (job.directory / "results" / "x").read_bytes() == bytes(8 << 20)
    assert (job.directory / "results" / "y").read_text() == "y\n"
    job.leaves_nothing()


def test_a_jobs_stage_out_can_be_waited_for(job):
    job.script(WRITES.replace("8M", "1M"), DW, STAGE_OUT)
    process = job.start("--stage-rate", "2MiB/s")
    while not (listed := json.loads(job.command("status", "--json").stdout)):
        assert process.poll() is None
    waited = stage(job, "wait", listed[0]["job_id"])
    assert waited.returncode == 0, waited.stderr
    assert (job.directory / "results" / "x").stat().st_size == 1 << 20
    assert finished(process).returncode == 0
    job.leaves_nothing()


@pytest.mark.parametrize("profile", [[], ["--no-profile"]])
@pytest.mark.parametrize("how", ["fails", "killed"])
def test_waiting_for_a_job_whose_script_never_began_is_no_success(job, how, profile):
    process, id = staging_in(job, *profile)
    waits = job.forebay_starts("stage", "wait", id)
    until(lambda: pathlib.Path(f"/proc/{waits.pid}/wchan").read_text() == "hrtimer_nanosleep")  # it has seen the job
    if how == "fails":
        process.terminate()
        assert finished(process).returncode == 125
    else:
        waits.send_signal(signal.SIGSTOP)  # it does not see the job between its end and the cleaning
        process.kill()
        finished(process)
        assert job.command("clean", "--discard").returncode == 0
        waits.send_signal(signal.SIGCONT)
    waited = finished(waits)
    assert waited.returncode == 123, waited.stderr
    assert f"job {id} ended before its script began" in waited.stderr
    assert not (job.directory / "started").exists()
    job.leaves_nothing()


def test_what_failed_in_a_jobs_stage_out_is_listed_by_its_id(job):
    (job.directory / "results" / "y").mkdir(parents=True)
    job.script(WRITES, DW, STAGE_OUT)
    assert job.run().returncode == 123
    (left,) = json.loads(job.command("status", "--json").stdout)
    (one,) = shown(job, "list", "--failed", left["job_id"])
    (failure,) = one["failures"]
    assert failure["path"].endswith("/out/y") and "a directory stands at its place" in failure["reason"]
    assert stage(job, "wait", left["job_id"]).returncode == 123
    (job.directory / "results" / "y").rmdir()
    assert stage(job, "retry", left["job_id"]).returncode == 0
    job.leaves_nothing()


def test_a_stage_in_is_cancelled_and_the_job_is_not_started(job):
    process, id = staging_in(job)
    (one,) = shown(job, "status", id)
    assert (one["direction"], one["files"]) == ("in", 1)
    assert stage(job, "cancel", id).returncode == 0
    done = finished(process)
    assert done.returncode == 125 and "staging was stopped" in done.stderr, done.stderr
    assert not (job.directory / "started").exists()
    job.leaves_nothing()


def test_ids_of_nothing_and_of_jobs_that_stage_nothing(job):
    none = stage(job, "status", "17")
    assert none.returncode == 1 and "there is no staging 17" in none.stderr and "hint: " in none.stderr
    job.script("touch running; until [ -e go ]; do sleep 0.01; done", DW)
    process = job.start()
    while not (job.directory / "running").exists():
        assert process.poll() is None
    (one,) = json.loads(job.command("status", "--json").stdout)
    for verb in ("status", "cancel"):
        done = stage(job, verb, one["job_id"])
        assert done.returncode == 1 and "stages nothing now" in done.stderr, done.stderr
    (job.directory / "go").touch()
    assert finished(process).returncode == 0
    job.leaves_nothing()


@pytest.mark.parametrize("drains", [[], ["--drain", "*"]], ids=["stage out", "drain"])
def test_what_leaves_is_read_again_where_that_is_asked_for(job, drains):
    """What was drained does not count as arrived any sooner than what is staged out."""
    waits = f"; {job.forebay} drain wait" if drains else ""
    job.script(WRITES + waits, DW, STAGE_OUT)
    traced = ["strace", "-D", "-f", "-qq", "-o", job.directory / "calls", "-e", "trace=fadvise64"]
    job.forebay, own = traced[0], job.forebay
    ran = job.command(*map(str, traced[1:]), own, "run", "--json", *job.where, *drains, "--stage-verify", "end", "job.sh")
    job.forebay = own
    assert ran.returncode == 0, ran.stderr
    calls = (job.directory / "calls").read_text()
    assert calls.count("POSIX_FADV_DONTNEED") >= 2, calls
    if drains:
        assert json.loads(ran.stdout.splitlines()[-1])["drain"]["done"] == 2, ran.stdout
    wrong = job.run("--stage-rate", "0")
    assert wrong.returncode == 2 and "it is zero" in wrong.stderr
    job.leaves_nothing()
