"""What came of a play, as numbers and as a course over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from forebay.simulate.jobs import Jobs
from forebay.simulate.play import SimulatedJobs
from forebay.simulate.site import Pool

if TYPE_CHECKING:
    import numpy as np

#: Points of a course over time: more than a picture shows.
COURSE_POINTS = 240


class Outcome(msgspec.Struct, kw_only=True):
    """Numbers of one play, or means over several. A wait lasts from the submission to the computation."""

    jobs: float  # that were played to their end
    too_large_for_pool: float  # jobs that were rejected
    too_large_for_machine: float  # jobs that were rejected
    wait_mean_s: float
    wait_median_s: float
    wait_p95_s: float  # 95 of 100 jobs waited less
    wait_max_s: float
    stage_ins: float
    stage_ins_hidden: float  # complete before there were nodes for the job
    pool_used: float  # mean share of the granules that is allocated
    pool_used_max: float
    pool_rounded_up: float  # share of the allocated space that no job asked for
    doubled: float  # jobs of which a server had more than one granule, which makes it their bottleneck
    nodes_used: float  # mean share of the nodes that is allocated
    staging_node_hours: float  # in which nodes waited for staging
    waiting_jobs_mean: float  # submitted, and not yet computing
    span_s: float  # from the first submission to the end of the last job

    @property
    def rejected(self) -> float:
        """Jobs that ask for more than there is."""
        return self.too_large_for_pool + self.too_large_for_machine


class Course(msgspec.Struct, kw_only=True):
    """Means of equal parts of the span."""

    part_s: float  # length of a part
    pool_used: list[float]
    nodes_used: list[float]
    waiting_jobs: list[float]


def outcome(jobs: Jobs, pool: Pool, nodes: int, played: SimulatedJobs) -> Outcome:
    """The numbers of a play; those of jobs are 0 if none was played."""
    import numpy as np

    done = ~(played.too_large_for_pool | played.too_large_for_machine)
    waits = (played.start_s - played.submit_s)[done]
    waits = waits if len(waits) else np.zeros(1)
    staged = done & (jobs.stage_in_bytes > 0)
    allocated = float(played.granules[done].sum()) * pool.granularity_bytes
    idle_s = ((played.nodes_held_s - played.computed_s) * jobs.nodes)[done]
    first_s = float(played.submit_s[0])
    span_s = float(np.nanmax(played.end_s)) - first_s if done.any() else 0.0
    return Outcome(
        jobs=int(done.sum()),
        too_large_for_pool=int(played.too_large_for_pool.sum()),
        too_large_for_machine=int((played.too_large_for_machine & ~played.too_large_for_pool).sum()),
        wait_mean_s=float(waits.mean()),
        wait_median_s=float(np.median(waits)),
        wait_p95_s=float(np.quantile(waits, 0.95)),
        wait_max_s=float(waits.max()),
        stage_ins=int(staged.sum()),
        stage_ins_hidden=int((played.hidden & staged).sum()),
        pool_used=_mean(played, played.used_granules, span_s) / pool.granules,
        pool_used_max=float(played.used_granules.max(initial=0.0)) / pool.granules,
        pool_rounded_up=1 - float(jobs.capacity_bytes[done].sum()) / allocated if allocated else 0.0,
        doubled=int((played.doubled & done).sum()),
        nodes_used=_mean(played, played.used_nodes, span_s) / nodes,
        staging_node_hours=max(0.0, float(idle_s.sum())) / 3600,
        waiting_jobs_mean=_mean(played, played.not_started, span_s),
        span_s=span_s,
    )


def _mean(played: SimulatedJobs, values: np.ndarray, span_s: float) -> float:
    """Over time: each value holds until the next change."""
    import numpy as np

    if span_s <= 0 or len(values) < 2:
        return 0.0
    return float((values[:-1] * np.diff(played.changed_s)).sum()) / span_s


def course(pool: Pool, nodes: int, played: SimulatedJobs) -> Course:
    """How full pool and machine were over time."""
    import numpy as np

    if not len(played.changed_s):
        return Course(part_s=0.0, pool_used=[], nodes_used=[], waiting_jobs=[])
    edges = np.linspace(played.changed_s[0], played.changed_s[-1], COURSE_POINTS + 1)
    part_s = float(edges[1] - edges[0])

    def parts(values: np.ndarray, whole: float) -> list[float]:
        steps = np.concatenate([[0.0], np.cumsum(values[:-1] * np.diff(played.changed_s))])
        return (np.diff(np.interp(edges, played.changed_s, steps)) / max(part_s, 1e-9) / whole).tolist()

    return Course(
        part_s=part_s,
        pool_used=parts(played.used_granules, pool.granules),
        nodes_used=parts(played.used_nodes, nodes),
        waiting_jobs=parts(played.not_started, 1.0),
    )
