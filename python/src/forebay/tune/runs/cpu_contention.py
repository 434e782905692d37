"""Who else used the processors during a run: what a series and its jobs did not use themselves."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Sequence

import psutil

#: A run is contaminated if others had so much more of the processors than in the usual run before it ...
EXCESS_MAX = 0.25
#: ... and little was left idle: where processors are free, others take nothing from the job.
BUSY_MIN = 0.9
#: So many runs tell what is usual on this machine.
USUAL_RUNS_MIN = 3


class CpuShare:
    """Shares of all processors of this machine since it was made, or since the last `read`."""

    def __init__(self, process_id: int) -> None:
        self._ours = [psutil.Process(process_id), psutil.Process()]
        self._before = self._now()

    def _now(self) -> tuple[float, float, float]:
        """Moment, busy seconds of all processors, seconds of our own processes and their ended children."""
        times = psutil.cpu_times()
        idle_s = times.idle + times.iowait
        used_s = 0.0
        for process in self._ours:
            own = process.cpu_times()
            used_s += own.user + own.system + own.children_user + own.children_system
        # guest time is part of user time already
        busy_s = sum(times) - idle_s - times.guest - times.guest_nice
        return time.monotonic(), busy_s, used_s

    def read(self) -> tuple[float, float]:
        """(share that others had, share that was busy), each 0 to 1."""
        now = self._now()
        elapsed_s, busy_s, own_s = (later - before for later, before in zip(now, self._before, strict=True))
        self._before = now
        capacity_s = elapsed_s * (os.cpu_count() or 1)
        if capacity_s <= 0:
            return 0.0, 0.0
        return _share((busy_s - own_s) / capacity_s), _share(busy_s / capacity_s)


def _share(value: float) -> float:
    return min(1.0, max(0.0, value))


def is_contaminated(foreign: float, busy: float, earlier: Sequence[float]) -> bool:
    """Whether others disturbed a run more than they disturb the runs here by and large.

    On a machine that is always busy that is the usual state, and repeating would not help.
    """
    if len(earlier) < USUAL_RUNS_MIN or busy < BUSY_MIN:
        return False
    return foreign > statistics.median(earlier) + EXCESS_MAX
