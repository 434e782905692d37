"""Live searches: `forebay tune` itself on the kernels of the grids, held against what the grids say.

`python bench/live.py [NAME...]`: searches on these grids' kernel and model, else on each kernel with
lustre-small. RUNS (20) is the budget. A line of the table, and of build/live.jsonl, for each.
"""

import dataclasses
import json
import os
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile

import msgspec
from grid import PROJECT, RESULTS, command, job_script, make_idle, prepare, setup_lines
from grid_kernels import Grid, grids

from forebay.tune.model import Configuration, Run, Verdict, key

HEAD = [
    "kernel, model",
    "runs",
    "default, s of I/O",
    "tuned",
    "times as fast",
    "best of the grid",
    "over the best",
    "recommended",
]


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What one search came to. Seconds are medians of I/O seconds in the final round."""

    name: str
    runs: int
    recommended: Configuration
    default_s: float
    tuned_s: float
    grid_gain: float  # default over best, in the grid

    @property
    def gain(self) -> float:
        return self.default_s / self.tuned_s

    @property
    def over_best(self) -> float:
        """Below 1 where the search found something that the grid does not have."""
        return self.grid_gain / self.gain

    def cells(self) -> list[str]:
        settings = ", ".join(f"{name}={value}" for name, value in sorted(self.recommended.items())) or "the default"
        figures = [
            f"{figure:.2f}" for figure in (self.default_s, self.tuned_s, self.gain, self.grid_gain, self.over_best)
        ]
        return [self.name, str(self.runs), *figures, f"`{settings}`"]


def grid_gain(path: pathlib.Path) -> float:
    """How many times as fast as the default the best is, by a grid's file.

    Each by its fastest run: other work on the machine only ever adds to the emulated time.
    """
    rows = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    of = {key(row["configuration"]): min(row["seconds"]) for row in rows if row["status"] == "ok"}
    return of[()] / min(of.values())


def outcome(name: str, study: str, gain: float) -> Outcome:
    """From the text of a study file with one place (docs/explanation/tuner.md)."""
    lines = [json.loads(line) for line in study.splitlines()[1:]]
    runs = [msgspec.convert(line["run"], Run) for line in lines if "run" in line]
    verdict = msgspec.convert([line["verdict"]["verdict"] for line in lines if "verdict" in line][-1], Verdict)
    return Outcome(name, len(runs), verdict.recommended, median_s(runs, {}), median_s(runs, verdict.recommended), gain)


def median_s(runs: list[Run], configuration: Configuration) -> float:
    """Of the final round; of all runs where there was none."""
    good = [run for run in runs if run.status == "ok" and key(run.configuration) == key(configuration)]
    final = [run for run in good if run.phase == "final"]
    return statistics.median(run.io_s for run in final or good if run.io_s is not None)


def search(grid: Grid, build: pathlib.Path, budget_runs: int) -> Outcome:
    """One search, in a directory of its own below /dev/shm."""
    with tempfile.TemporaryDirectory(prefix="forebay-live-", dir="/dev/shm") as scratch:
        place = pathlib.Path(scratch)
        make_idle(build)
        prepare(grid, build, place)
        (place / "job.sh").write_text(job_script(grid, build))
        words = [str(build / "bin" / "forebay"), "tune", "--budget", str(budget_runs), "--on", "file-system"]
        words += ["--objective", "io", "--pfs-model", str(PROJECT / "machines" / f"{grid.model}.toml")]
        if grid.check:
            check = [*setup_lines(build), shlex.join([*command(grid, build), *grid.check])]
            words += ["--check", "\n".join(check)]
        environment = os.environ | {"FOREBAY_STATE": str(place / "state")}
        subprocess.run([*words, "job.sh"], cwd=place, env=environment, check=True, stdout=sys.stderr)
        study = (place / "job.tune" / "study.jsonl").read_text()
    return outcome(grid.name, study, grid_gain(RESULTS / f"{grid.name}.jsonl"))


def main(names: list[str]) -> int:
    build = pathlib.Path(os.environ["FOREBAY_BUILD"])
    known = {grid.name: grid for grid in grids()}
    if unknown := [name for name in names if name not in known]:
        print(f"error: {', '.join(unknown)}: there are {', '.join(known)}", file=sys.stderr)
        return 2
    line = lambda cells: "| " + " | ".join(cells) + " |"
    print(line(HEAD), line(["---"] * len(HEAD)), sep="\n")
    for name in names or [grid.name for grid in known.values() if grid.model == "lustre-small"]:
        found = search(known[name], build, int(os.environ.get("RUNS", "20")))
        with (build / "live.jsonl").open("a") as log:
            log.write(json.dumps(dataclasses.asdict(found)) + "\n")
        print(line(found.cells()), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
