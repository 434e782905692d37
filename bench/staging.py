"""Staging against `cp -a` and one sync, and small files against `rsync -a` as well: from the real disk into memory and back.

STAGING_SCALE=10 is 8 GiB in 4 files, 100,000 files of 4 KiB in 1,000 directories, and 1,000,000 tiny ones for the
growth of time and memory; the default is a tenth of that. STAGING_ONLY=large runs one part.

Many small files go to a new directory each time, and stay until all is done: for some minutes ext4 passes over
each inode that was freed, so whoever makes many files right after a removal takes twice as long, whatever he copies with.
"""

import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

from measure import Compared, Counted, Line, in_turn
from place import Place, forget, seconds

ROUNDS = 3
SCALE = float(os.environ.get("STAGING_SCALE") or 1)
FILES = max(int(10_000 * SCALE), 100)
LARGE_BYTES = int(SCALE * (8 << 30)) // 10
MEMORY_MB_MAX = 300
#: As much as equal stagings differ by.
LINEAR_MOST = 1.25
CP, RSYNC = "cp -a, sync", "rsync -a, sync"


def run(place: Place) -> list[Line]:
    only = os.environ.get("STAGING_ONLY")
    if only and only not in PARTS:
        raise SystemExit(f"error: STAGING_ONLY={only}: there are {', '.join(PARTS)}")
    lines = []
    with place.job() as job, place.in_shared_memory() as memory:
        for name in [only] if only else PARTS:
            began = time.monotonic()
            lines += PARTS[name](job, memory, random.Random(place.seed))
            print(f"staging, {name}: {time.monotonic() - began:.0f} s", file=sys.stderr)
    return lines


