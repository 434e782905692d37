"""The score of IO500."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import msgspec

from forebay.bench.phases import PHASES


class Scores(msgspec.Struct, frozen=True):
    """The three numbers of a result; 0 where no phase of a group has a score."""

    bandwidth_gib_per_s: float  # geometric mean of the four phases of ior
    metadata_kiops: float  # geometric mean of the eight other phases, in thousands of operations a second
    total: float  # geometric mean of the two


def geometric_mean(values: Iterable[float]) -> float:
    """Of those above zero: a phase without a score does not count, as in IO500. 0 if there is none.

    Logarithms keep large values from overflowing.
    """
    logarithms = [math.log(value) for value in values if value > 0]
    return math.exp(math.fsum(logarithms) / len(logarithms)) if logarithms else 0.0


def scores(of_phases: Mapping[str, float]) -> Scores:
    """The means of scores by phase, in GiB/s and kIOPS. Phases that are not scored have no effect.

    Source: the score of the IO500 benchmark: sqrt(bandwidth * metadata), each a geometric mean.
    """
    means = {
        group: geometric_mean(of_phases.get(phase.name, 0.0) for phase in PHASES if phase.group == group)
        for group in ("bandwidth", "metadata")
    }
    total = math.sqrt(means["bandwidth"]) * math.sqrt(means["metadata"])
    return Scores(means["bandwidth"], means["metadata"], total)
