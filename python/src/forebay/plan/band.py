"""How sure a prediction is: a band from the cross-validation, wider outside of what it covers.

The band is a factor either way. Nine of ten residuals of the cross-validation are within it. For each feature
that is outside of the published runs, the factor grows with the distance.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec

from forebay.plan.parameters import Fitted, Range
from forebay.plan.pattern import Pattern, Settings
from forebay.plan.units import size_text

#: Of the residuals, so many are within the band.
INSIDE = 0.9
#: Fewer residuals of a kind of storage do not make a band of their own.
RESIDUALS_MIN = 8
#: The logarithm of the factor grows by this for each doubling beyond the range. Several features add as
#: the sides of a box do: they are related.
LOG_PER_DOUBLING = math.log(1.15)
#: The same for a kind of storage or a setting without a published run.
LOG_UNKNOWN = math.log(1.5)
#: A larger factor says as much as that nothing is known.
FACTOR_MAX = 10.0

_NAMES = {
    "ranks": "ranks",
    "nodes": "nodes",
    "servers": "servers",
    "writers_per_server": "writing processes for each server",
    "request_bytes": "size of a request",
    "total_bytes": "data in total",
    "files": "files",
}


class Beyond(msgspec.Struct, frozen=True, kw_only=True):
    """A feature that is outside of the published runs."""

    known: Range
    low: float  # of the question
    high: float

    def text(self) -> str:
        """What was asked, and what is published."""
        name = self.known.feature
        asked, published = _span(name, self.low, self.high), _span(name, self.known.low, self.known.high)
        return f"{_NAMES[name]} {asked}, published {published}"


class Band(msgspec.Struct, frozen=True, kw_only=True):
    """A factor either way, and why it is not smaller."""

    factor: float
    beyond: list[Beyond]
    unknown: list[str]  # kinds of storage and settings without a published run

    @property
    def notes(self) -> list[str]:
        """What is outside of the calibrated range."""
        return notes_of([self])

    @property
    def is_inside(self) -> bool:
        """Whether published runs cover the question."""
        return not self.notes


def features(pattern: Pattern, settings: Settings) -> dict[str, float]:
    """What decides whether published runs are alike."""
    is_collective = pattern.access == "collective"
    writers = min(settings.aggregators, pattern.ranks) if is_collective else pattern.writers
    request = min(
        settings.stripe_bytes if pattern.access == "collective" else pattern.transfer_bytes,
        pattern.total_bytes,
    )
    found = {
        "ranks": pattern.ranks,
        "nodes": pattern.nodes,
        "servers": settings.servers,
        "writers_per_server": writers / settings.servers,
        "request_bytes": request,
        "total_bytes": pattern.total_bytes,
    }
    return found | ({"files": pattern.files} if pattern.access == "file-per-process" else {})


def band(kind: str, pattern: Pattern, settings: Settings, fitted: Fitted) -> Band:
    """The band of a prediction on a kind of storage."""
    of_kind = [abs(math.log(one.ratio)) for one in fitted.residuals if one.storage == kind]
    everything = [abs(math.log(one.ratio)) for one in fitted.residuals]
    logarithm = _quantile(of_kind if len(of_kind) >= RESIDUALS_MIN else everything)
    unknown = []
    ranges = {one.feature: one for one in fitted.ranges if one.storage == kind}
    if not ranges:
        unknown.append(f"no published run on storage of kind {kind} is in the calibration")
        logarithm += LOG_UNKNOWN
    beyond = [
        Beyond(known=ranges[name], low=value, high=value)
        for name, value in features(pattern, settings).items()
        if name in ranges and _doublings(value, ranges[name]) > 0
    ]
    logarithm += LOG_PER_DOUBLING * math.hypot(*(_doublings(one.low, one.known) for one in beyond))
    without_runs = _without_runs(pattern, settings)
    unknown += without_runs
    logarithm += LOG_UNKNOWN * len(without_runs)
    return Band(factor=min(FACTOR_MAX, math.exp(logarithm)), beyond=beyond, unknown=unknown)


def widest(bands: Iterable[Band]) -> Band:
    """The widest factor, and all reasons."""
    every = list(bands)
    return Band(
        factor=max(one.factor for one in every),
        beyond=[each for one in every for each in one.beyond],
        unknown=[each for one in every for each in one.unknown],
    )


def notes_of(bands: Iterable[Band]) -> list[str]:
    """What is outside of the calibrated range: a sentence for each feature, over all bands."""
    every = widest(bands)
    features: dict[str, Beyond] = {}
    for one in every.beyond:
        other = features.get(one.known.feature, one)
        features[one.known.feature] = Beyond(
            known=one.known, low=min(one.low, other.low), high=max(one.high, other.high)
        )
    return [*dict.fromkeys(every.unknown), *(one.text() for one in features.values())]


def _span(name: str, low: float, high: float) -> str:
    """`2.1 to 16.8 MB`: a unit that both have is written once."""
    first, last = _value_text(name, low), _value_text(name, high)
    if first == last:
        return first
    number, _, unit = first.partition(" ")
    return f"{number if unit == last.partition(' ')[2] else first} to {last}"


def _value_text(name: str, value: float) -> str:
    return (
        size_text(value) if name.endswith("_bytes") else f"{value:,.4g}" if value < 1000 else f"{value:,.0f}"
    )


def _without_runs(pattern: Pattern, settings: Settings) -> list[str]:
    found = []
    if pattern.is_interleaved and pattern.access == "independent":
        found.append("records of different ranks next to each other: no published run is in the calibration")
    if settings.cb_align != 2:
        found.append(f"CB_ALIGN {settings.cb_align}: no published run is in the calibration")
    if settings.data_sieving:
        found.append("data sieving: no published run is in the calibration")
    if settings.jobs > 1:
        found.append(f"{settings.jobs} jobs at the same time: no published run is in the calibration")
    return found


def _doublings(value: float, known: Range) -> float:
    return max(math.log2(known.low / value), math.log2(value / known.high), 0.0)


def _quantile(logarithms: list[float]) -> float:
    """The smallest residual that at least `INSIDE` of all do not exceed."""
    ordered = sorted(logarithms)
    return ordered[math.ceil(INSIDE * len(ordered)) - 1]
