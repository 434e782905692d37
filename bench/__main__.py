"""`make bench`: what Forebay costs and gains on this machine, as one table; ONLY=NAME runs one benchmark."""

import json
import os
import pathlib
import platform
import random
import subprocess
import sys
import time

import advice
import calls
import drain
import engines
import large
import recording
import searches
import space
import staging
import trivial
from measure import Line
from place import Place

BENCHMARKS = {
    "trivial": trivial,
    "calls": calls,
    "recording": recording,
    "large": large,
    "space": space,
    "staging": staging,
    "drain": drain,
}
#: Only by name: it needs root.
BY_NAME = {"engines": engines}
#: Only by name: they have tables of their own.
ALONE = {"searches": searches, "advice": advice}
HEAD = ["what", "A", "B", "unit", "B/A: median (range)", "A/A", "says", "promise"]


def machine(forebay: pathlib.Path, seed: int) -> dict:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    first_line = lambda *words: subprocess.run(words, capture_output=True, text=True).stdout.partition("\n")[0]
    return {
        "cores": os.cpu_count(),
        "memory_gib": round(memory / (1 << 30), 1),
        "kernel": platform.release(),
        "forebay": first_line(forebay, "--version"),
        "commit": first_line("git", "describe", "--always", "--dirty"),
        "mpi": first_line("mpiexec", "--version"),
        "strace": first_line("strace", "--version"),
        "seed": seed,
        "load_before": round(os.getloadavg()[0], 2),
    }


def table(rows: list[list[str]]) -> str:
    """In Markdown, so that it can go into a document as it is."""
    widths = [max(len(row[column]) for row in [HEAD, *rows]) for column in range(len(HEAD))]
    line = lambda cells: "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths)) + " |"
    return "\n".join([line(HEAD), line(["-" * width for width in widths]), *map(line, rows)])


def main() -> int:
    only = os.environ.get("ONLY")
    if only in ALONE:
        return ALONE[only].main()
    known = BENCHMARKS | BY_NAME
    if only and only not in known:
        print(f"error: ONLY={only}: there are {', '.join([*known, *ALONE])}", file=sys.stderr)
        return 2
    build = pathlib.Path(os.environ["FOREBAY_BUILD"])
    seed = int(os.environ.get("SEED") or random.SystemRandom().randrange(10**6))
    place = Place(build, seed)
    about = machine(place.forebay, seed)
    lines: list[tuple[str, Line]] = []
    for name in [only] if only else BENCHMARKS:
        began = time.monotonic()
        lines += [(name, line) for line in known[name].run(place)]
        print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr)
    repeat = {name: f"make bench ONLY={name} SEED={seed}" for name in known}
    with open(build / "bench.jsonl", "a") as log:
        for name, line in lines:
            log.write(json.dumps({"benchmark": name, "again": repeat[name], "machine": about} | line.record()) + "\n")
    print(table([line.cells() for _, line in lines]))
    print("\n" + ", ".join(f"{key.replace('_', ' ')}: {value}" for key, value in about.items()))
    print("again: " + "; ".join(repeat[name] for name in dict.fromkeys(name for name, _ in lines)))
    return 0


sys.exit(main())
