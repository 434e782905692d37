"""The data path is the kernel's: a program makes the same calls on a store as on a bare directory."""

import pathlib
import tempfile

import pytest

from support.job import DW
from support.strace import few
from support.system_calls import Traced, names


# The record looks at each file that is opened, for its block size: it moves nothing.
STAT_CALLS = ("newfstatat(", "fstat(", "statx(")


@pytest.mark.parametrize(
    ("store", "options"),
    few(pytest.param("directory", [], id="recorded"), pytest.param("memory", ["--no-profile"], id="alone")),
)
def test_each_rank_makes_the_same_calls_on_a_store_as_on_a_bare_directory(build, job, store, options):
    traced = Traced(job, build / "kernels" / "btio", dumps=2, points=8)
    if store == "memory":
        job.in_memory()
    through = traced.through_forebay(DW, options=options)
    kind = "/dev/shm" if store == "memory" else job.store
    with tempfile.TemporaryDirectory(dir=kind) as bare:
        on_bare = traced.bare(pathlib.Path(bare) / "plain")
    assert sorted(through) == sorted(on_bare) == [0, 1, 2, 3]
    if not options:
        through, on_bare = (without_stat_calls(ranks) for ranks in (through, on_bare))
    for rank in through:
        assert names(through[rank]) == names(on_bare[rank])
        assert through[rank] == on_bare[rank]
    # Something was seen at all: two dumps of 8 x 8 x 8 points, 40 bytes each.
    written = [
        int(call.split("= ")[-1])
        for calls in through.values()
        for call in calls
        if "btio.full.out" in call and call.startswith(("write", "pwrite"))
    ]
    assert sum(written) == 2 * 40 * 8**3


def without_stat_calls(ranks: dict[int, list[str]]) -> dict[int, list[str]]:
    return {rank: [call for call in calls if not call.startswith(STAT_CALLS)] for rank, calls in ranks.items()}
