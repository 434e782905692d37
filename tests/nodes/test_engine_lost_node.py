"""A node of a job is cut off for ever. The others end within stated limits, and name it."""

import time

import pytest

from support.node_load import LIMITS, STORE_BYTES, answers, assert_delivered, begin, end, load_job, read_until
from support.nodes import ended, nodes
from support.waiting import wait_until

FENCED = "node n2: the node is lost: neither it nor n2.storage answers"
#: A node is silent for so long, and is connected again for so long, before the others go on.
SILENT_S = 15
RECONNECT_S = 15
#: The other node would wait so long for what the mount of the lost one had in use, if nobody fenced it.
SESSION_S = 30
#: What a slow machine adds.
SLOW_S = 15
#: A mount may be silent for as long as the servers wait for the lost one. On a machine under load they also take each
#: other for lost, and wait again.
SURVIVED_S = 2 * SESSION_S + 2 * SLOW_S
#: `forebay clean` tries to reach a node for so long.
REACH_S = 30
#: A node that is cut off ends what it runs after so long.
LOST_S = 25


@pytest.fixture
def bed(build):
    """A node that was cut off ends what it runs by itself."""
    with nodes(2, build, STORE_BYTES, clean_s=LOST_S + 30) as bed:
        yield bed
        bed.kill("n2", "sshd:")  # nobody told them that the other end is gone


def timed(act):
    began = time.monotonic()
    return act(), time.monotonic() - began


@pytest.mark.long
@pytest.mark.soak
def test_job_with_copies_ends_without_the_lost_node(bed):
    job = load_job(bed, "copies", "--redundancy", 2)
    run = begin(job, FOREBAY_ENGINE_HANG_S=SURVIVED_S, FOREBAY_AGENT_LOST_S=LOST_S)
    bed.link("n2", "down")
    read_until(run, FENCED)
    time.sleep(5)
    bed.kill("n1", "ssh n2")  # the script does not wait for its other half
    job.path("go").touch()
    wait_until(job.path("answer-n1").exists, SURVIVED_S, "the answer of n1")
    found = answers(job, 1)["n1"]
    done, took_s = timed(lambda: ended(run, check=False, seconds=240))
    assert found["errors"] == {} and found["wrong"] == [] and found["longest_s"] < SESSION_S, found
    assert "node n2" in done.stderr and "may be left there" in done.stderr, done.stderr
    assert len([path for path in job.path("out").iterdir() if path.name.startswith("n1")]) == found["files"]
    assert took_s < SURVIVED_S + SILENT_S + RECONNECT_S, (took_s, done.stderr)
    (left,) = job.jobs()
    refused, took_s = timed(lambda: job.forebay("clean", left["job_id"], check=False))
    assert refused.returncode == 1 and "n2 cannot be reached" in refused.stderr, refused.stderr
    assert "may be left there" in refused.stderr
    assert took_s < REACH_S + SLOW_S
    bed.link("n2", "up")
    # The kernel remembers for some seconds that there was no way to the node.
    is_clean = lambda: job.forebay("clean", left["job_id"], check=False).returncode == 0  # noqa: E731
    wait_until(is_clean, what="the removal of what was left")
    assert job.leftovers() == []


@pytest.mark.soak
@pytest.mark.long
def test_lost_node_that_comes_back_has_errors_and_the_other_none(bed):
    job = load_job(bed, "back", "--redundancy", 2)
    run = begin(job, **LIMITS)
    bed.link("n2", "down")
    read_until(run, FENCED)
    bed.link("n2", "up")
    time.sleep(8)  # TCP sends again
    _, found = end(job, run)
    assert found["n1"]["errors"] == {} and found["n1"]["longest_s"] < SESSION_S, found
    assert found["n2"]["errors"] and set(found["n2"]["errors"]) <= {"ESHUTDOWN", "EPERM"}, found
    assert_delivered(job, found)
    assert job.leftovers() == []
