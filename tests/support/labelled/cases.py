"""The cases: what a run does, and so what a report has to say of it.

`expected` are the findings that name what slows the run. `also` is true as well, and need not be said. Every other
finding is wrong. A run without `expected` is healthy, or its I/O is too little to matter.

The cases that are held out were never used to choose a rule or a threshold.
"""

import pathlib
from collections.abc import Callable
from dataclasses import dataclass

from support.labelled import healthy, log_file, problems, problems_held_out

TESTS = pathlib.Path(__file__).parents[2]
#: Log -> what is true of it (their READMEs).
GENUINE = {
    "profiles/logs/mpiio_shared_cbdisable": (["collective-buffering-off"], []),
    "profiles/logs/mpiio_shared_default": (["few-aggregators"], []),
    "profiles/logs/mpiio_shared_tuned": ([], []),
    "profiles/logs/posix_fpp": ([], []),
    "profiles/logs/small_random": (["small-independent"], []),
    "profiles/logs/synthetic_from_wheel": ([], []),
    "profiles/labelled/ior_dfs": ([], []),
    "report/labelled/combined": (["read-again", "many-syncs"], []),
    "report/labelled/e3sm_io_heatmap_only": (["data-sieving"], []),
    "report/labelled/imbalanced-io": (["one-stripe"], []),
    "report/labelled/sample-badost": (["slow-target"], []),
    "report/labelled/snyder_fidgetspinnerB": (["stat-storm"], []),
}


@dataclass(frozen=True)
class Case:
    """`log` gives its Darshan log; a made up one is written into the directory."""

    name: str
    kind: str  # genuine, chosen or held out
    expected: frozenset[str]
    also: frozenset[str]
    log: Callable[[pathlib.Path], pathlib.Path]


def _made_up(module, kind):
    for name, make in vars(module).items():
        if getattr(make, "expected", None) is None:
            continue
        log = lambda folder, name=name, make=make: log_file.write(make(), folder / f"{name}.darshan")
        yield Case(name, "held out" if make.held_out else kind, make.expected, make.also, log)


def _genuine():
    for name, (expected, also) in GENUINE.items():
        log = lambda folder, name=name: TESTS / f"{name}.darshan"
        yield Case(name.rpartition("/")[2], "genuine", frozenset(expected), frozenset(also), log)


CASES = [
    *_genuine(),
    *_made_up(healthy, "chosen"),
    *_made_up(problems, "chosen"),
    *_made_up(problems_held_out, "held out"),
]
