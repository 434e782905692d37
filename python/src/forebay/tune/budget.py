"""What a tuning may cost: runs, minutes, node-hours. Each that is given is a hard limit."""

from __future__ import annotations

import re
import time

import msgspec

from forebay.tune.errors import TuneError

RUNS_DEFAULT = 30
_TEXT = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([a-z-]*)")
_UNITS_S = {"s": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0}
_RUNS = ("", "run", "runs")
_NODE_HOURS = ("nh", "node-hour", "node-hours")
#: A run is begun only if so many times the default's longest run fits into what is left. So a run that is
#: ended because nothing is left was slower than the default, and no candidate.
ROOM = 1.5
#: A job that ignores SIGTERM at its time limit is killed after so long.
GRACE_S = 10.0


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a whole study; None: no such limit."""

    runs: int | None = None
    seconds: float | None = None
    node_hours: float | None = None

    def seconds_max(self, nodes: int) -> float | None:
        """Minutes and node-hours as one: node-hours last as long as the job's nodes let them."""
        limits_s = [] if self.seconds is None else [self.seconds]
        if self.node_hours is not None:
            limits_s.append(self.node_hours * 3600.0 / nodes)
        return min(limits_s, default=None)


def read_budget(texts: tuple[str, ...]) -> Budget:
    """From `20`, `20runs`, `30min`, `2h`, `1.5nh`, `1.5node-hours`; of several of a kind the least counts.

    None at all: RUNS_DEFAULT runs. Minutes or node-hours alone do not limit the runs. TuneError for others.
    """
    if not texts:
        return Budget(runs=RUNS_DEFAULT)
    kinds: dict[str, list[float]] = {"runs": [], "seconds": [], "node_hours": []}
    for text in texts:
        kind, amount = _limit(text)
        kinds[kind].append(amount)
    least = {kind: min(amounts) for kind, amounts in kinds.items() if amounts}
    if "runs" in least:
        least["runs"] = int(least["runs"])
    return Budget(**least)


def _limit(text: str) -> tuple[str, float]:
    match = _TEXT.fullmatch(text.strip().lower())
    hint = "20 or 20runs, 30min or 2h, 1.5nh (node-hours)"
    if match is None:
        raise TuneError(f"--budget {text}: neither runs, nor a time, nor node-hours", hint)
    amount, unit = float(match[1]), match[2]
    if amount == 0:
        raise TuneError(f"--budget {text}: nothing can be run with that", hint)
    if unit in _RUNS:
        if amount != int(amount):
            raise TuneError(f"--budget {text}: runs are whole", hint)
        return "runs", amount
    if unit in _NODE_HOURS:
        return "node_hours", amount
    if unit in _UNITS_S:
        return "seconds", amount * _UNITS_S[unit]
    raise TuneError(f"--budget {text}: the unit {unit} is not known", hint)


class Clock:
    """How much of a time is left, from now on."""

    def __init__(self, limit_s: float | None) -> None:
        self._ends_s = None if limit_s is None else time.monotonic() + limit_s

    def left_s(self) -> float | None:
        """None: no limit."""
        return None if self._ends_s is None else max(0.0, self._ends_s - time.monotonic())

    def for_run_s(self) -> float | None:
        """What a run may take, so that nothing is left of it at the end of the time. None: no limit."""
        left_s = self.left_s()
        return None if left_s is None else max(0.0, left_s - GRACE_S)


class Share(msgspec.Struct, frozen=True):
    """What one place may use of the budget."""

    runs: int | None  # more than there are
    clock: Clock
    is_extended: bool  # a plan that there is already gets as many more runs
