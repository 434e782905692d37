"""Patterns of a profile: how many ranks, files and nodes a plan is for."""

import pytest
from darshan.log_utils import get_log_path

from forebay.plan import from_profile
from support.raw_logs import raw_profile

WROTE = {"WRITES": 64, "BYTES_WRITTEN": 64 << 20, "F_WRITE_TIME": 1}


def pattern(*files, ranks=16):
    """`files`: (module, path, rank)."""
    (found,) = from_profile.read(raw_profile(*((*one, WROTE) for one in files), ranks=ranks)).patterns
    return found.access, found.ranks, found.files, found.total_bytes


@pytest.mark.parametrize(
    ("files", "access", "ranks", "count"),
    [
        ([("POSIX", f"/lus/step{n}.h5", 3) for n in range(8)], "serial", 1, 1),
        ([("POSIX", f"/lus/out.{n}", n) for n in range(16)], "file-per-process", 16, 16),
        ([("POSIX", f"/lus/step{n}.{n % 4}", n % 4) for n in range(16)], "file-per-process", 4, 16),
        ([("POSIX", "/lus/log", 0), ("STDIO", "/lus/log", 0)], "serial", 1, 1),
        ([(name, f"/lus/o.{n}", n) for n in range(16) for name in ("POSIX", "STDIO")], "file-per-process", 16, 16),
    ],
)
def test_ranks_and_paths_of_a_profile_decide_its_access(files, access, ranks, count):
    assert pattern(*files) == (access, ranks, count, len(files) * (64 << 20))


def test_nodes_that_no_profile_says_are_those_of_a_rank_on_each_core(job):
    """2,048 ranks; a node of Cori has 32 cores."""
    words = "plan", "--machine", "cori1", "--profile", get_log_path("sample-badost.darshan")
    done = job.command(*words)
    assert "64 nodes, 2048 ranks" in done.stdout, done.stderr
    assert "the plan takes 64, a rank for each core" in done.stdout
    assert "128 nodes, 2048 ranks" in job.command(*words, "--nodes", "128").stdout
