"""How close searches come to the best: seeded searches replayed on recorded grids, with noise added.

Each strategy by its own rules: `tpe` with anchors, repeats and the final round that `forebay tune` has, the others
with one run for each configuration, of which the fastest wins. What is counted is the grid's time of the choice over
the grid's best, and how often a recommended setting was slower than the default by more than 2 %.
"""

import concurrent.futures
import json
import os
import pathlib
import statistics

from forebay.tune.model import key
from searching.grid import Grid, read
from searching.play import NOISES, chosen

GRIDS = pathlib.Path(os.environ.get("GRIDS") or pathlib.Path(__file__).parent / "grids")
RESULTS = "searches.json"
STRATEGIES = ("tpe", "greedy", "random")
RUNS = (12, 20, 40)
SEEDS = 40
PROCESSES = 2
#: A choice that is slower than the default by more than this is a wrong recommendation.
WORSE = 1.02
HEAD = ["noise", "runs", *(f"{name}: median (90 %), worse" for name in STRATEGIES)]

#: A search: grid, strategy, noise, runs, seed.
Case = tuple[str, str, str, int, int]
_grids: dict[str, Grid] = {}


def _load() -> None:
    if "FOREBAY_BUILD" in os.environ:
        os.environ.setdefault("FOREBAY_PROGRAM", os.environ["FOREBAY_BUILD"] + "/bin/forebay")
    _grids.update({path.stem: read(path) for path in sorted(GRIDS.glob("*.jsonl"))})


def played(case: Case) -> tuple[float, bool, bool]:
    """Time of the choice over the best; whether it is worse than the default; whether the default was kept."""
    name, strategy, noise, runs, seed = case
    grid = _grids[name]
    choice, _ = chosen(grid, strategy, NOISES[noise], runs, seed)
    seconds = grid.seconds[key(choice)]
    return seconds / grid.best_s, seconds > WORSE * grid.default_s, not choice


def summary(results: list[tuple[float, bool, bool]]) -> dict:
    """Median, 90th percentile and shares."""
    ratios = sorted(ratio for ratio, _, _ in results)
    return {
        "searches": len(results),
        "median": round(statistics.median(ratios), 3),
        "p90": round(statistics.quantiles(ratios, n=10)[-1], 3),
        "worse": round(sum(worse for _, worse, _ in results) / len(results), 4),
        "kept_default": round(sum(kept for _, _, kept in results) / len(results), 3),
    }


def run(seed: int, seeds: int) -> list[dict]:
    """All searches; one summary for each noise, number of runs and strategy, over all grids and for each."""
    _load()
    kinds = [(noise, runs, strategy) for noise in NOISES for runs in RUNS for strategy in STRATEGIES]
    lines = []
    with concurrent.futures.ProcessPoolExecutor(PROCESSES, initializer=_load) as pool:
        for noise, runs, strategy in kinds:
            cases = [(name, strategy, noise, runs, seed + number) for name in _grids for number in range(seeds)]
            results = dict(zip(cases, pool.map(played, cases, chunksize=4), strict=True))
            line = {"noise": noise, "runs": runs, "strategy": strategy} | summary(list(results.values()))
            line["grids"] = {
                name: summary([result for case, result in results.items() if case[0] == name]) for name in _grids
            }
            lines.append(line)
            print(f"searches: {noise} {runs} runs {strategy}: {line['median']} ({line['p90']})", flush=True)
    return lines


def table(lines: list[dict]) -> str:
    """In Markdown, for the README."""
    cells = {(line["noise"], line["runs"], line["strategy"]): line for line in lines}
    rows = [HEAD, ["---"] * len(HEAD)]
    for noise in NOISES:
        for runs in RUNS:
            found = [cells[noise, runs, strategy] for strategy in STRATEGIES]
            rows.append([noise, str(runs), *(f"{c['median']:.2f} ({c['p90']:.2f}), {c['worse']:.1%}" for c in found)])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def main() -> int:
    """Prints the table and writes the data file beside the grids."""
    seed, seeds = int(os.environ.get("SEED") or 100_000), int(os.environ.get("SEEDS") or SEEDS)
    lines = run(seed, seeds)
    again = f"make bench ONLY=searches SEED={seed} SEEDS={seeds}"
    (GRIDS / RESULTS).write_text(json.dumps({"again": again, "worse_than": WORSE, "lines": lines}, indent=1) + "\n")
    print(table(lines) + f"\n\n{len(_grids)} grids, {seeds} seeds each; again: {again}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
