"""Several metadata servers share the directories of a namespace."""

import itertools
import os
import pathlib

import pytest

from support.engines import of_job
from support.node_load import (
    LIMITS,
    STORE_BYTES,
    assert_delivered,
    begin,
    begins,
    end,
    kill,
    load_job,
    read_until,
    wait_for_progress,
)
from support.nodes import nodes
from support.waiting import wait_until

DIRECTORIES = 16
FILES = 60


@pytest.fixture(scope="module")
def bed(build):
    with nodes(3, build, STORE_BYTES) as bed:
        yield bed


def servers(bed) -> list[int]:
    return [pid for node in bed.names for pid, line in bed.processes(node) if begins(line, ["ceph-mds"])]


def processor_s(pid: int) -> float:
    words = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def test_servers_share_the_directories_of_the_namespace(bed):
    """A new directory is with the server of its parent, and moves to its own soon."""
    with of_job(bed, "ada", "--engine", "ceph", "--metadata-servers", 2, name="share") as mount:
        before = {pid: processor_s(pid) for pid in servers(bed)}
        assert len(before) == 2
        rounds = itertools.count()
        directories = " ".join(f"{mount}/{number}" for number in range(DIRECTORIES))
        bed.run("n1", ["sh", "-c", f"mkdir {directories}"], "ada")

        def both_work() -> bool:
            names = f"$(seq -f {next(rounds)}-%g {FILES})"
            bed.run("n1", ["sh", "-c", f"for d in {directories}; do (cd $d; touch {names}); done"], "ada")
            work_s = [processor_s(pid) - before[pid] for pid in before]
            return min(work_s) > max(work_s) / 5

        wait_until(both_work, what="the work of the second server")
        files = next(rounds) * FILES * DIRECTORIES
        assert int(bed.run("n2", ["sh", "-c", f"find {mount} -type f | wc -l"], "ada").stdout) == files
        moved = f"for n in $(seq {DIRECTORIES - 1}); do mv {mount}/0/0-$n {mount}/$n/moved; done"
        bed.run("n2", ["sh", "-c", moved], "ada")
        assert int(bed.run("n3", ["sh", "-c", f"ls -d {mount}/*/moved | wc -l"], "ada").stdout) == DIRECTORIES - 1


@pytest.mark.soak
def test_one_of_them_is_replaced_with_copies(bed):
    job = load_job(bed, "replaced", "--redundancy", 2, "--metadata-servers", 2)
    run = begin(job, **LIMITS)
    assert len(servers(bed)) == 3
    kill(bed, "n2", "ceph-mds")
    read_until(run, "n2.metadata ended")
    wait_for_progress(job, bed.names)
    done, found = end(job, run)
    assert done.returncode == 0, done.stderr
    assert all(answer["errors"] == {} for answer in found.values()), found
    assert_delivered(job, found)
    assert job.leftovers() == []


@pytest.mark.soak
@pytest.mark.parametrize(
    ("options", "part"),
    [
        (["--metadata-servers", 4], "4 metadata servers need 4 nodes, and the job has 3"),
        (["--metadata-servers", 3, "--redundancy", 2], "one that takes over, need 4 nodes"),
        (["--metadata-servers", 17], "17 metadata servers are not offered: write 1 to 16"),
    ],
)
def test_servers_that_cannot_be_had_are_refused(bed, options, part):
    job = load_job(bed, "refused-" + "-".join(map(str, options)), *options)
    done = job.run(check=False)
    assert done.returncode != 0 and part in done.stderr, done.stderr
    assert job.leftovers() == []
