"""A pool on dedicated storage nodes: a directory of a CephFS that all hosts mount, with a quota for each allocation."""

import json
import os
import shutil
import subprocess

import pytest

from support.mpi import PROJECT, Mpi
from support.site_ceph import MOUNT, site_cephfs
from support.site_cluster import DW, MIB, SiteBatch, SiteCluster, chown
from support.slurm_cluster import NOBODY, NODES, started

SERVER = "ctl"
POOL = f"""
[[pool]]
name = "servers"
kind = "directory"
path = "{MOUNT}/pool"
granularity = "16MiB"
quantity = 20
quota = "ceph"
staging_nodes = ["n1"]
"""
SERVERS = f"{DW} pool=servers"
IN = "#DW stage_in type=directory source=%d/input destination=$DW_JOB_STRIPED/in"
OUT = "#DW stage_out type=directory source=$DW_JOB_STRIPED/out destination=%d/results"


class StorageSite(SiteCluster):
    """The controller's host serves the file system, which the four nodes mount."""

    names = (*NODES, SERVER)

    def make_files(self):
        super().make_files()
        with (self.top / "site.toml").open("a") as configuration:
            configuration.write(POOL)

    def node(self, name):
        return None if name == SERVER else name

    def address(self, name):
        return "10.77.0.100" if name == SERVER else f"10.77.0.{name[1:]}"


class Hosts:
    """The cluster with the methods of a test bed."""

    names, address = StorageSite.names, StorageSite.address

    def __init__(self, cluster):
        self.cluster, self.top = cluster, cluster.top

    def run(self, name, words, check=True):
        return self.cluster.run(words, self.cluster.node(name), check=check)

    def popen(self, name, words):
        leader = str(self.cluster.leader(self.cluster.node(name)))
        inside = ["nsenter", "--target", leader, "--net", "--mount", "--uts", "--pid"]
        path = {"PATH": f"{os.defpath}:/usr/sbin:/sbin"}
        return subprocess.Popen([*inside, *map(str, words)], env=os.environ | path, stdin=subprocess.DEVNULL)


@pytest.fixture(scope="module")
def storage_site(build):
    with started(StorageSite, build) as cluster, site_cephfs(Hosts(cluster), SERVER, 640 * MIB, 0o755):
        cluster.run(["install", "-d", "-m", "755", MOUNT / "pool"], node="n1")
        cluster.wait_until_up_again(*NODES)
        yield cluster


@pytest.fixture
def users(storage_site, request):
    batch = SiteBatch(storage_site, NOBODY, request.node.originalname)
    yield batch
    batch.end()


def pool_entries(cluster):
    return cluster.run(["ls", MOUNT / "pool"], node="n2").stdout.split()


def test_tree_and_mpi_program_use_the_servers_from_four_nodes(storage_site, users, build):
    program = PROJECT / "tests" / "programs" / "nodes" / "exchange.c"
    shutil.copy(Mpi("openmpi", build).compiled("exchange", program), users.directory / "exchange")
    source = users.directory / "input" / "deep"
    source.mkdir(parents=True)
    for number in range(20):
        (source / f"file{number}").write_bytes(bytes([number]) * 1000)
    chown(source.parent, users.user)
    rank = "read name </proc/sys/kernel/hostname; FOREBAY_BED_NODE=${name#n} exec ./exchange $DW_JOB_STRIPED/out/shared"
    body = f"""set -e
export OMPI_MCA_mpi_yield_when_idle=1
mkdir $DW_JOB_STRIPED/out
srun -N4 -n4 bash -c 'cp -a $DW_JOB_STRIPED/in $DW_JOB_STRIPED/out/$(hostname)'
mpirun --map-by node -n 4 sh -c '{rank} 8 400000 1 posix collective'
"""
    users.script(body, SERVERS.replace("16MiB", "64MiB"), IN, OUT)
    job = users.submit("--nodes=4", "--ntasks-per-node=1")
    assert users.wait(job) == "COMPLETED", users.state_of(job)
    exchanged = [json.loads(line) for line in users.stdout_text().splitlines() if line.startswith("{")]
    assert exchanged and all(one["mismatches"] == 0 for one in exchanged), users.stdout_text()
    users.wait_until_freed(job)
    assert users.arrived() == [*NODES, "shared.collective", "shared.posix"]
    for node in NODES:
        for number in range(20):
            copied = users.results / node / "deep" / f"file{number}"
            assert copied.read_bytes() == bytes([number]) * 1000
    assert pool_entries(storage_site) == []


def test_quota_stops_a_job_at_its_capacity_and_its_results_arrive(storage_site, users):
    attribute = '"ceph.quota.max_bytes"'
    raise_it = f'import os, sys; os.setxattr(sys.argv[1], {attribute}, b"0")'
    show_it = f"import os, sys; print(os.getxattr(sys.argv[1], {attribute}).decode())"
    body = f"""mkdir $DW_JOB_STRIPED/out
for directory in $DW_JOB_STRIPED $DW_JOB_STRIPED/..; do
    python3 -c '{raise_it}' $directory
    python3 -c '{show_it}' $directory
done
until ! head -c 1M /dev/zero >> $DW_JOB_STRIPED/out/big; do sleep 0.05; done"""
    users.script(body, SERVERS, OUT)
    job = users.submit("--nodelist=n2")
    users.wait(job)
    told = users.stderr_text()
    assert told.count("Permission denied") == 2, told
    assert told.count("Disk quota exceeded") == 1, told
    # That of the directory above has room for the journals of both directions.
    assert list(map(int, users.stdout_text().split())) == [16 * MIB, 16 * MIB + 2 * (16 * MIB + MIB // 4)]
    users.wait_until_freed(job)
    # The clients learn some seconds later what was written.
    assert 16 * MIB <= (users.results / "big").stat().st_size
    assert pool_entries(storage_site) == []


def test_pool_on_another_file_system_is_refused(storage_site):
    other = storage_site.top / "other.toml"
    pool = storage_site.top / "flash" / "other"
    pool.mkdir()
    other.write_text((storage_site.top / "site.toml").read_text().replace(f"{MOUNT}/pool", str(pool)))
    words = ["forebay-noded", "--listen", "127.0.0.1:7999"]
    done = storage_site.run(words, node="n1", check=False, FOREBAY_SITE=str(other))
    assert done.returncode == 1
    assert f'the pool servers has quota = "ceph", but {pool} is not on CephFS; mount CephFS there' in done.stderr
