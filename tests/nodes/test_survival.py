"""With two copies on three nodes, a job does not notice the loss of one server of each kind, nor of a node, at any moment
of its load: no error, no wrong byte, everything delivered.

SEED=N draws other moments and servers. A soak run prints how long operations waited."""

import os
import random
import statistics
import time

import pytest

from support.node_load import (
    LIMITS,
    STEPS,
    STORE_BYTES,
    WAIT_S,
    answers,
    assert_delivered,
    begin,
    begins,
    end,
    kill,
    load_job,
    read_until,
    wait_for_progress,
)
from support.nodes import VirtualNodes, ended, nodes
from support.strace import EVERY_POINT
from support.waiting import wait_until

SEED = int(os.environ.get("SEED", 21))
SERVERS = ("ceph-osd", "ceph-mds", "ceph-mon")
#: Each loses one server of each kind, so these are 9 points of the load, and 180 in a soak run.
JOBS = 60 if EVERY_POINT else 3
#: The points at which a node is lost. Each takes most of a minute, mostly for the delivery without it.
LOST_NODES = 20


@pytest.fixture
def bed(build):
    with nodes(3, build, STORE_BYTES, clean_s=60) as bed:
        yield bed


@pytest.fixture(scope="module")
def pauses_s():
    """By what was lost: the longest wait of an operation on any node, of each point."""
    found: dict[str, list[float]] = {}
    yield found
    for lost, pauses in sorted(found.items()):
        middle = statistics.median(pauses)
        print(f"\n{lost}: {len(pauses)} losses, longest wait: median {middle:.2f} s, most {max(pauses):.2f} s", end="")


def nodes_with(bed: VirtualNodes, server: str) -> list[str]:
    return [node for node in bed.names if any(begins(line, [server]) for _, line in bed.processes(node))]


def longest_wait_s(found: dict, after: float, until: float) -> float:
    """Of the operations that were under way between two moments."""
    waits = [
        took for answer in found.values() for began, took in answer["pauses"] if after < began + took and began < until
    ]
    return max(waits, default=0.0)


@pytest.mark.parametrize("number", range(JOBS))
def test_job_does_not_notice_the_loss_of_one_server_of_each_kind(bed, pauses_s, number):
    draw = random.Random(f"{SEED} {number}")
    job = load_job(bed, f"servers-{number}", "--redundancy", 2)
    run = begin(job, **LIMITS)
    losses = []
    for server in draw.sample(SERVERS, len(SERVERS)):
        node = draw.choice(nodes_with(bed, server))
        time.sleep(draw.random())
        losses.append((time.monotonic(), server, node))
        kill(bed, node, server)
        wait_for_progress(job, bed.names)
    read_until(run, *(f"{node}.{STEPS[server]} ended" for _, server, node in losses))
    done, found = end(job, run)
    assert done.returncode == 0, (losses, done.stderr)
    assert all(answer["errors"] == {} for answer in found.values()), (losses, found)
    assert_delivered(job, found)
    assert job.leftovers() == []
    for (at, server, _), (until, *_) in zip(losses, [*losses[1:], (time.monotonic(),)], strict=True):
        pauses_s.setdefault(server, []).append(longest_wait_s(found, at, until))


if EVERY_POINT:

    @pytest.mark.parametrize("number", range(LOST_NODES))
    def test_job_does_not_notice_the_loss_of_a_node(bed, pauses_s, number):
        draw = random.Random(f"{SEED} node {number}")
        lost = draw.choice(bed.names[1:])  # the first one has `forebay run`
        alive = [node for node in bed.names if node != lost]
        job = load_job(bed, f"node-{number}", "--redundancy", 2)
        run = begin(job, FOREBAY_ENGINE_HANG_S=WAIT_S, FOREBAY_AGENT_LOST_S=25)
        time.sleep(draw.random())
        at = time.monotonic()
        bed.link(lost, "down")
        wait_for_progress(job, alive)
        bed.kill("n1", f"ssh {lost}")  # the script does not wait for its other part
        job.path("go").touch()
        wait_until(
            lambda: all(job.path(f"answer-{node}").exists() for node in alive), WAIT_S, "the answers of the load"
        )
        found = {node: answer for node, answer in answers(job, len(alive)).items() if node in alive}
        done = ended(run, check=False, seconds=240)
        assert f"node {lost}" in done.stderr and "may be left there" in done.stderr, done.stderr
        assert all(answer["errors"] == {} for answer in found.values()), (done.stderr, found)
        assert_delivered(job, found)
        pauses_s.setdefault("node", []).append(longest_wait_s(found, at, time.monotonic()))
        bed.link(lost, "up")
        # The kernel remembers for some seconds that there was no way to the node.
        is_clean = lambda: job.forebay("clean", check=False).returncode == 0  # noqa: E731
        wait_until(is_clean, WAIT_S, "the removal of what was left")
        assert job.leftovers() == []
        bed.kill(lost, "sshd:")  # nobody told them that the other end is gone
