"""A plan is kept, and a report of a later run of the same script shows it."""

import json

import pytest

from support.job import DW, Job

WORDS = "job.sh", "--machine", "laptop", "--access", "serial", "--size", "32MB", "--ranks", "1"
WRITES = "dd if=/dev/zero of=${DW_JOB_STRIPED}big bs=1M count=32 status=none"


@pytest.fixture
def job_class():
    """The program itself."""
    return Job


def reported(job):
    done = job.command("report", "--json", "last")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["jobs"][0]["prediction"]


@pytest.mark.soak
def test_report_shows_the_prediction_next_to_the_run(job):
    job.script(WRITES, DW)
    assert job.command("plan", *WORDS).returncode == 0
    assert job.run().returncode == 0
    found = reported(job)
    assert found["machine"] == "Laptop" and {one["storage"] for one in found["storages"]} == {"nvme", "memory"}
    assert all(one["low_s"] < one["io_s"] < one["high_s"] for one in found["storages"])
    assert all(abs(one["ratio"] * one["io_s"] - found["measured_io_s"]) < 1e-9 for one in found["storages"])
    text = job.command("report", "last", "--html", "page.html").stdout
    assert "predicted for Laptop" in text and "measured here" in text
    assert "predicted and measured" in (job.directory / "page.html").read_text()


def test_plan_made_after_the_run_is_no_prediction(job):
    job.script(WRITES, DW)
    assert job.run().returncode == 0
    assert job.command("plan", *WORDS).returncode == 0
    assert reported(job) is None


@pytest.mark.soak
def test_plan_of_another_script_is_not_shown(job):
    job.script(WRITES, DW)
    (job.directory / "other.sh").write_text((job.directory / "job.sh").read_text())
    assert job.command("plan", "other.sh", *WORDS[1:]).returncode == 0
    assert job.run().returncode == 0
    assert reported(job) is None


def test_damaged_plan_does_not_disturb_a_report(job):
    job.script(WRITES, DW)
    assert job.command("plan", *WORDS).returncode == 0
    (kept,) = (job.state / "plans").iterdir()
    kept.write_text('{"script": 3}')
    assert job.run().returncode == 0
    assert reported(job) is None


@pytest.mark.soak
def test_newer_plan_replaces_the_older_one(job):
    job.script("true", DW)
    for machine in ("laptop", "lustre-small"):
        assert job.command("plan", "job.sh", "--machine", machine, *WORDS[3:]).returncode == 0
    (kept,) = (job.state / "plans").iterdir()
    assert json.loads(kept.read_text())["plan"]["machine"] == "lustre-small"
    assert kept.parent.stat().st_mode & 0o077 == 0


def test_state_directory_that_cannot_be_written_is_named(job):
    job.script("true", DW)
    job.state.mkdir(parents=True, exist_ok=True)
    (job.state / "plans").write_text("in the way")
    done = job.command("plan", *WORDS)
    assert done.returncode == 1 and "plans" in done.stderr and "FOREBAY_STATE" in done.stderr
