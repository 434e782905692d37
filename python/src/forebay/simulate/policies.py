"""Which jobs may start: from the queue, what is free, and when running jobs are expected to end.

`fifo`: in the order of submission; a job that does not fit holds up all others.
`backfill`: later jobs start if they do not delay the nodes of the first one (EASY backfilling). The pool is
    not reserved, so that later jobs may take the granules that the first one waits for.
`reserve`: the same, but nodes and granules of the first job are both reserved.
`stage-ahead`: as `backfill` for nodes. A job gets its granules and stages in while it waits for nodes, and
    stages out after it has returned them, as DataWarp does under Slurm.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import OrderedDict
from collections.abc import Iterator
from itertools import islice
from typing import Literal, NamedTuple, get_args

Policy = Literal["fifo", "backfill", "reserve", "stage-ahead"]
POLICIES: tuple[Policy, ...] = get_args(Policy)
#: Jobs of the queue that are looked at for backfilling, as the schedulers of sites limit it.
BACKFILL_JOBS_MAX = 100


class Request(NamedTuple):
    """What a job asks for."""

    number: int
    nodes: int
    granules: int
    expected_s: float  # that it holds its nodes, by its limit


class Running(NamedTuple):
    """What a running job returns, and when at the latest, as far as its limit says."""

    expected_end_s: float
    number: int
    nodes: int
    granules: int


class Free(NamedTuple):
    """What no job has."""

    nodes: int
    granules: int

    def has(self, request: Request) -> bool:
        """Whether a job fits."""
        return request.nodes <= self.nodes and request.granules <= self.granules

    def without(self, request: Request) -> Free:
        """After a job has started."""
        return Free(self.nodes - request.nodes, self.granules - request.granules)


class Queue:
    """Waiting jobs in the order of submission, and those that run."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.waiting: OrderedDict[int, Request] = OrderedDict()
        self.running: list[Running] = []

    def started(self, job: Running) -> None:
        """The job is no longer in the queue."""
        del self.waiting[job.number]
        insort(self.running, job)

    def ended(self, job: Running) -> None:
        """It has returned its nodes."""
        del self.running[bisect_left(self.running, job)]

    def next_job(self, free: Free, now_s: float) -> Request | None:
        """A job that may start now. To be called again after it has started."""
        if not self.waiting:
            return None
        first = next(iter(self.waiting.values()))
        if free.has(first):
            return first
        if self.policy == "fifo" or len(self.waiting) == 1 or free.nodes == 0:
            return None
        return next(self._backfilled(first, free, now_s), None)

    def _backfilled(self, first: Request, free: Free, now_s: float) -> Iterator[Request]:
        """Jobs that fit now, and neither delay the first one nor take what it will need."""
        has_pool = self.policy == "reserve"
        begins_s, spare = self._reservation(first if has_pool else first._replace(granules=0), free, now_s)
        for one in islice(self.waiting.values(), 1, BACKFILL_JOBS_MAX + 1):
            if one.nodes > free.nodes or one.granules > free.granules:
                continue
            leaves_spare = one.nodes <= spare.nodes and (not has_pool or one.granules <= spare.granules)
            if leaves_spare or now_s + one.expected_s <= begins_s:
                yield one

    def _reservation(self, first: Request, free: Free, now_s: float) -> tuple[float, Free]:
        """When the first job can start at the latest, and what is spare then.

        The pool may be held by jobs that stage; then the time is not known, and nothing is spare.
        """
        nodes, granules = free
        for job in self.running:
            nodes += job.nodes
            granules += job.granules
            if first.nodes <= nodes and first.granules <= granules:
                return max(job.expected_end_s, now_s), Free(nodes, granules).without(first)
        return now_s, Free(0, 0)
