"""Large files in memory: a plain tmpfs, the default store, and huge pages."""

import statistics
import subprocess

from measure import Compared, Counted, Line, in_turn
from place import Place, last_object, succeeded

MIB = 1024
ROUNDS = 5
REPEAT = 2
PROMISED = 2.0
PATTERNS = ("overwritten", "created anew", "size set ahead")
# Records of BTIO's size, whose source stays in the processor's cache, and 1 MiB, which costs memory bandwidth to read.
BLOCKS = {47_008: "47 kB", 1 << 20: "1 MiB"}


def run(place: Place) -> list[Line]:
    return [line for block in BLOCKS for line in of_blocks(place, block)]


def of_blocks(place: Place, block: int) -> list[Line]:
    writer = place.build / "bench" / "writer"
    with place.job() as job, place.in_shared_memory() as plain:
        job.script(
            f"{writer} $DW_JOB_STRIPED {MIB} {REPEAT} {block}",
            "#DW jobdw type=scratch access_mode=striped capacity=3GiB",
        )

        def in_store(store: str):
            return lambda: last_object(succeeded(job.run("--store", store)).stdout)

        def beside():
            return last_object(
                succeeded(
                    subprocess.run([writer, plain, str(MIB), str(REPEAT), str(block)], capture_output=True, text=True)
                ).stdout
            )

        a, memory, huge, again = in_turn(ROUNDS, beside, in_store("memory"), in_store("memory:huge"))
    return [
        line
        for name, b in (("memory", memory), ("memory:huge", huge))
        for line in lines(BLOCKS[block], name, a, b, again)
    ]


def lines(block: str, name: str, a: list[dict], b: list[dict], again: list[dict]) -> list[Line]:
    made = [cold(block, name, a[0], b[0])]
    for pattern in ("first", *PATTERNS):
        rates = [[warm(run[pattern]) for run in runs] for runs in (a, b, again)]
        what = "first write" if pattern == "first" else pattern
        ratio = statistics.median(b / a for a, b in zip(rates[0], rates[1]))
        promise = kept = None
        if name == "memory:huge" and pattern != "first":
            promise, kept = f">= {PROMISED:g} times", ratio >= PROMISED
        made.append(
            Compared(
                f"2 files of {MIB // 2} MiB in {block}, {what}",
                "/dev/shm",
                name,
                "GiB/s",
                *rates,
                more_is_better=True,
                promise=promise,
                kept=kept,
            )
        )
    return made


def warm(rates: float | list[float]) -> float:
    return rates if isinstance(rates, float) else statistics.median(rates)


def cold(block: str, name: str, a: dict, b: dict) -> Line:
    """The very first of all: as cold as the machine's memory happened to be, and no pair."""
    return Counted(
        f"2 files of {MIB // 2} MiB in {block}, coldest",
        "/dev/shm",
        name,
        "GiB/s",
        a["first"],
        b["first"],
        "one run each, in this order",
    )
