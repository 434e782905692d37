"""Exhaustive grids, the truth that searches are judged on: `python bench/grid.py [NAME...]`, all without a name.

`--table` prints what those in bench/grids say.

A grid runs in one `forebay run --pfs-model`, so that all its runs see one emulated file system. Each run has a
directory of its own, below /dev/shm. What is measured goes to build/grids/NAME.runs.jsonl as it comes; begun
again, a grid goes on there. When all is there, bench/grids/NAME.jsonl is written, and beside it the record of a
default run, NAME.record. docs/development/benchmarks.md says what is in them.
"""

import contextlib
import datetime
import json
import os
import pathlib
import platform
import random
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

import msgspec
from grid_kernels import LAUNCHING, Grid, grids, rendered

from forebay.tune.model import Configuration, Machine, key

PROJECT = pathlib.Path(__file__).resolve().parents[1]
RESULTS = PROJECT / "bench" / "grids"
ENDING_S = 5.0
REPEATS = 2
#: Where two repeats differ by more than this, there is a third.
DIFFER = 0.10
#: What comes within this many times of the fastest is run so often: it is where the truth must be sharp.
NEAR, NEAR_REPEATS = 1.2, 5
#: What takes this many times the default is run once: how much worse it is does not matter.
SLOW = 3.0
ANCHOR_EVERY = 10
SEED = 1


class Runs:
    """What has been measured of one grid, in a file that grows by a line for each run."""

    def __init__(self, path: pathlib.Path):
        self.path = path
        self.of: dict[tuple, list[dict]] = {}
        if path.exists():
            for line in path.read_text().splitlines():
                self._keep(json.loads(line))

    def _keep(self, run: dict) -> None:
        self.of.setdefault(key(run["configuration"]), []).append(run)

    def add(self, run: dict) -> None:
        with self.path.open("a") as file:
            file.write(json.dumps(run) + "\n")
        self._keep(run)

    def seconds(self, configuration: Configuration) -> list[float]:
        """I/O seconds of the runs that ended by themselves and well."""
        return [run["io_s"] for run in self.of.get(key(configuration), []) if run["status"] == "ok"]

    def wanted(self, configuration: Configuration) -> bool:
        """Whether one more run is to be made."""
        runs, seconds = self.of.get(key(configuration), []), self.seconds(configuration)
        if not runs:
            return True
        if len(seconds) < len(runs) or min(seconds) > SLOW * statistics.median(self.seconds({})):
            return False
        if len(seconds) >= REPEATS and min(seconds) <= NEAR * self.fastest():
            return len(seconds) < NEAR_REPEATS
        return len(seconds) < REPEATS + (max(seconds) - min(seconds) > DIFFER * min(seconds))

    def fastest(self) -> float:
        return min(run["io_s"] for runs in self.of.values() for run in runs if run["status"] == "ok")


def one_run(grid: Grid, configuration: Configuration, build: pathlib.Path, place: pathlib.Path) -> dict:
    """Runs the kernel once in a fresh directory; `place` has its inputs."""
    hints, striping = rendered(configuration)
    directory = place / "run"
    directory.mkdir()
    try:
        if striping:
            subprocess.run(["lfs", "setstripe", *striping, str(directory)], check=True, capture_output=True)
        for name in (place / "inputs").iterdir():
            os.link(name, directory / name.name)
        preload = {"LD_PRELOAD": f"{idle(build)}:{os.environ.get('LD_PRELOAD', '')}"}
        environment = os.environ | LAUNCHING | preload | ({"MPICH_MPIIO_HINTS": hints} if hints else {})
        return measured(command(grid, build), directory, environment, grid.limit_s) | {"configuration": configuration}
    finally:
        shutil.rmtree(directory)


def idle(build: pathlib.Path) -> pathlib.Path:
    """The preload with which ranks that wait sleep (bench/idle.c)."""
    return build / "grids" / "libidle.so"


