"""Plays the same jobs with several pools and policies, and finds the smallest pool that is enough."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import TYPE_CHECKING

import msgspec

from forebay.simulate.errors import SimulationError
from forebay.simulate.outcome import Course, Outcome, course, outcome
from forebay.simulate.play import simulate_jobs
from forebay.simulate.policies import Policy
from forebay.simulate.site import Pool, Site, make_pool

if TYPE_CHECKING:
    from forebay.simulate.jobs import Jobs

#: Without another limit, a pool is enough if its mean wait is within so much of the shortest one.
ENOUGH = 1.05


class Row(msgspec.Struct, kw_only=True):
    """One pool with one policy."""

    policy: Policy
    asked_bytes: int  # size of the pool as it was asked for
    pool_bytes: int  # in whole granules on each server
    granularity_bytes: int
    granules: int
    outcome: Outcome  # means over the repetitions
    wait_mean_low_s: float | None  # 95 % confidence interval of the mean wait; null for one repetition
    wait_mean_high_s: float | None


class Combination(msgspec.Struct, frozen=True, kw_only=True):
    """A pool and a policy to try."""

    asked_bytes: int
    pool: Pool
    policy: Policy


def combinations(
    site: Site, sizes_bytes: list[int], granularities_bytes: list[int], policies: list[Policy]
) -> list[Combination]:
    """All pools with all policies, in the order of the arguments. SimulationError if a pool cannot be."""
    found = []
    for size, granularity, policy in product(sizes_bytes, granularities_bytes, policies):
        try:
            pool = make_pool(size, granularity, site.pool.servers, site.pool.server_bytes_per_s)
        except ValueError as error:
            raise SimulationError(
                str(error), "give larger pools, fewer servers, or a finer granularity"
            ) from error
        found.append(Combination(asked_bytes=size, pool=pool, policy=policy))
    return found


def sweep(
    site: Site,
    tried: list[Combination],
    jobs_of: Callable[[int], Jobs],
    repetitions: int,
    wait_max_s: float | None,
    notify: Callable[[str], None],
) -> tuple[list[Row], int | None, Course | None]:
    """Plays all. Returns rows, the number of the one that is enough, and its course."""
    jobs = [jobs_of(repetition) for repetition in range(repetitions)]
    rows, courses = [], []
    for number, one in enumerate(tried, start=1):
        found = []
        for repetition, of in enumerate(jobs):
            played = simulate_jobs(of, one.pool, site.nodes, site.file_system_bytes_per_s, one.policy)
            found.append(outcome(of, one.pool, site.nodes, played))
            if repetition == 0:
                courses.append(course(one.pool, site.nodes, played))
        rows.append(_row(one, found))
        notify(f"{number} of {len(tried)}: {one.policy}, {one.pool.granules} granules")
    enough = smallest_that_is_enough(rows, wait_max_s)
    return rows, enough, None if enough is None else courses[enough]


def _row(one: Combination, found: list[Outcome]) -> Row:
    means = {name: sum(getattr(of, name) for of in found) / len(found) for name in Outcome.__struct_fields__}
    low, high = _interval([of.wait_mean_s for of in found])
    return Row(
        policy=one.policy,
        asked_bytes=one.asked_bytes,
        pool_bytes=one.pool.size_bytes,
        granularity_bytes=one.pool.granularity_bytes,
        granules=one.pool.granules,
        outcome=Outcome(**means),
        wait_mean_low_s=low,
        wait_mean_high_s=high,
    )


def _interval(values: list[float]) -> tuple[float | None, float | None]:
    """Student's 95 % confidence interval of the mean."""
    if len(values) < 2:
        return None, None
    from statistics import fmean, stdev

    from scipy.special import stdtrit

    count, middle = len(values), fmean(values)
    half = float(stdtrit(count - 1, 0.975)) * stdev(values) / count**0.5
    return middle - half, middle + half


def smallest_that_is_enough(rows: list[Row], wait_max_s: float | None) -> int | None:
    """Of the rows that reject the fewest jobs and whose mean wait is short enough: the smallest pool.

    Without `wait_max_s`, waits within ENOUGH times the shortest one are short enough. Of rows of one size and
    of waits within ENOUGH, the one whose nodes wait least for staging. None if there is no such row.
    """
    played = [row for row in rows if row.outcome.jobs > 0]
    least = min((row.outcome.rejected for row in played), default=0.0)
    fair = [row for row in played if row.outcome.rejected == least]
    shortest_s = min((row.outcome.wait_mean_s for row in fair), default=0.0)
    limit_s = ENOUGH * shortest_s if wait_max_s is None else wait_max_s
    near = [row for row in fair if row.outcome.wait_mean_s <= limit_s]
    smallest_bytes = min((row.pool_bytes for row in near), default=0)
    of_size = [row for row in near if row.pool_bytes == smallest_bytes]
    if not of_size:
        return None
    limit_s = ENOUGH * min(row.outcome.wait_mean_s for row in of_size)
    alike = [row for row in of_size if row.outcome.wait_mean_s <= limit_s]
    return rows.index(min(alike, key=lambda row: row.outcome.staging_node_hours))
