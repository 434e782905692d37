"""How often to write a checkpoint: Young's and Daly's formulas with the rates of the model.

J. W. Young, A first order approximation to the optimum checkpoint interval, CACM 17 (1974) 530.
J. T. Daly, A higher order estimate of the optimum checkpoint interval for restart dumps, FGCS 22 (2006) 303.
Times in seconds.
"""

from __future__ import annotations

import math

import msgspec

from forebay.plan.errors import PlanError

_DAY_H = 24.0


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """When to write checkpoints to one storage, and what they cost."""

    storage: str
    kind: str  # of the storage
    write_s: float  # of one checkpoint
    restart_s: float  # reading it back
    young_s: float  # computing between two checkpoints, first order
    interval_s: float  # the same by Daly, and not shorter than the drain
    waste: float  # share of the machine's time for checkpoints, repeated work and restarts, from 0 to 1
    drain_s: float  # of one checkpoint to the parallel file system; 0 if it is written there
    drain_bytes_per_s_min: float  # the drain must be as fast as this to end before the next checkpoint
    is_drain_limiting: bool  # the drain makes the interval longer than Daly's
    servers: int  # OSTs, DataWarp nodes, or nodes with local storage, that a checkpoint is on
    lost_node_hours_per_day: float  # of compute nodes: checkpoints, repeated work and restarts
    storage_node_hours_per_day: float  # of capacity held between checkpoints, and of servers during a write

    @property
    def node_hours_per_day(self) -> float:
        """What the storage costs a job that runs for a day."""
        return self.lost_node_hours_per_day + self.storage_node_hours_per_day


def young(write_s: float, failure_s: float) -> float:
    """Young's interval: the square root of twice the write time, times the mean time between failures."""
    _check(write_s, failure_s)
    return math.sqrt(2 * write_s * failure_s)


def daly(write_s: float, failure_s: float) -> float:
    """Daly's interval of computing between two checkpoints; for slow writes the time between failures."""
    _check(write_s, failure_s)
    if write_s >= 2 * failure_s:
        return failure_s
    ratio = write_s / (2 * failure_s)
    return math.sqrt(2 * write_s * failure_s) * (1 + math.sqrt(ratio) / 3 + ratio / 9) - write_s


def waste(
    interval_s: float, write_s: float, restart_s: float, failure_s: float, lost_s: float = 0.0
) -> float:
    """Share of time that is not progress (Daly's complete model), from 0 to 1.

    `lost_s` is work before the last checkpoint that a failure destroys as well: it was not drained yet.
    """
    failures = math.expm1(min(700.0, (interval_s + write_s) / failure_s))  # of one interval, expected
    # Expected time for one interval of progress: M e^(R/M) (e^((tau + delta)/M) - 1), and the lost work.
    expected = failures * (failure_s * math.exp(min(700.0, restart_s / failure_s)) + lost_s)
    return 1 - interval_s / max(expected, interval_s)


def plan_interval(
    storage: str,
    *,
    kind: str,
    total_bytes: float,
    write_s: float,
    restart_s: float,
    failure_s: float,
    nodes: int,
    servers: int,
    held_nodes: float = 0.0,
    working_nodes: float = 0.0,
    drain_s: float = 0.0,
    survives_node_loss: bool = True,
) -> Interval:
    """The interval for one storage. A drain must end before the next checkpoint begins to replace it.

    A checkpoint that a lost node takes along counts only once it is drained: until then, a failure costs the
    time of the drain as well. The capacity of `held_nodes` storage nodes is held between checkpoints;
    `working_nodes` of them count while one is written.
    """
    best = daly(write_s, failure_s)
    interval = max(best, drain_s - write_s)
    lost = 0.0 if survives_node_loss else drain_s
    wasted = waste(interval, write_s, restart_s, failure_s, lost)
    of_storage = (held_nodes * interval + working_nodes * write_s) / (interval + write_s)
    return Interval(
        storage=storage,
        kind=kind,
        write_s=write_s,
        restart_s=restart_s,
        young_s=young(write_s, failure_s),
        interval_s=interval,
        waste=wasted,
        drain_s=drain_s,
        drain_bytes_per_s_min=total_bytes / (interval + write_s) if drain_s else 0.0,
        is_drain_limiting=interval > best,
        servers=servers,
        lost_node_hours_per_day=_DAY_H * nodes * wasted,
        storage_node_hours_per_day=_DAY_H * of_storage,
    )


def _check(write_s: float, failure_s: float) -> None:
    if not (0 < write_s < math.inf and 0 < failure_s < math.inf):
        raise PlanError(
            f"a checkpoint of {write_s} s and a failure every {failure_s} s", "give --size and --mtbf above 0"
        )
