"""An agent, a launcher or `forebay run` dies at any point of a job on several nodes: start, stage-in, script, stage-out,
teardown. The job completes, or it fails with a message that names the node; nothing is left then."""

import hashlib
import os
import pathlib
import random
import time

import pytest

from support.node_jobs import STRIPED, node_job
from support.nodes import ended, nodes
from support.strace import EVERY_POINT, few
from support.waiting import wait_until

SEED = int(os.environ.get("SEED", 20))
#: Points for each victim: fractions of the time that the job needs when nobody dies.
POINTS = 40 if EVERY_POINT else 2
FILES = 60
SCRIPT = f"""{STRIPED}
#DW stage_in type=directory source=HERE/in destination=$DW_JOB_STRIPED/in
#DW stage_out type=directory source=$DW_JOB_STRIPED/in destination=HERE/out
touch started
ssh n2 "sha256sum $DW_JOB_STRIPED/in/*" >sums
"""


@pytest.fixture(scope="module")
def bed(build):
    with nodes(2, build, 1 << 30) as bed:
        yield bed


def job_of(bed, name):
    job = node_job(bed, SCRIPT, name=name)
    job.path("in").mkdir()
    for number in range(FILES):
        job.path(f"in/f{number}").write_bytes(os.urandom(1000 * number))
    bed.run("n1", ["chown", "-R", job.user, job.path("in")])
    return job


def content(directory: pathlib.Path) -> dict:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in directory.iterdir()}


def check(job, status: int, said: str) -> None:
    """Everything arrived, or the reason is named. Nothing is left either way."""
    if status == 0:
        assert content(job.path("out")) == content(job.path("in")), said
    else:
        assert "error:" in said and ("node n" in said or "interrupted" in said), said
        assert "left behind" not in said and "panicked" not in said, said
    wait_until(lambda: job.leftovers() == [], what=f"the removal of {job.leftovers()}, {said}")
    job.bed.wait_until_clean()


@pytest.fixture(scope="module")
def duration_s(bed):
    """What the job needs when nobody dies."""
    job = job_of(bed, "undisturbed")
    began = time.monotonic()
    done = ended(job.popen(), check=False)
    took_s = time.monotonic() - began
    check(job, done.returncode, done.stderr)
    assert done.returncode == 0, done.stderr
    return took_s


def points(victim: str) -> list[float]:
    draw = random.Random(f"{SEED} {victim}")
    # One in each part of the job's life.
    return [round((number + draw.random()) / POINTS, 3) for number in range(POINTS)]


VICTIMS = few("n2 agent", "n1 ssh", "n1 agent", kept=2)
CASES = [(victim, point) for victim in VICTIMS for point in points(victim)]


@pytest.mark.parametrize(("victim", "point"), CASES)
def test_death_of_an_agent_or_launcher_at_any_point(bed, duration_s, victim, point):
    job = job_of(bed, f"{victim.replace(' ', '-')}-{point}")
    node, part = victim.split()
    run = job.popen()
    time.sleep(point * duration_s)
    bed.kill(node, {"ssh": "ssh -o", "agent": "forebay __node"}[part])
    done = ended(run, check=False, seconds=100)
    check(job, done.returncode, done.stderr)
    # Once the agents are connected, the death of one costs no job.
    assert done.returncode == 0 or "cannot be reached" in done.stderr, done.stderr


@pytest.mark.parametrize("point", points("run"))
def test_death_of_forebay_run_at_any_point(bed, duration_s, point):
    """`forebay clean` completes what was begun, and removes the rest on all nodes."""
    job = job_of(bed, f"run-{point}")
    run = job.popen()
    time.sleep(point * duration_s)
    bed.kill("n1", "forebay run")
    status = ended(run, check=False).returncode
    lost = [one for one in job.jobs() if one["state"] != "running"]
    for one in lost:
        done = job.forebay("clean", one["job_id"], "--kill", check=False)
        assert done.returncode == 0, (one, done.stderr)
        if one["undrained"]:
            assert content(job.path("out")) == content(job.path("in")), done.stderr
    assert lost or status == 0 or not job.path("started").exists()
    job.forebay("clean")
    wait_until(lambda: job.leftovers() == [], what=f"the removal of {job.leftovers()}")
    bed.wait_until_clean()
