"""Staging against `cp -a` and one sync, and `rsync -a` where it is there: from the real disk into memory and back.

STAGING_SCALE=10 is 8 GiB in 4 files, 100,000 files of 4 KiB in 1,000 directories, and 1,000,000 tiny ones for the
growth of time and memory; the default is a tenth of that.
"""

import os
import pathlib
import random
import shutil
import subprocess
import time

from measure import Compared, Counted, Line, in_turn
from place import Place, forget, seconds

ROUNDS = 3
SCALE = float(os.environ.get("STAGING_SCALE") or 1)
FILES = max(int(10_000 * SCALE), 100)
LARGE_BYTES = int(SCALE * (8 << 30)) // 10
MEMORY_MB_MAX = 300


def run(place: Place) -> list[Line]:
    lines = []
    with place.job() as job, place.in_shared_memory() as memory:
        disk = job.directory
        many, large = disk / "many", disk / "large"
        make_many(many, FILES, FILES // 100, 4096)
        make_large(large, LARGE_BYTES // 4, random.Random(place.seed))
        lines += both_ways(job, memory, many, f"{FILES:,} files of 4 KiB", "1.0")
        lines += both_ways(job, memory, large, f"4 files of {LARGE_BYTES >> 22} MiB", "1.0")
        lines += both_ways(
            job, memory, large, f"4 files of {LARGE_BYTES >> 22} MiB, verified", "0.8", "--verify", "end"
        )
        lines.append(again(job, many))
        shutil.rmtree(many)
        lines.append(growth(job))
    return lines


def make_many(top: pathlib.Path, files: int, directories: int, size: int) -> None:
    for number in range(directories):
        (top / str(number)).mkdir(parents=True)
    for number in range(files):
        (top / str(number % directories) / str(number)).write_bytes(
            number.to_bytes(4, "little") * (size // 4)
        )


def make_large(top: pathlib.Path, size: int, draw: random.Random) -> None:
    top.mkdir()
    block = draw.randbytes(1 << 20)
    for number in range(4):
        with open(top / str(number), "wb") as file:
            for _ in range(max(size >> 20, 1)):
                file.write(block)


def ways(job, *options: str) -> dict:
    """Ways to copy a tree that is not there, and to have it safe: name, and how long it takes."""
    shell = lambda text: lambda source, target: seconds(job, "sh", "-c", text, "sh", source, target)
    found = {"cp -a, sync": shell('cp -a "$1" "$2" && sync')}
    if shutil.which("rsync"):
        found["rsync -a, sync"] = shell('rsync -a "$1/" "$2" && sync')
    return found | {
        "forebay": lambda source, target: seconds(job, job.forebay, "stage", "out", *options, source, target)
    }


def both_ways(
    job, memory: pathlib.Path, source: pathlib.Path, what: str, at_least: str, *options: str
) -> list[Line]:
    found = ways(job, *options)
    others = [name for name in found if name != "forebay"]
    lines = []
    inside = memory / "data"
    for direction in ("in", "out"):
        if direction == "out":
            shutil.copytree(source, inside, symlinks=True)
        origin, target = (source, inside) if direction == "in" else (inside, job.directory / "back")

        def taken(name: str) -> float:
            shutil.rmtree(target, ignore_errors=True)
            forget(origin)
            return found[name](origin, target)

        results = in_turn(
            ROUNDS, *[lambda name=name: taken(name) for name in [others[0], *others[1:], "forebay"]]
        )
        (base, *more, own), repeated = results[:-1], results[-1]
        for name, other in zip(others, [base, *more]):
            least = at_least if name.startswith("cp") else "2.0"
            ratios = sorted(a / b for a, b in zip(other, own))
            kept = ratios[len(ratios) // 2] >= float(least)
            lines.append(
                Compared(
                    f"{direction}, {what}",
                    name,
                    "forebay",
                    "s",
                    other,
                    own,
                    repeated,
                    promise=f"at least {least}",
                    kept=kept,
                )
            )
        shutil.rmtree(target, ignore_errors=True)
        shutil.rmtree(inside, ignore_errors=True)
    return lines


def again(job, source: pathlib.Path) -> Line:
    """A tree that is there, staged again, against its first stage."""
    target = job.directory / "again"
    stage = lambda: seconds(job, job.forebay, "stage", "out", source, target)

    def first() -> float:
        shutil.rmtree(target, ignore_errors=True)
        return stage()

    def second() -> float:
        if not target.exists():
            stage()
        return stage()

    a, b, repeated = in_turn(ROUNDS, first, second)
    shutil.rmtree(target)
    ratios = sorted(x / y for x, y in zip(a, b))
    return Compared(
        f"again, {FILES:,} files that are there",
        "first",
        "again",
        "s",
        a,
        b,
        repeated,
        promise="10 times",
        kept=ratios[1] >= 10,
    )


def growth(job) -> Line:
    """Ten times the tiny files: time for each, and the most memory."""
    each, peak_mb = [], 0
    for files in (FILES, 10 * FILES):
        source, target = job.directory / "tiny", job.directory / "tiny out"
        make_many(source, files, files // 100, 4)
        began = time.perf_counter()
        child = subprocess.Popen(
            [job.forebay, "stage", "out", source, target], env=job.environment(), stderr=subprocess.DEVNULL
        )
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            raise SystemExit(f"error: forebay stage ended with {child.returncode}")
        each.append((time.perf_counter() - began) / files)
        peak_mb = usage.ru_maxrss * 1024 / 1e6
        shutil.rmtree(source)
        shutil.rmtree(target)
    what = f"{10 * FILES:,} tiny files against {FILES:,}; {peak_mb:.0f} MB of memory at most"
    verdict = f"{each[1] / each[0]:.2f} times the time for each file"
    return Counted(
        what,
        "fewer",
        "more",
        "us a file",
        each[0] * 1e6,
        each[1] * 1e6,
        verdict,
        f"less than {MEMORY_MB_MAX} MB",
        peak_mb < MEMORY_MB_MAX,
    )
