"""System calls of BTIO's ranks on the files of a store and of a bare directory of the same kind, counted."""

import pathlib
import tempfile

from support.job import DW
from measure import Counted, Line
from place import Place
from support.system_calls import Traced, names

DUMPS = 20
POINTS = 32


def run(place: Place) -> list[Line]:
    return [counted(place, in_memory) for in_memory in (True, False)]


def counted(place: Place, in_memory: bool) -> Line:
    with place.job() as job:
        if not in_memory:
            job.where = ["--store", job.store]
        traced = Traced(job, place.build / "kernels" / "btio", DUMPS, POINTS)
        # The record of a run looks at each file once more as it is opened, for its block size.
        through = traced.through_forebay(DW.replace("64MiB", "1GiB"), options=("--no-profile",))
        with tempfile.TemporaryDirectory(prefix="forebay-bench-", dir="/dev/shm" if in_memory else job.store) as bare:
            beside = traced.bare(pathlib.Path(bare) / "plain")
    all_calls = lambda ranks: [call for rank in sorted(ranks) for call in ranks[rank]]
    same = through == beside
    each = ", ".join(f"{name} {count}" for name, count in sorted(names(all_calls(through)).items()))
    kind = "memory, tmpfs" if in_memory else "--store DIR"
    verdict = (
        f"the same calls in the same order on each rank ({each})"
        if same
        else f"DIFFERENT: {difference(through, beside)}"
    )
    a, b = len(all_calls(beside)), len(all_calls(through))
    return Counted(
        f"BTIO, 4 ranks, {kind}", "bare directory", "store", "calls", a, b, verdict, promise="0 calls more", kept=same
    )


def difference(through: dict, beside: dict) -> str:
    for rank in sorted(through | beside):
        pairs = zip(through.get(rank, []), beside.get(rank, []))
        different = next((pair for pair in pairs if pair[0] != pair[1]), None)
        if different:
            return f"rank {rank}: {different[0]} | {different[1]}"
    return "one has more"
