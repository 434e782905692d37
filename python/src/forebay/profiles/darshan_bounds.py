"""What a Darshan log can say: refuses the impossible before anything is computed from it.

A log is input that anybody may have made or damaged. Its header has no checksum.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from forebay.profiles import time_limits
from forebay.profiles.darshan_counters import SHARED
from forebay.profiles.darshan_messages import Binned, Log, Module, Record, Traced


def impossible(log: Log) -> str | None:
    """The first value that no run can have, in words; None if there is none."""
    return next(_of_header(log), None) or next(_of_modules(log), None)


def _of_header(log: Log) -> Iterator[str]:
    if not 1 <= log.ranks <= time_limits.RANKS_MAX:
        yield f"it says {log.ranks} processes"
    if not 0 <= log.wall_s <= time_limits.RUN_S_MAX:  # also refuses what is no number
        yield f"it says a run time of {log.wall_s:.6g} s"
    if not 0 <= log.started_unix_s <= time_limits.START_UNIX_S_MAX:
        yield f"it says a start {log.started_unix_s:.6g} s after 1970"


def _of_modules(log: Log) -> Iterator[str]:
    for name, module in log.modules.items():
        for one in _parts(module):
            first = SHARED if isinstance(one, Record) else 0
            if not first <= one.rank < log.ranks:
                yield f"module {name} has a record of rank {one.rank}, and the run had {log.ranks} ranks"
            seconds = _seconds(one, module.time_names)
            if not all(map(math.isfinite, seconds)):
                yield f"module {name} has a time that is no number"
            for time in seconds:
                if abs(time) > time_limits.SUM_S_MAX or 0 < abs(time) < time_limits.NOTHING_S:
                    yield f"module {name} has a time of {time:.6g} s"
            if isinstance(one, Binned) and (one.bin_s <= 0 or min([*one.read, *one.write], default=0) < 0):
                yield f"module {name} has spans of {one.bin_s:.6g} s, or negative numbers of bytes"


def _parts(module: Module) -> Iterator[Record | Traced | Binned]:
    yield from module.records
    yield from module.traced
    yield from module.binned


def _seconds(one: Record | Traced | Binned, names: list[str]) -> list[float]:
    """Times and moments; the names are those of a record's times."""
    if isinstance(one, Record):
        return [time for name, time in zip(names, one.times, strict=False) if "_VARIANCE_" not in name]
    if isinstance(one, Binned):
        return [one.bin_s]
    moments = [moved.seconds for moved in (one.read, one.write)]
    for moved in (one.read, one.write):
        moments += [moment for moment in (moved.first_s, moved.last_s) if moment is not None]
    return moments
