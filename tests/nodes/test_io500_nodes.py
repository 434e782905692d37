"""`forebay bench io500` on two nodes: ranks read what the other node wrote."""

import json

import pytest

from support.mpi import LAUNCHING
from support.nodes import missing, nodes


@pytest.fixture(scope="module")
def two(build):
    if missing():
        pytest.skip(missing())
    with nodes(2, build) as bed:
        yield bed


def bench(bed, directory, *words, check=True):
    limits = ["--stonewall", "1", "--data", "64MiB", "--nodes", "n1,n2", "--ranks", "4"]
    environment = [f"{name}={value}" for name, value in LAUNCHING.items()]
    command = ["env", *environment, "forebay", "bench", "io500", "--json", *limits, *words, directory]
    return bed.run("n1", command, check=check)


def test_ranks_read_what_the_other_node_wrote(two):
    run = json.loads(bench(two, two.shared, "--results", two.shared / "results").stdout)
    assert (run["nodes"], run["ranks"], run["shift"]) == (["n1", "n2"], 4, 2)
    verified = [phase["verified"] for phase in run["phases"] if phase["verified"] is not None]
    assert verified == [True] * 6 and run["notes"] == []
    assert [path.name for path in two.shared.iterdir()] == ["results"]


def test_directory_of_one_node_is_refused_with_the_node_that_lacks_it(two):
    done = bench(two, "/tmp", "--results", two.shared / "more", check=False)
    assert done.returncode == 1
    error = json.loads(done.stdout)
    assert "on node n2: No such file or directory" in error["error"] and "same on all nodes" in error["hint"]
    assert "forebay-io500" not in two.run("n1", ["ls", "/tmp"]).stdout
