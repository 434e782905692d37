"""A whole simulation, from what the user asks to what it found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from forebay.quantities import counted
from forebay.simulate.errors import SimulationError
from forebay.simulate.outcome import Course
from forebay.simulate.policies import Policy
from forebay.simulate.site import Site
from forebay.simulate.sweep import Row, combinations, sweep

if TYPE_CHECKING:
    from forebay.simulate.jobs import Jobs

#: Plays of one simulation: more is a mistake, and would take hours.
PLAYS_MAX = 1000


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What the user asks."""

    site: Site
    past: Path | None  # a list of jobs, in place of those that the site describes
    jobs: int | None  # to draw, if not as many as the site says
    repetitions: int
    seed: int
    sizes_bytes: list[int]
    granularities_bytes: list[int]
    policies: list[Policy]
    wait_max_s: float | None


class Simulation(msgspec.Struct, kw_only=True):
    """What `forebay plan simulate` found."""

    forebay_simulation: int = 1  # version of this format
    site: str
    jobs: int
    jobs_from: str  # the list of past jobs, or the description of the site
    jobs_left_out: int  # of the list, because they cannot be read or did not run
    nodes: int
    servers: int
    seed: int
    repetitions: int
    rows: list[Row]
    wait_max_s: float | None  # mean wait that is short enough; null: within 5 % of the shortest one
    enough: int | None  # row of the smallest pool that is enough, from 0; null if none is
    course: Course | None  # of that row, in the first repetition
    notes: list[str]


class _Source(msgspec.Struct):
    """Where the jobs come from."""

    jobs_of: Callable[[int], Jobs]  # of a repetition
    count: int
    name: str
    left_out: int
    notes: list[str]


def simulate(request: Request, notify: Callable[[str], None]) -> Simulation:
    """Plays the jobs with each pool and policy. `notify` gets what is done. Raises SimulationError."""
    site = request.site
    tried = combinations(site, request.sizes_bytes, request.granularities_bytes, request.policies)
    plays = len(tried) * request.repetitions
    if plays > PLAYS_MAX:
        raise SimulationError(
            f"{plays} plays are more than {PLAYS_MAX}", "give fewer sizes, policies or repetitions"
        )
    source = _drawn(request) if request.past is None else _past(request.past, request)
    rows, enough, course = sweep(site, tried, source.jobs_of, request.repetitions, request.wait_max_s, notify)
    return Simulation(
        site=site.name,
        jobs=source.count,
        jobs_from=source.name,
        jobs_left_out=source.left_out,
        nodes=site.nodes,
        servers=site.pool.servers,
        seed=request.seed,
        repetitions=request.repetitions,
        rows=rows,
        wait_max_s=request.wait_max_s,
        enough=enough,
        course=course,
        notes=source.notes,
    )


def _drawn(request: Request) -> _Source:
    from forebay.simulate.jobs import draw_jobs

    drawn = request.site.workload
    if drawn is None:
        raise SimulationError(
            f"{request.site.name}: no jobs are described", "add a [workload], or name a list with --past"
        )
    count = request.jobs or drawn.jobs
    return _Source(
        lambda repetition: draw_jobs(drawn, count, request.seed, repetition),
        count,
        "the description of the site",
        0,
        [f"The seed is {request.seed}."],
    )


def _past(path: Path, request: Request) -> _Source:
    from forebay.simulate.past_jobs import read_past_jobs

    if request.jobs or request.repetitions > 1:
        raise SimulationError(
            f"{path} is a list of jobs, and --jobs and --repetitions are of drawn ones", "leave them out"
        )
    shares = request.site.past
    found = read_past_jobs(path, shares)
    notes = []
    if found.left_out:
        more = "; and so on" if found.left_out > len(found.reasons) else ""
        rows = f"{counted(found.left_out, 'row')} of {path} {'is' if found.left_out == 1 else 'are'}"
        notes.append(f"{rows} left out: {'; '.join(found.reasons)}{more}.")
    if not found.stages and not (shares.stage_in_share or shares.stage_out_share):
        notes.append(f"{path} does not say what jobs stage, and neither does [past]: nothing is staged.")
    return _Source(lambda _: found.jobs, len(found.jobs), str(path), found.left_out, notes)
