"""`make soak`: long loops with a seed for each round, for as many minutes as SOAK_MINUTES says.

SEED=N begins with that seed, ROUNDS=N ends after so many; ONLY=NAME leaves out the others: grammar, tests, points,
conformance, kills, site.
"""

import collections
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

from case import Case
import site_jobs
from kills import Undisturbed, SoakFailure, play

CASES = 200_000
TESTS = pathlib.Path(__file__).resolve().parents[2] / "tests"


def grammar(_: float) -> int:
    """The directives' grammar on random texts."""
    environment = os.environ | {"PROPTEST_CASES": os.environ.get("PROPTEST_CASES", str(CASES))}
    words = ["cargo", "test", "--release", "--locked", "-p", "forebay-directive", "--test", "properties"]
    print(f"grammar: {environment['PROPTEST_CASES']} texts for each property", flush=True)
    status = subprocess.run(words, env=environment).returncode
    if status != 0:
        print("grammar: FAILED; the text above is the shortest found, make it a test", file=sys.stderr)
    return int(status != 0)


def kills(minutes: float) -> int:
    """Kills at random moments. Goes on after a failure: the list of seeds is the result."""
    forebay = pathlib.Path(os.environ["FOREBAY_BUILD"]) / "bin" / "forebay"
    first = int(os.environ.get("SEED") or random.SystemRandom().randrange(10**6))
    rounds = int(os.environ.get("ROUNDS") or 10**9)
    undisturbed, met, failed = Undisturbed(forebay), collections.Counter(), []
    print(f"kills: for {minutes:g} minutes, seeds from {first}", flush=True)
    deadline = time.monotonic() + minutes * 60
    for seed in range(first, first + rounds):
        if time.monotonic() > deadline:
            break
        case = Case.of(seed)
        try:
            met[play(forebay, case, undisturbed)] += 1
        except SoakFailure as error:
            failed.append(seed)
            print(
                f"\nseed {seed} FAILED: {error}\n{case}\nagain: make soak ONLY=kills SEED={seed} ROUNDS=1\n", flush=True
            )
    where = ", ".join(f"{word}: {count}" for word, count in met.most_common())
    print(f"kills: {met.total()} rounds as promised ({where}); {len(failed)} failed {failed or ''}")
    return int(bool(failed))


def tests(_: float) -> int:
    """The tests that `make test` leaves out, JOBS at a time."""
    print("tests: those with the mark soak", flush=True)
    jobs, seed = os.environ.get("JOBS") or "5", os.environ.get("SEED")
    words = [sys.executable, "-m", "pytest", "-q", "-m", "soak", "-n", jobs, "--dist", "loadgroup"]
    # Those of files with loops are among the points.
    left_out = [] if os.environ.get("ONLY") else [f"--ignore={path}" for path in looping_files()]
    seeded = [f"--randomly-seed={seed}"] if seed else []
    return subprocess.run([*words, *seeded, *left_out, TESTS]).returncode


def looping_files() -> list[pathlib.Path]:
    """Files of tests that EVERY_POINT makes longer."""
    looping = re.compile(r"\b(points|few|kill_at_each_syscall)\(|EVERY_POINT")
    return [path for path in sorted(TESTS.rglob("test_*.py")) if looping.search(path.read_text())]


def points(_: float) -> int:
    """Kills, stops and holds at every system call, of which `make test` takes three."""
    files = looping_files()
    print(f"points: {len(files)} files of tests", flush=True)
    status = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *files], env=os.environ | {"EVERY_POINT": "1"}
    ).returncode
    words = ["cargo", "test", "--locked", "-p", "forebay-host", "--test", "close_watch"]
    return int((status or subprocess.run(words, env=os.environ | {"SOAK_ROUNDS": "3000"}).returncode) != 0)


def conformance(_: float) -> int:
    """What a file system promises across nodes, 1,000 times each: two processes on one directory in memory."""
    forebay = pathlib.Path(os.environ["FOREBAY_BUILD"]) / "bin" / "forebay"
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        words = [forebay, "__conformance", "run", "--on", forebay, "--on", forebay, "--repetitions", "1000", directory]
        print("conformance: 1,000 repetitions, some minutes", flush=True)
        return subprocess.run(words).returncode


def site(minutes: float) -> int:
    """Jobs with burst buffers of a site while its daemons are killed; ROUNDS jobs, 2,000 by default."""
    build = pathlib.Path(os.environ["FOREBAY_BUILD"])
    seed = int(os.environ.get("SEED") or random.SystemRandom().randrange(10**6))
    jobs = int(os.environ.get("ROUNDS") or 2000)
    print(f"site: {jobs} jobs, {minutes:g} minutes at most, seed {seed}", flush=True)
    found = site_jobs.play(build, jobs, minutes, seed)
    print("site: " + ", ".join(f"{word}: {count}" for word, count in found.items()))
    return int(any(found[word] for word in ("lost or wrong", "stranded", "leftovers")))


def main() -> int:
    only = os.environ.get("ONLY")
    loops = {
        "grammar": grammar,
        "tests": tests,
        "points": points,
        "conformance": conformance,
        "kills": kills,
        "site": site,
    }
    if only and only not in loops:
        print(f"error: ONLY={only}: there are {', '.join(loops)}", file=sys.stderr)
        return 2
    left_minutes = float(os.environ.get("SOAK_MINUTES") or 10)
    status = 0
    for name, loop in loops.items():
        if only in (None, "", name):
            began = time.monotonic()
            status |= loop(max(left_minutes, 1))
            if loop not in (tests, points):  # they take the time that they need
                left_minutes -= (time.monotonic() - began) / 60
    return status


sys.exit(main())
