"""The installed profile cephfs-directory on a real CephFS of a site: a directory for each job, with layout and quota."""

import json
import pathlib

import pytest

from support.bed_files import BUILD
from support.mpi import PROJECT
from support.node_jobs import NodeJob, node_job
from support.nodes import nodes
from support.site_ceph import site_cephfs
from support.strace import EVERY_POINT
from support.waiting import wait_until

STRIPED = "#DW jobdw type=scratch access_mode=striped capacity=64MiB"
MIB = 1 << 20
CAPACITY_BYTES = 512 * MIB
PARENT = "/cephfs/forebay"
ASK = f'ask() {{ LD_LIBRARY_PATH={BUILD}/lib {BUILD}/tests/capi/ask "$@"; }}'


@pytest.fixture(scope="module")
def site(build):
    """Nodes n1 and n2 of jobs, and n3, which serves the site's file system."""
    with nodes(3, build, 1 << 30) as bed, site_cephfs(bed, "n3", CAPACITY_BYTES) as mount:
        text = (PROJECT / "profiles" / "cephfs-directory.toml").read_text()
        assert PARENT in text
        (bed.shared / "site.toml").write_text(text.replace(PARENT, str(mount)))
        yield bed, mount


@pytest.fixture
def bed(site):
    """Nothing of a job is left on it after the test."""
    bed, mount = site
    before = bed.leftovers()
    yield bed
    wait_until(lambda: set(bed.leftovers()) <= set(before), what="the end of the job's processes")
    assert bed.run("n1", ["ls", "-A", mount]).stdout == ""


def site_job(bed, name: str, lines: str, *options) -> NodeJob:
    job = node_job(bed, f"{STRIPED}\n{lines}", "--profile", bed.shared / "site.toml", *options, name=name)
    # n3 is not one of the job's nodes.
    job.names = ("n1", "n2")
    return job


def test_job_has_its_own_directory_with_layout_and_quota(bed, site):
    lines = """cd $DW_JOB_STRIPED; pwd -P; stat -c '%U %a' ..
getfattr --only-values -n ceph.dir.layout ..; echo
getfattr --only-values -n ceph.quota.max_bytes ..; echo
echo one >a; ssh n2 "cat $DW_JOB_STRIPED/a; echo two >$DW_JOB_STRIPED/b"; cat b"""
    job = site_job(bed, "directory", lines)
    place, owner, layout, quota, *read = job.run().stdout.splitlines()
    assert pathlib.Path(place).parent.parent == site[1] and place.split("/")[-2].startswith("ada-")
    assert owner == "ada 700"
    assert layout == f"stripe_unit={MIB} stripe_count=1 object_size={MIB} pool=data"
    assert (quota, read) == (str(64 * MIB), ["one", "two"])
    assert job.leftovers() == []


UNTIL_REFUSED = """#!/bin/bash
# Appends 1 MiB until the quota refuses it; prints the seconds and the size in MiB.
began=$(date +%s%N)
while said=$(dd if=/dev/zero bs=1M count=1 status=none 2>&1 >>$1); do
    (($(date +%s%N) - began < 120000000000)) || exit 1
    sleep 0.05
done
[[ $said == *"quota exceeded"* ]] && echo $((($(date +%s%N) - began) / 1000000000)) $(($(stat -c %s $1) >> 20))
"""


def test_capacity_ends_writes_on_every_node(bed):
    lines = """export LC_ALL=C; cd $DW_JOB_STRIPED
HERE/fill a; sleep 1; ssh n2 HERE/fill $DW_JOB_STRIPED/b
rm a b; until dd if=/dev/zero of=c bs=1M count=8 status=none; do sleep 0.5; done; echo ok"""
    job = site_job(bed, "capacity", lines)
    job.path("fill").write_text(UNTIL_REFUSED)
    job.path("fill").chmod(0o755)
    first, second, last = job.run().stdout.splitlines()
    # A client learns some seconds later what it and the others wrote.
    assert int(first.split()[1]) >= 60 and int(second.split()[1]) <= 64
    assert last == "ok"


def test_capacity_is_what_the_site_has_left(bed):
    larger = site_job(bed, "larger", 'df -B1 --output=size "$DW_JOB_STRIPED" | tail -n 1', "--capacity", "2GiB")
    assert int(larger.run().stdout) <= CAPACITY_BYTES
    strict = site_job(bed, "strict", "true", "--capacity", "2GiB", "--strict-capacity").run(check=False)
    assert strict.returncode == 125 and "profile site" in strict.stderr


def test_library_sets_the_layout_on_the_sites_file_system(bed):
    lines = f"""{ASK}
cd $DW_JOB_STRIPED; mkdir d; ask stripes d; ask set-stripes d {4 * MIB} 1; ask set-stripes d {4 * MIB} 2; touch d/a; ask stripes d/a
ssh n2 getfattr --only-values -n ceph.file.layout.object_size $DW_JOB_STRIPED/d/a; echo"""
    said = site_job(bed, "layout", lines).run().stdout.splitlines()
    assert said == [f"0 {MIB} 1 0", "0", "-22", f"0 {4 * MIB} 1 0", str(4 * MIB)]


def test_clean_removes_the_directory_of_a_killed_run(bed, site):
    lines = "#DW stage_out type=file source=$DW_JOB_STRIPED/a destination=HERE/a\necho result >$DW_JOB_STRIPED/a\nhold\ntrue"
    job = site_job(bed, "killed", lines)
    run = job.start()
    run.kill()
    job.path("go").touch()
    run.communicate(timeout=60)
    assert bed.run("n2", ["ls", "-A", site[1]]).stdout != ""
    job.forebay("clean")
    assert job.text("a") == "result\n"
    assert job.leftovers() == []


if EVERY_POINT:  # a minute, and test_doctor_engine.py checks the engine

    def test_doctor_finds_the_promise_of_the_profile_kept(bed):
        words = ["forebay", "doctor", "--profile", bed.shared / "site.toml", "--nodes", "n1,n2", "--json"]
        found = json.loads(bed.run("n1", words, user="ada", check=False, seconds=300).stdout)
        assert [row for row in found["promises"] if row["is_wrong"]] == []
        assert found["left"] == []
