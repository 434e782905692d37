"""Fits the parameters to the published rows, and judges them by rows that they were not fitted to.

`python -m forebay.plan.calibration` fits, cross-validates, and writes data/parameters.json of this tree.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import msgspec
import numpy as np
from scipy.optimize import least_squares

from forebay.plan import parameters as known
from forebay.plan.band import features
from forebay.plan.cases import observed
from forebay.plan.parameters import DESCRIPTIONS, PRIORS, Fitted, Parameters, Range, Residual
from forebay.plan.published import Row, rows, table

#: A published figure and the model differ by about so much, in logarithms: noise, and what rows omit.
FIGURE_SIGMA = 0.15
#: Beyond so many sigmas a residual counts less than quadratically.
ROBUST_SIGMAS = 2.0
#: Where a fit ends: at changes this small. From one fit to a similar one, the coarser one takes a third of
#: the time and moves predictions by about a thousandth.
EXACT, COARSE = 1e-8, 1e-5


def fit(using: Sequence[Row], start: Parameters = PRIORS, tolerance: float = EXACT) -> Parameters:
    """The parameters that miss these rows least, each held near its prior as far as its factor says."""
    values = [row for row in using if row.kind != "ordering"]
    weights = _weights(values)
    priors, first = _logarithms(PRIORS), _logarithms(start)
    widths = np.array([math.log(one.factor) for one in DESCRIPTIONS.values()])

    def residuals(logarithms: np.ndarray) -> np.ndarray:
        parameters = _of_logarithms(logarithms)
        missed = [_missed(row, parameters) / FIGURE_SIGMA for row in values]
        return np.concatenate([_robust(np.array(missed)) * weights, (logarithms - priors) / widths])

    done = least_squares(residuals, first, x_scale=widths, xtol=tolerance, ftol=tolerance)
    return _of_logarithms(done.x)


def _weights(values: Sequence[Row]) -> np.ndarray:
    """Rows of one experiment share their errors: together they count as the square root of their number."""
    count = {group: sum(row.group == group for row in values) for group in {row.group for row in values}}
    return np.array([count[row.group] ** -0.25 for row in values])


def _robust(sigmas: np.ndarray) -> np.ndarray:
    """The square root of soft-L1 loss: as the residual near zero, growing as its root far off."""
    scaled = (sigmas / ROBUST_SIGMAS) ** 2
    return np.sign(sigmas) * ROBUST_SIGMAS * np.sqrt(2 * (np.sqrt(1 + scaled) - 1))


def _missed(row: Row, parameters: Parameters) -> float:
    """Logarithm of predicted over published; zero where a bound holds."""
    missed = math.log(row.predicted(parameters) / row.published)
    if row.kind == "below":
        return max(0.0, missed)
    return min(0.0, missed) if row.kind == "above" else missed


def _logarithms(parameters: Parameters) -> np.ndarray:
    return np.array([math.log(getattr(parameters, name)) for name in DESCRIPTIONS])


def _of_logarithms(logarithms: np.ndarray) -> Parameters:
    return Parameters(**dict(zip(DESCRIPTIONS, np.exp(logarithms).tolist(), strict=True)))


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """A row with what a model says that was fitted without its experiment."""

    row: Row
    left_out: float  # predicted without the row's group
    fitted: float  # predicted with all rows

    @property
    def machine(self) -> str:
        """Where it was measured."""
        return table()[self.row.id.partition(":")[0]]["machine"]

    @property
    def metric(self) -> str:
        """What was measured."""
        return table()[self.row.id.partition(":")[0]]["metric"]

    @property
    def ratio(self) -> float:
        """Predicted over published, without the row's group."""
        return self.left_out / self.row.published

    @property
    def holds(self) -> bool | None:
        """Of a bound or an ordering, whether it holds; None for a value."""
        if self.row.kind == "value":
            return None
        if self.row.kind == "below":
            return self.left_out < self.row.published
        return self.left_out >= self.row.published


def cross_validate(everything: Sequence[Row], parameters: Parameters) -> list[Judged]:
    """Each row predicted by a model that was fitted without its group."""
    groups = dict.fromkeys(row.group for row in everything)
    judged = {one.row.id: one for group in groups for one in left_out(everything, group, parameters)}
    return [judged[row.id] for row in everything]


def left_out(everything: Sequence[Row], group: str, parameters: Parameters) -> list[Judged]:
    """The rows of one group, predicted by a model that was fitted to the others."""
    without = fit([row for row in everything if row.group != group], parameters, COARSE)
    return [
        Judged(row=row, left_out=row.predicted(without), fitted=row.predicted(parameters))
        for row in everything
        if row.group == group
    ]


@cache
def published_judged() -> list[Judged]:
    """The published rows, each predicted without its experiment. Takes some seconds."""
    return cross_validate(rows(), known.fitted().parameters)


def residuals_of(judged: Sequence[Judged]) -> list[Residual]:
    """Of the values alone."""
    return [
        Residual(id=one.row.id, group=one.row.group, storage=one.row.storage, ratio=round(one.ratio, 4))
        for one in judged
        if one.row.kind == "value"
    ]


def calibrate() -> Fitted:
    """Fits, cross-validates, and rounds to four digits."""
    everything = rows()
    exact = fit(everything)
    rounded = {name: float(f"{getattr(exact, name):.4g}") for name in DESCRIPTIONS}
    parameters = msgspec.structs.replace(PRIORS, **rounded)
    return Fitted(
        parameters=parameters,
        residuals=residuals_of(cross_validate(everything, parameters)),
        ranges=ranges_of(everything, parameters),
    )


def ranges_of(everything: Sequence[Row], parameters: Parameters) -> list[Range]:
    """The smallest and largest value of each feature, on each kind of storage."""
    with observed() as runs:
        for row in everything:
            if row.kind == "value":
                row.predicted(parameters)
    found: dict[tuple[str, str], list[float]] = {}
    for kind, pattern, settings in runs:
        for name, value in features(pattern, settings).items():
            found.setdefault((kind, name), []).append(value)
    return [
        Range(storage=kind, feature=name, low=min(values), high=max(values))
        for (kind, name), values in sorted(found.items())
    ]


def main() -> None:
    """Writes data/parameters.json."""
    path = Path(known.__file__).parent / "data" / "parameters.json"
    text = msgspec.json.format(msgspec.json.encode(calibrate()), indent=1)
    path.write_bytes(text + b"\n")
    print(path, file=sys.stderr)


if __name__ == "__main__":
    main()
