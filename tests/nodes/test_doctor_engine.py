"""`forebay doctor --engine`: what an engine promises and what it keeps, on two nodes; nothing is left."""

import json
import signal

import pytest

from support.engines import profile_of_client
from support.nodes import nodes
from support.schemas import complaints
from support.strace import EVERY_POINT, few
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


#: Of the client of CephFS: no flags of rename, and the quota counts holes.
DEVIATIONS = {"rename_without_replacing", "large_offset", "sparse"}


def broken(row):
    return [line.partition(":")[0] for line in row["broken"]]


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.timeout(4 * 3600 if EVERY_POINT else 600)
def test_promises_are_checked_and_rates_are_measured(bed):
    repetitions = 1000 if EVERY_POINT else 1
    options = ["--json", "--repetitions", repetitions]
    done = bed.run("n1", doctor(bed, *options), user="ada", seconds=540 + 12 * repetitions, check=False)
    found = json.loads(done.stdout)
    assert complaints("doctor-engine", found) == []
    wrong = {row["promise"]: row["broken"] for row in found["promises"] if row["is_wrong"]}
    assert done.returncode == int(wrong != {}), done.stderr
    assert (found["engine"], found["nodes"], found["left"]) == ("ceph", ["n1", "n2"], [])
    assert found["repetitions"] == repetitions
    rows = {row["promise"]: row for row in found["promises"]}
    assert len(rows["coherence"]["kept"]) >= 40 and rows["coherence"]["broken"] == []
    assert rows["coherence"]["declared"] == "strict"
    assert found["choices"] == ["the mounts use forebay-mount"]
    for name in ("shared_mmap", "atomic_append", "locks"):
        assert rows[name]["declared"] == "yes" and rows[name]["broken"] + rows[name]["not_supported"] == []
        assert len(rows[name]["kept"]) >= 3
    assert wrong == {} and set(broken(rows["posix"])) <= DEVIATIONS
    assert found["declared"]["striping"] and not found["declared"]["survives_server"]
    rates = found["rates"]
    assert all(rates[name] > 0 for name in ("write_bytes_per_s", "read_bytes_per_s", "creates_per_s", "removes_per_s"))
    assert stores(bed) == ["", ""]
    wait_until(lambda: bed.leftovers() == [], what="the end of the last process")


def test_interrupt_leaves_nothing(bed):
    run = bed.popen("n1", doctor(bed), user="ada")
    wait_until(lambda: any("__conformance" in words for _, words in bed.processes("n2")), what="the checks")
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=180)
    assert run.returncode == 130
    wait_until(lambda: bed.leftovers() == [])
    assert stores(bed) == ["", ""]


@pytest.mark.parametrize("engine", few("directory", "ceph-fuse"))
def test_engine_is_checked_on_this_node_alone(bed, engine):
    is_ceph = engine == "ceph-fuse"
    named = ["--engine-profile", profile_of_client(bed, engine)] if is_ceph else ["--engine", engine]
    words = ["forebay", "doctor", *named, "--store", "/mnt/nvme", "--json"]
    done = bed.run("n1", words, user="ada", seconds=300)
    found = json.loads(done.stdout)
    assert complaints("doctor-engine", found) == []
    assert (found["engine"], found["nodes"], found["left"]) == ("ceph" if is_ceph else engine, ["n1"], [])
    assert found["choices"] == (["the mounts use ceph-fuse"] if is_ceph else [])
    rows = {row["promise"]: row for row in found["promises"]}
    assert len(rows["posix"]["kept"]) > 100 and rows["coherence"]["kept"] == []
    # What the engine says that it does not keep is found, and is no error.
    declared = "no" if is_ceph else "yes"
    assert all(rows[name]["declared"] == declared for name in ("shared_mmap", "atomic_append"))
    assert (rows["shared_mmap"]["not_supported"] == []) == (not is_ceph)
    assert found["rates"]["write_bytes_per_s"] > 0
    assert stores(bed) == ["", ""]
    wait_until(lambda: bed.leftovers() == [], what="the end of the last process")


@pytest.mark.parametrize("nodes", ["n1", "n1,n2"])
def test_clean_removes_what_a_killed_check_left(bed, nodes):
    words = ["forebay", "doctor", "--engine", "ceph", "--nodes", nodes, "--store", "/mnt/nvme"]
    run = bed.popen("n1", words, user="ada")
    wait_until(lambda: any("__conformance" in words for _, words in bed.processes("n1")), what="the checks")
    run.kill()
    run.communicate()
    assert any(stores(bed))
    (left,) = json.loads(bed.run("n1", ["forebay", "status", "--json"], user="ada").stdout)
    assert (left["script"], left["nodes"]["engine"]) == ("forebay doctor", "ceph"), left
    bed.run("n1", ["forebay", "clean"], user="ada")
    wait_until(lambda: bed.leftovers() == [])
    assert stores(bed) == ["", ""]
    assert json.loads(bed.run("n1", ["forebay", "status", "--json"], user="ada").stdout) == []


def test_engines_are_listed_with_what_is_missing(bed):
    listed = json.loads(bed.run("n1", ["forebay", "engine", "list", "--json"], user="ada").stdout)
    assert complaints("engine-list", listed) == []
    found = {engine["name"]: engine for engine in listed}
    assert list(found)[:2] == ["ceph", "directory"] and {"beeond", "cephfs-directory", "lod"} <= set(found)
    ceph = found["ceph"]
    assert ceph["is_offered"] and ceph["choices"] == ["the mounts use forebay-mount"]
    assert ceph["profile"] is None and ceph["programs"][0]["version"][:2].isdigit()
    assert (ceph["promise"]["coherence"], ceph["promise"]["survives_node"]) == ("strict", False)
    two = json.loads(bed.run("n1", ["forebay", "engine", "list", "--redundancy", "2", "--json"], user="ada").stdout)
    assert two[0]["promise"]["survives_node"]
    lod = found["lod"]
    assert not lod["is_offered"] and lod["profile"].endswith("profiles/lod.toml")
    assert [missing["what"] for missing in lod["missing"]] == ["lod"] and "install lod on n1" in lod["missing"][0][
        "remedy"
    ]
    text = bed.run("n1", ["forebay", "engine", "list", "--engine-root", "/nowhere"], user="ada").stdout
    assert text.startswith("missing  ceph: ") and "remedy: " in text and "--engine-root" in text
    kept = "appends of several nodes, locks across nodes, MAP_SHARED, striping; not: survives a lost server"
    assert f"promises: coherence strict, {kept}" in text
