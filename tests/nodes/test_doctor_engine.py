"""`forebay doctor --engine`: what an engine promises and what it keeps, on two nodes; nothing is left."""

import json
import signal

import pytest

from support.nodes import nodes
from support.schemas import complaints
from support.waiting import wait_until


@pytest.fixture(scope="module")
def bed(build):
    with nodes(2, build) as bed:
        yield bed


def doctor(bed, *options):
    return ["forebay", "doctor", "--engine", "ceph", "--nodes", "n1,n2", "--store", "/mnt/nvme", *options]


def stores(bed):
    return [
        bed.run(name, ["sh", "-c", "ls -d /mnt/nvme/forebay* /tmp/forebay-node*"], check=False).stdout
        for name in bed.names
    ]


@pytest.mark.long
def test_promises_are_checked_and_rates_are_measured(bed):
    done = bed.run("n1", doctor(bed, "--json"), user="ada", seconds=300, check=False)
    found = json.loads(done.stdout)
    assert complaints("doctor-engine", found) == []
    wrong = {row["promise"]: row["broken"] for row in found["promises"] if row["is_wrong"]}
    assert done.returncode == int(wrong != {}), done.stderr
    assert (found["engine"], found["nodes"], found["left"]) == ("ceph", ["n1", "n2"], [])
    rows = {row["promise"]: row for row in found["promises"]}
    assert len(rows["coherence"]["kept"]) >= 40 and rows["coherence"]["broken"] == []
    assert rows["coherence"]["declared"] == "strict"
    # What the engine says that it does not keep is found, and is no error.
    assert rows["shared_mmap"]["declared"] == "no"
    assert rows["shared_mmap"]["broken"] + rows["shared_mmap"]["not_supported"] != []
    assert rows["atomic_append"]["declared"] == "no" and rows["atomic_append"]["broken"] != []
    assert wrong == {} and rows["locks"]["declared"] == "no"
    rates = found["rates"]
    assert all(rates[name] > 0 for name in ("write_bytes_per_s", "read_bytes_per_s", "creates_per_s", "removes_per_s"))
    assert stores(bed) == ["", ""] and bed.left() == []


def test_interrupt_leaves_nothing(bed):
    run = bed.popen("n1", doctor(bed), user="ada")
    wait_until(lambda: any("__conformance" in words for _, words in bed.processes("n2")), 60, "the checks")
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=60)
    assert run.returncode == 130
    wait_until(lambda: bed.left() == [], 10)
    assert stores(bed) == ["", ""]


def test_engine_without_nodes_is_refused(bed):
    done = bed.run("n1", ["forebay", "doctor", "--engine", "ceph"], user="ada", check=False)
    assert done.returncode == 1 and "--nodes n1,n2" in done.stderr