def make_idle(build: pathlib.Path) -> None:
    idle(build).parent.mkdir(exist_ok=True)
    strict = ["-O2", "-std=c11", "-D_XOPEN_SOURCE=700", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-shared", "-fPIC"]
    subprocess.run(["cc", *strict, "-o", str(idle(build)), str(PROJECT / "bench" / "idle.c")], check=True)


def command(grid: Grid, build: pathlib.Path) -> list[str]:
    program, *arguments = grid.words
    return ["mpiexec", "--oversubscribe", "-n", str(grid.ranks), str(build / "kernels" / program), *arguments]


def measured(words: list[str], directory: pathlib.Path, environment: dict[str, str], limit_s: float) -> dict:
    """`io_s` of the kernel's line, `job_s` of mpiexec, `status`: ok, limit or failed."""
    began = time.perf_counter()
    process = subprocess.Popen(
        words, cwd=directory, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        out, errors = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        end(process)
        return {"io_s": None, "job_s": round(time.perf_counter() - began, 4), "status": "limit"}
    job_s = round(time.perf_counter() - began, 4)
    if process.returncode != 0:
        return {"io_s": None, "job_s": job_s, "status": "failed", "reason": errors[-500:]}
    return {"io_s": json.loads(out.splitlines()[-1])["io_s"], "job_s": job_s, "status": "ok"}


def end(process: subprocess.Popen) -> None:
    """mpiexec ends its ranks when it is asked to; what it leaves behind goes with its process group."""
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.communicate(timeout=ENDING_S)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def rounds(grid: Grid, runs: Runs) -> Iterator[Configuration]:
    """What to run next, round by round, each in an order of its own, the default in between."""
    for number in range(NEAR_REPEATS):
        order = grid.configurations()
        random.Random(f"{SEED} {grid.name} {number}").shuffle(order)
        todo = [configuration for configuration in order if configuration and runs.wanted(configuration)]
        for position, configuration in enumerate(todo):
            if position % ANCHOR_EVERY == 0:
                yield {}
            yield configuration


def inside(grid: Grid, build: pathlib.Path, runs: Runs) -> None:
    """All runs, in the emulation that this process finds itself in."""
    for configuration in rounds(grid, runs):
        run = one_run(grid, configuration, build, pathlib.Path.cwd())
        if not pathlib.Path(os.environ["FOREBAY_PFS_STATE"]).exists():
            sys.exit("error: the state of the emulation was removed; begin again, it goes on from here")
        runs.add(run)
        done = sum(map(len, runs.of.values()))
        if done % 20 == 0:
            print(f"{grid.name}: {done} runs of {len(runs.of)} configurations", file=sys.stderr, flush=True)


def make(grid: Grid, build: pathlib.Path) -> None:
    """One grid, from the beginning or from where it was left."""
    began = time.monotonic()
    file = build / "grids" / f"{grid.name}.runs.jsonl"
    make_idle(build)
    with tempfile.TemporaryDirectory(prefix="forebay-grid-", dir="/dev/shm") as scratch:
        place = pathlib.Path(scratch)
        (place / "inputs").mkdir()
        prepare(grid, build, place / "inputs")
        python = [sys.executable, str(PROJECT / "bench" / "grid.py"), "--inside", grid.name]
        under_forebay(grid, build, place, f"#!/bin/bash\nexec {shlex.join(python)}\n")
        record(grid, build, place)
    runs = Runs(file)
    write(grid, runs)
    print(f"{grid.name}: {len(runs.of)} configurations, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)


def prepare(grid: Grid, build: pathlib.Path, directory: pathlib.Path) -> None:
    """The files that a run reads."""
    grid.write_inputs(directory)
    if grid.prepare:
        words = [*command(grid, build), *grid.prepare]
        subprocess.run(words, cwd=directory, env=os.environ | LAUNCHING, check=True, capture_output=True)


def under_forebay(grid: Grid, build: pathlib.Path, place: pathlib.Path, script: str) -> None:
    """Runs the script in `place` on the emulated file system; its record is below place/state."""
    (place / "job.sh").write_text(script)
    model = PROJECT / "machines" / f"{grid.model}.toml"
    words = [str(build / "bin" / "forebay"), "run", "--no-burst-buffer", "--time", "0", "--pfs-model", str(model)]
    environment = os.environ | {"FOREBAY_STATE": str(place / "state")}
    subprocess.run([*words, "job.sh"], cwd=place, env=environment, check=True)


def job_script(grid: Grid, build: pathlib.Path) -> str:
    """The default run as a user would write it down."""
    head = ["#!/bin/bash", f"#SBATCH --job-name={grid.name}", f"#SBATCH --ntasks={grid.ranks}"]
    return "\n".join([*head, *setup_lines(build), shlex.join(command(grid, build)), ""])


def setup_lines(build: pathlib.Path) -> list[str]:
    """Lines of a script before a kernel is launched."""
    exports = " ".join(f"{name}={value}" for name, value in LAUNCHING.items())
    return [f"export {exports}", f'export LD_PRELOAD="{idle(build)}:$LD_PRELOAD"']


def record(grid: Grid, build: pathlib.Path, place: pathlib.Path) -> None:
    """Keeps the record of a default run, from which rules and guesses can be computed."""
    shutil.rmtree(place / "state")
    for name in (place / "inputs").iterdir():
        os.link(name, place / name.name)
    under_forebay(grid, build, place, job_script(grid, build))
    (made,) = (place / "state" / "profiles").iterdir()
    kept = RESULTS / f"{grid.name}.record"
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)
    for path in [made / "job.json", *made.glob("step-*.json")]:
        text = path.read_text().replace(str(place), "/scratch").replace(str(build), "build")
        content = json.loads(text.replace(str(PROJECT), "forebay"))
        for of in (content, content.get("process") or {}):
            of.update({name: "laptop" for name in ("host", "user", "boot_id") if name in of})
        (kept / path.name).write_text(json.dumps(content, separators=(",", ":")) + "\n")


def write(grid: Grid, runs: Runs) -> None:
    """The final form: a head, then a line for each configuration, in the order of the grid."""
    lines = [json.dumps(head(grid, runs))]
    for configuration in grid.configurations():
        of = runs.of[key(configuration)]
        well = [run for run in of if run["status"] == "ok"]
        status = "ok" if well else of[0]["status"]
        row = {"seconds": [run["io_s"] for run in well], "job_s": [run["job_s"] for run in of], "status": status}
        lines.append(json.dumps({"configuration": configuration} | row))
    (RESULTS / f"{grid.name}.jsonl").write_text("\n".join(lines) + "\n")


def head(grid: Grid, runs: Runs) -> dict:
    kept = RESULTS / f"{grid.name}.record"
    mpi = json.loads(next(kept.glob("step-*.json")).read_text())["mpi"]
    machine = Machine(ranks=grid.ranks, nodes=1, mpi=mpi, stripe_targets=targets(grid))
    version = subprocess.run(["git", "-C", str(PROJECT), "describe", "--always"], capture_output=True, text=True)
    return {
        "grid": 1,
        "kernel": grid.kernel,
        "model": grid.model,
        "ranks": grid.ranks,
        "command": shlex.join(command(grid, pathlib.Path("build"))),
        "made_by": f"make grids ONLY={grid.name}",
        "machine": msgspec.to_builtins(machine),
        "parameters": msgspec.to_builtins(grid.parameters()),
        "acts": msgspec.to_builtins(grid.acts),
        "guesses": [],
        "record": kept.name,
        "spread": spread(runs),
        "limit_s": grid.limit_s,
        "ranks_that_wait": "sleep (bench/idle.c)",
        "seed": SEED,
        "date": datetime.date.today().isoformat(),
        "cores": os.cpu_count(),
        "linux": ".".join(platform.release().split(".")[:2]),
        "forebay": version.stdout.strip(),
        "load": round(os.getloadavg()[2], 1),
    }


def targets(grid: Grid) -> int:
    text = (PROJECT / "machines" / f"{grid.model}.toml").read_text()
    return int(msgspec.toml.decode(text)["targets"]["count"]["value"])


def spread(runs: Runs) -> dict:
    """How much repeats differ: the default's runs by their quartiles, others by largest less least, over the median."""
    anchors = runs.seconds({})
    low, median, high = statistics.quantiles(anchors, n=4)
    others = [runs.seconds(dict(configuration)) for configuration in runs.of if configuration]
    ranges = [(max(s) - min(s)) / statistics.median(s) for s in others if len(s) > 1]
    return {
        "default_runs": len(anchors),
        "default_iqr_over_median": round((high - low) / median, 3),
        "range_over_median": {
            "median": round(statistics.median(ranges), 3),
            "p90": round(statistics.quantiles(ranges, n=10)[8], 3),
        },
    }


def table() -> str:
    """What the files say, in Markdown, so that it can go into a document as it is."""
    lines = [
        "| grid | configurations | default, s | best, s | times as fast | slowest, s | repeats differ by | the best |"
    ]
    lines.append("|---|---|---|---|---|---|---|---|")
    for grid in grids():
        path = RESULTS / f"{grid.name}.jsonl"
        if path.exists():
            lines.append(f"| {grid.name} | {' | '.join(cells(path))} |")
    return "\n".join(lines)


def cells(path: pathlib.Path) -> list[str]:
    head, *rows = map(json.loads, path.read_text().splitlines())
    default, best = rows[0], min((row for row in rows if row["seconds"]), key=lambda row: min(row["seconds"]))
    default_s, best_s = min(default["seconds"]), min(best["seconds"])
    ended = any(row["status"] == "limit" for row in rows)
    slowest = f"> {head['limit_s']:.0f}" if ended else f"{max(min(row['seconds']) for row in rows):.2f}"
    settings = ", ".join(f"{name}={value}" for name, value in best["configuration"].items()) or "the default"
    differ = f"{head['spread']['range_over_median']['median']:.0%}"
    figures = [f"{default_s:.2f}", f"{best_s:.2f}", f"{default_s / best_s:.2f}", slowest, differ]
    return [str(len(rows)), *figures, f"`{settings}`"]


def main(words: list[str]) -> int:
    if words == ["--table"]:
        print(table())
        return 0
    build = pathlib.Path(os.environ["FOREBAY_BUILD"])
    known = {grid.name: grid for grid in grids()}
    names = [word for word in words if word != "--inside"]
    if unknown := [name for name in names if name not in known]:
        print(f"error: {', '.join(unknown)}: there are {', '.join(known)}", file=sys.stderr)
        return 2
    if "--inside" in words:
        inside(known[names[0]], build, Runs(build / "grids" / f"{names[0]}.runs.jsonl"))
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that the directory goes
    for name in names or known:
        make(known[name], build)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
