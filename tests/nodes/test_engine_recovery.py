"""Every process of a job on several nodes is killed. Data on disks are read again, and those in memory are reported as
lost."""

import time

import pytest

from support.node_jobs import on_disks
from support.node_load import (
    LIMITS,
    STORE_BYTES,
    answers,
    assert_delivered,
    begin,
    content,
    kill_everything,
    load_job,
    written,
)
from support.nodes import nodes
from support.strace import few
from support.waiting import wait_until


@pytest.fixture
def bed(build):
    with nodes(2, build, STORE_BYTES, clean_s=20) as bed:
        yield bed


@pytest.fixture
def disks(bed):
    with on_disks(bed):
        yield


def begin_and_kill(bed, name, *options):
    job = load_job(bed, name, *options)
    run = job.start(**LIMITS)
    wait_until(lambda: min(written(job).values()) > 20, what="some files of the load")
    kill_everything(bed)
    run.wait(timeout=30)
    (left,) = job.jobs()
    assert left["state"] == "left" and left["undrained"], left
    return job, left["job_id"]


@pytest.mark.parametrize("copies", few(2, 1))
def test_data_on_disks_are_delivered_after_everything_was_killed(bed, disks, copies):
    job, job_id = begin_and_kill(bed, "disk", "--redundancy", copies)
    began = time.monotonic()
    done = job.forebay("clean", job_id)
    took_s = time.monotonic() - began
    assert "ended; starting it again with its data" in done.stderr, done.stderr
    assert "files may lack what no program had synced before" in done.stderr, done.stderr
    found = {path.name: path for path in job.path("out").iterdir()}
    for node in bed.names:
        numbers = sorted(int(name[3:]) for name in found if name.startswith(node))
        # The last one may not have been synced.
        assert len(numbers) > 5 and numbers == list(range(len(numbers))), numbers
        for number in numbers[:-1]:
            assert found[f"{node}-{number}"].read_bytes() == content(node, number), (node, number)
    assert job.leftovers() == []
    assert took_s < 60


@pytest.mark.soak
def test_data_in_memory_are_reported_as_lost(bed):
    job, job_id = begin_and_kill(bed, "memory")
    done = job.forebay("clean", job_id, check=False)
    assert done.returncode == 1 and "the data were in memory, and ended with the storage daemons" in done.stderr
    assert "n1.storage" in done.stderr and "n2.storage" in done.stderr
    assert f"forebay clean --discard {job_id}" in done.stderr.replace("JOB", job_id), done.stderr
    job.forebay("clean", job_id, "--discard")
    assert job.leftovers() == []


@pytest.mark.soak
def test_job_reports_data_on_disks_as_kept_and_clean_delivers_them(bed, disks):
    """A server dies, and the script goes on to its end."""
    job = load_job(bed, "server")
    run = begin(job, **LIMITS)
    assert bed.kill("n2", "ceph-osd")
    time.sleep(5)
    done = job.release(run, check=False)
    assert done.returncode != 0 and "starts the engine again" in done.stderr, done.stderr
    (kept,) = job.jobs()
    job.forebay("clean", kept["job_id"])
    assert_delivered(job, answers(job))
    assert job.leftovers() == []
