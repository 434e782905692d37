"""`forebay plan machine measure` on several nodes that ssh reaches."""

import tomllib

import pytest

from support.nodes import nodes
from support.waiting import wait_until

SMALL = "--size", "8MiB", "--processes", "2"


@pytest.fixture(scope="module")
def bed(build):
    with nodes(2, build) as bed:
        yield bed


def storage(bed, name):
    directory = bed.shared / name
    directory.mkdir()
    return directory


def measure(bed, *words, **options):
    return bed.run("n1", ["forebay", "plan", "machine", "measure", *words], check=False, **options)


def test_nodes_measure_at_once_with_ssh(bed):
    directory = storage(bed, "at-once")
    done = measure(bed, directory, *SMALL, "--nodes", "n1,n2")
    tables = tomllib.loads(done.stdout)
    assert tables["compute"]["nodes"]["value"] == 2 and "node_bandwidth" in tables["compute"]
    assert list(directory.iterdir()) == []


def test_directory_that_another_node_does_not_see_is_named(bed):
    done = measure(bed, "/dev/shm", *SMALL, "--nodes", "n1,n2")
    assert done.returncode == 1 and "n2: [Errno 2]" in done.stderr and "which all nodes must see" in done.stderr


def test_node_that_ssh_does_not_reach_is_named(bed):
    directory = storage(bed, "unknown")
    done = measure(bed, directory, *SMALL, "--nodes", "n1,n9")
    assert done.returncode == 1 and "n9: the measuring process ended" in done.stderr
    assert list(directory.iterdir()) == []


def test_killed_measurement_leaves_nothing_on_any_node(bed):
    directory = storage(bed, "killed")
    words = ["forebay", "plan", "machine", "measure", directory, "--size", "64MiB", "--nodes", "n1,n2"]
    process = bed.popen("n1", words)
    wait_until(lambda: any(directory.glob("*/n2-0.data")), what="the file of n2", process=process)
    process.kill()
    process.communicate(timeout=120)
    wait_until(lambda: list(directory.iterdir()) == [], what="the end of all processes")
