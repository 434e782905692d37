"""`forebay bench io500` on two nodes: ranks read what the other node wrote."""

import json
import os
import signal

import pytest

from support.mpi import LAUNCHING
from support.nodes import ended, missing, nodes
from support.waiting import wait_until


@pytest.fixture(scope="module")
def two(build):
    if missing():
        pytest.skip(missing())
    with nodes(2, build) as bed:
        yield bed


def command(directory, *words, stonewall_s=1, data="64MiB"):
    limits = ["--stonewall", stonewall_s, "--data", data, "--nodes", "n1,n2", "--ranks", "4"]
    environment = [f"{name}={value}" for name, value in LAUNCHING.items()]
    return ["env", *environment, "forebay", "bench", "io500", "--json", *limits, *words, directory]


def bench(bed, directory, *words, check=True):
    return bed.run("n1", command(directory, *words), check=check)


@pytest.mark.soak
def test_ranks_read_what_the_other_node_wrote(two):
    data = two.shared / "read"
    data.mkdir()
    run = json.loads(bench(two, data, "--results", data / "results").stdout)
    assert (run["nodes"], run["ranks"], run["shift"]) == (["n1", "n2"], 4, 2)
    verified = [phase["verified"] for phase in run["phases"] if phase["verified"] is not None]
    assert verified == [True] * 6 and run["notes"] == []
    assert [path.name for path in data.iterdir()] == ["results"]


def test_directory_of_one_node_is_refused_with_the_node_that_lacks_it(two):
    done = bench(two, "/tmp", "--results", two.shared / "more", check=False)
    assert done.returncode == 1
    error = json.loads(done.stdout)
    assert "on node n2: No such file or directory" in error["error"] and "same on all nodes" in error["hint"]
    assert "forebay-io500" not in two.run("n1", ["ls", "/tmp"]).stdout


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_signal_on_the_first_node_leaves_nothing_on_any(two, number):
    data = two.shared / f"data-{number}"
    data.mkdir()
    results = two.shared / f"results-{number}"
    process = two.popen("n1", command(data, "--results", results, stonewall_s=60, data="2GiB"))
    # Files of ranks of both nodes.
    wait_until(lambda: len(list(data.glob("*/ior-easy/*"))) == 4, what="files of all ranks", process=process)
    (front,) = [pid for pid, words in two.processes("n1") if "bench" in words and "io500" in words]
    os.kill(front, number)
    done = ended(process, check=False)
    assert done.returncode != 0
    wait_until(lambda: two.leftovers() == [] and list(data.iterdir()) == [], 120, "the end of everything")
    assert not results.exists()