def many(job, memory: pathlib.Path, _: random.Random) -> list[Line]:
    source = job.directory / "many"
    make_many(source, FILES, FILES // 100, 4096)
    least = {CP: 1.0, RSYNC: 2.0}
    return both_ways(job, memory, source, {f"{FILES:,} files of 4 KiB": ((), least)}, keeps=True)


def large(job, memory: pathlib.Path, draw: random.Random) -> list[Line]:
    source = job.directory / "large"
    make_large(source, LARGE_BYTES // 4, draw)
    what = f"4 files of {LARGE_BYTES >> 22} MiB"
    variants = {what: ((), {CP: 1.0}), f"{what}, verified": (("--verify", "end"), {CP: 0.8})}
    lines = both_ways(job, memory, source, variants)
    shutil.rmtree(source)
    return lines


def make_many(top: pathlib.Path, files: int, directories: int, size: int) -> None:
    for number in range(directories):
        (top / str(number)).mkdir(parents=True)
    for number in range(files):
        (top / str(number % directories) / str(number)).write_bytes(number.to_bytes(4, "little") * (size // 4))


def make_large(top: pathlib.Path, size: int, draw: random.Random) -> None:
    top.mkdir()
    block = draw.randbytes(1 << 20)
    for number in range(4):
        with open(top / str(number), "wb") as file:
            for _ in range(max(size >> 20, 1)):
                file.write(block)


def other_ways(job) -> dict[str, Callable]:
    """Other ways to copy a tree that is not there, and to have it safe."""
    shell = lambda text: lambda source, target: seconds(job, "sh", "-c", text, "sh", source, target)
    return {CP: shell('cp -a "$1" "$2" && sync'), RSYNC: shell('rsync -a "$1/" "$2" && sync')}


def both_ways(
    job, memory: pathlib.Path, source: pathlib.Path, variants: dict[str, tuple], keeps: bool = False
) -> list[Line]:
    """In and out: each variant of a stage, its options and how many times as fast as whom it is to be, in the same
    rounds. What arrives on the disk is kept until the end, or removed before the next.
    """
    wanted = {name for _, least in variants.values() for name in least}
    others = {name: way for name, way in other_ways(job).items() if name in wanted}
    lines = []
    inside = memory / "data"
    for direction in ("in", "out"):
        if direction == "out":
            shutil.copytree(source, inside, symlinks=True)
        origin, top = (source, memory / "to") if direction == "in" else (inside, job.directory / "back")
        fresh = lambda way: lambda: way(origin, made_way(origin, top, keeps and direction == "out"))

        stage = lambda options: lambda a, b: seconds(job, job.forebay, "stage", direction, *options, a, b)
        first, *rest = others.values()  # the first is repeated anyway
        ways = [first, *rest, *(stage(options) for options, _ in variants.values()), *rest]
        results = in_turn(ROUNDS, *map(fresh, ways))
        of_others = dict(zip(others, zip(results, [results[-1], *results[-1 - len(rest) : -1]])))
        for (what, (_, least)), own in zip(variants.items(), results[len(others) :]):
            for name, times in least.items():
                lines.append(row(f"{direction}, {what}", name, *of_others[name], own, times))
        if not keeps or direction == "in":
            shutil.rmtree(top)
        shutil.rmtree(inside, ignore_errors=True)
    return lines


def made_way(origin: pathlib.Path, top: pathlib.Path, keeps: bool) -> pathlib.Path:
    """A target that is not there, when what is to go there has to be read from its device."""
    if not keeps:
        shutil.rmtree(top, ignore_errors=True)
    top.mkdir(exist_ok=True)
    forget(origin)
    return top / str(len(list(top.iterdir())))


def row(what: str, name: str, other: list[float], repeated: list[float], own: list[float], times: float) -> Compared:
    ratios = sorted(a / b for a, b in zip(other, own))
    kept = ratios[len(ratios) // 2] >= times
    return Compared(what, name, "forebay", "s", other, own, repeated, promise=f"at least {times}", kept=kept)


def again(job, *_) -> list[Line]:
    """A tree that is there, staged again, against its first stage."""
    source, top = job.directory / "to be there", job.directory / "again"
    make_many(source, FILES, FILES // 100, 4096)
    top.mkdir()

    def stage(target: pathlib.Path) -> float:
        forget(source)
        return seconds(job, job.forebay, "stage", "out", source, target)

    first = lambda: stage(top / str(len(list(top.iterdir()))))

    def second() -> float:
        if not (top / "0").exists():
            stage(top / "0")
        return stage(top / "0")

    a, b, repeated = in_turn(ROUNDS, first, second)
    ratios = sorted(x / y for x, y in zip(a, b))
    what, kept = f"again, {FILES:,} files that are there", ratios[1] >= 10
    return [Compared(what, "first, from a cold disk", "again", "s", a, b, repeated, promise="10 times", kept=kept)]


def growth(job, *_) -> list[Line]:
    """Ten times the tiny files: time for each, and the most memory."""
    top = job.directory / "growth"
    for files in (FILES, 10 * FILES):
        make_many(top / str(files), files, files // 100, 4)
    grown = {FILES: [], 10 * FILES: []}
    for number in range(ROUNDS):
        for files, seen in grown.items():
            os.sync()
            seen.append(staged(job, top / str(files), top / f"{files} out {number}"))
    each = [[1e6 * taken / files for taken, _ in seen] for files, seen in grown.items()]
    peak_mb = max(peak for seen in grown.values() for _, peak in seen)
    fewer, more = map(statistics.median, each)
    what = f"{10 * FILES:,} tiny files against {FILES:,}; {peak_mb:.0f} MB of memory at most"
    verdict = f"{more / fewer:.2f} times the time for each file"
    promise = f"at most {LINEAR_MOST} times, less than {MEMORY_MB_MAX} MB"
    kept = more / fewer <= LINEAR_MOST and peak_mb < MEMORY_MB_MAX
    return [Counted(what, "fewer", "more", "us a file", fewer, more, verdict, promise, kept)]


def staged(job, source: pathlib.Path, target: pathlib.Path) -> tuple[float, float]:
    """Seconds, and the most MB of memory."""
    began = time.perf_counter()
    words = [job.forebay, "stage", "out", source, target]
    child = subprocess.Popen(words, env=job.environment(), stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"error: forebay stage ended with {child.returncode}")
    return time.perf_counter() - began, usage.ru_maxrss * 1024 / 1e6


PARTS = {"many": many, "large": large, "again": again, "growth": growth}
