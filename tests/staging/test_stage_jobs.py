"""The staging of a job itself, as `forebay stage` shows, waits for and cancels it by the job's id."""

import json
import pathlib
import signal

import pytest

from support.job import DW, KILL, finished
from support.trees import named, stage
from support.waiting import wait_until

STAGE_OUT = "#DW stage_out type=directory source=$DW_JOB_STRIPED/out destination=%d/results"
NO_LIMIT = ["--stage-rate", "1TB/s"]
WRITES = "mkdir $DW_JOB_STRIPED/out; head -c 8M /dev/zero > $DW_JOB_STRIPED/out/x; echo y > $DW_JOB_STRIPED/out/y"


def stage_json(job, *words):
    done = stage(job, *words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def staging_out(job):
    """A job that stages out at one MiB a second; its process and its id."""
    job.script(WRITES, DW, STAGE_OUT)
    process = job.start("--stage-rate", "1MiB")
    wait_until(lambda: named(job.directory, "*.part"), process=process)
    (one,) = json.loads(job.command("status", "--json").stdout)
    return process, one["job_id"]


def staging_in(job, *options):
    """A job that stages in at one MiB a second; its process and its id."""
    (job.directory / "input").write_bytes(bytes(8 << 20))
    stage_in = "#DW stage_in type=file source=%d/input destination=$DW_JOB_STRIPED/input"
    job.script("touch started", DW, stage_in, STAGE_OUT)
    process = job.start("--stage-rate", "1MiB", *options)
    listed = lambda: json.loads(job.command("status", "--json").stdout)
    wait_until(listed, process=process)
    id = listed()[0]["job_id"]
    wait_until(lambda: '"running"' in stage(job, "status", "--json", id).stdout, process=process)
    return process, id


def waiting(job, id):
    """`forebay stage wait` that has seen the job."""
    waits = job.forebay_starts("stage", "wait", id)
    wait_until(lambda: pathlib.Path(f"/proc/{waits.pid}/wchan").read_text() == "hrtimer_nanosleep", process=waits)
    return waits


@pytest.mark.parametrize("store", ["directory", "memory"])
def test_cancelled_stage_out_of_a_job_is_completed_by_clean(job, store):
    if store == "memory":
        job.in_memory()
    process, id = staging_out(job)
    (one,) = stage_json(job, "status", id)
    assert (one["id"], one["direction"], one["state"], one["files"]) == (id, "out", "running", 2)
    assert [one["id"] for one in stage_json(job, "list", id)] == [id]
    cancelled = stage_json(job, "cancel", id)
    assert cancelled["state"] == "cancelled" and cancelled["missing_files"] > 0
    done = finished(process)
    assert done.returncode == 123 and "staging was stopped" in done.stderr, done.stderr
    assert f"forebay clean {id}" in done.stderr
    assert named(job.directory, "*.part") == []
    (left,) = json.loads(job.command("status", "--json").stdout)
    assert (left["state"], left["undrained"]) == ("kept", True)
    assert stage(job, "wait", id).returncode == 123
    assert job.command("clean", *NO_LIMIT, id).returncode == 0
    assert (job.directory / "results" / "x").read_bytes() == bytes(8 << 20)
    assert (job.directory / "results" / "y").read_text() == "y\n"
    job.leaves_nothing()


def test_stage_out_of_a_job_can_be_waited_for(job):
    job.script(WRITES.replace("8M", "1M") + "; touch wrote; until [ -e go ]; do sleep 0.01; done", DW, STAGE_OUT)
    process = job.start("--stage-rate", "2MiB/s")
    wait_until((job.directory / "wrote").exists, process=process)
    (one,) = json.loads(job.command("status", "--json").stdout)
    waits = waiting(job, one["job_id"])
    (job.directory / "go").touch()
    waited = finished(waits)
    assert waited.returncode == 0, waited.stderr
    assert (job.directory / "results" / "x").stat().st_size == 1 << 20
    assert finished(process).returncode == 0
    job.leaves_nothing()


@pytest.mark.parametrize("profile", [[], ["--no-profile"]])
@pytest.mark.parametrize("how", ["fails", "killed"])
def test_wait_for_a_job_whose_script_never_started_fails(job, how, profile):
    process, id = staging_in(job, *profile)
    waits = waiting(job, id)
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


def test_failures_of_a_job_stage_out_are_listed_by_its_id(job):
    (job.directory / "results" / "y").mkdir(parents=True)
    job.script(WRITES, DW, STAGE_OUT)
    assert job.run().returncode == 123
    (left,) = json.loads(job.command("status", "--json").stdout)
    (one,) = stage_json(job, "list", "--failed", left["job_id"])
    (failure,) = one["failures"]
    assert failure["path"].endswith("/out/y") and "a directory stands at its place" in failure["reason"]
    assert stage(job, "wait", left["job_id"]).returncode == 123
    (job.directory / "results" / "y").rmdir()
    refused = stage(job, "retry", "--background", left["job_id"])
    assert refused.returncode == 1 and "are not staged in the background" in refused.stderr, refused.stderr
    assert "hint: " in refused.stderr and not (job.directory / "results" / "y").exists()
    assert stage(job, "retry", left["job_id"]).returncode == 0
    job.leaves_nothing()


def test_stage_in_is_cancelled_and_the_job_is_not_started(job):
    process, id = staging_in(job)
    (one,) = stage_json(job, "status", id)
    assert (one["direction"], one["files"]) == ("in", 1)
    assert stage(job, "cancel", id).returncode == 0
    done = finished(process)
    assert done.returncode == 125 and "staging was stopped" in done.stderr, done.stderr
    assert not (job.directory / "started").exists()
    job.leaves_nothing()


def test_unknown_ids_and_jobs_without_staging_are_errors(job):
    none = stage(job, "status", "17")
    assert none.returncode == 1 and "there is no staging 17" in none.stderr and "hint: " in none.stderr
    job.script("touch running; until [ -e go ]; do sleep 0.01; done", DW)
    process = job.start()
    wait_until((job.directory / "running").exists, process=process)
    (one,) = json.loads(job.command("status", "--json").stdout)
    for verb in ("status", "cancel"):
        done = stage(job, verb, one["job_id"])
        assert done.returncode == 1 and "stages nothing now" in done.stderr, done.stderr
    (job.directory / "go").touch()
    assert finished(process).returncode == 0
    job.leaves_nothing()


def reading_again(job, *words):
    """A command of forebay, and how often it dropped what it had written from memory to read it again."""
    traced = ["strace", "-D", "-f", "-qq", "-o", str(job.directory / "calls"), "-e", "trace=fadvise64"]
    job.forebay, own = traced[0], job.forebay
    try:
        ran = job.command(*traced[1:], own, *words)
    finally:
        job.forebay = own
    return ran, (job.directory / "calls").read_text().count("POSIX_FADV_DONTNEED")


def killed_in_its_stage_out(job, *options, size="256K"):
    """A job killed while it stages out two files with 128 KiB/s; its id."""
    job.script(WRITES.replace("8M", size), DW, STAGE_OUT)
    process = job.start("--stage-rate", "128KiB", *options)
    job.stop_when(process, lambda: named(job.directory, "*.part"), KILL)
    (one,) = json.loads(job.command("status", "--json").stdout)
    assert one["undrained"]
    return one["job_id"]


def test_cancel_of_killed_job_leaves_no_partial_file_and_clean_completes(job):
    id = killed_in_its_stage_out(job)
    assert stage_json(job, "cancel", id)["missing_files"] > 0
    assert named(job.directory, "*.part") == []
    done = job.command("clean", *NO_LIMIT)
    assert done.returncode == 0, done.stderr
    assert (job.directory / "results" / "y").read_text() == "y\n"
    job.leaves_nothing()


@pytest.mark.parametrize("verb", [["clean"], ["stage", "retry"]], ids=["clean", "retry"])
def test_staging_options_of_a_killed_run_hold_for_clean_and_retry(job, verb):
    id = killed_in_its_stage_out(job, "--stage-verify", "end")
    done, read_again = reading_again(job, *verb, id)
    assert done.returncode == 0, done.stderr
    assert read_again == 2
    assert (job.directory / "results" / "x").stat().st_size == 256 << 10
    job.leaves_nothing()


def test_options_of_clean_override_those_of_the_run(job):
    id = killed_in_its_stage_out(job, "--stage-verify", "end")
    done, read_again = reading_again(job, "clean", "--stage-verify", "copy", *NO_LIMIT, id)
    assert (done.returncode, read_again) == (0, 0), done.stderr
    job.leaves_nothing()


def test_limit_of_a_killed_run_holds_for_clean(job):
    id = killed_in_its_stage_out(job, size="8M")
    cleaning = job.forebay_starts("clean")
    wait_until(
        lambda: stage(job, "status", id).returncode == 0 and stage_json(job, "status", id)[0]["state"] == "running"
    )
    assert stage_json(job, "cancel", id)["missing_files"] > 0
    done = finished(cleaning)
    assert done.returncode == 123, done.stderr
    assert job.command("clean", *NO_LIMIT).returncode == 0
    job.leaves_nothing()


def test_record_of_an_older_version_is_read(job):
    id = killed_in_its_stage_out(job, "--stage-verify", "end")
    (path,) = job.state.glob("*.json")
    record = json.loads(path.read_text())
    assert record.pop("staging") == {"verify": "end", "bytes_per_s_max": 128 << 10, "accept_failed_writes": False}
    path.write_text(json.dumps(record))
    done, read_again = reading_again(job, "clean", id)
    assert (done.returncode, read_again) == (0, 0), done.stderr
    job.leaves_nothing()


@pytest.mark.parametrize("drains", [[], ["--drain", "*"]], ids=["stage out", "drain"])
def test_stage_out_and_drain_verify_on_request(job, drains):
    """What was drained does not count as arrived any sooner than what is staged out."""
    waits = f"; {job.forebay} drain wait" if drains else ""
    job.script(WRITES + waits, DW, STAGE_OUT)
    ran, read_again = reading_again(job, "run", "--json", *job.where, *drains, "--stage-verify", "end", "job.sh")
    assert ran.returncode == 0, ran.stderr
    assert read_again >= 2
    if drains:
        assert json.loads(ran.stdout.splitlines()[-1])["drain"]["done"] == 2, ran.stdout
    wrong = job.run("--stage-rate", "0")
    assert wrong.returncode == 2 and "it is zero" in wrong.stderr
    job.leaves_nothing()
