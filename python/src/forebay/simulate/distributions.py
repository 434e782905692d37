"""Amounts that a description of jobs gives: one value, or a distribution to draw from.

A size is bytes, a time is seconds, and both are written with a unit. A count and a factor are plain numbers.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Literal

import msgspec

from forebay import quantities

if TYPE_CHECKING:
    import numpy as np

Kind = Literal["size", "time", "count", "factor"]
Amount = str | int | float

_TIMES_S = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_EXAMPLES = {"size": "200GiB", "time": "30min", "count": "4", "factor": "1.5"}


class Constant(msgspec.Struct, tag="constant", tag_field="distribution", forbid_unknown_fields=True):
    """Always the same."""

    value: Amount


class Uniform(msgspec.Struct, tag="uniform", tag_field="distribution", forbid_unknown_fields=True):
    """Each value between both with the same probability."""

    low: Amount
    high: Amount


class Exponential(msgspec.Struct, tag="exponential", tag_field="distribution", forbid_unknown_fields=True):
    """Times between events that do not depend on each other."""

    mean: Amount


class Lognormal(msgspec.Struct, tag="lognormal", tag_field="distribution", forbid_unknown_fields=True):
    """Many small values and few large ones. `sigma` is the standard deviation of the logarithm."""

    median: Amount
    sigma: float
    max: Amount | None = None  # larger values are drawn as this one


class Choice(msgspec.Struct, tag="choice", tag_field="distribution", forbid_unknown_fields=True):
    """One of some values; without weights each with the same probability."""

    values: list[Amount]
    weights: list[float] | None = None


Distribution = Amount | Constant | Uniform | Exponential | Lognormal | Choice


def amount(value: Amount, kind: Kind) -> float:
    """In bytes, seconds, or as it is. ValueError if it is no such amount, or below zero."""
    found = _number(value, kind)
    if found is None or not math.isfinite(found) or found < 0:
        raise ValueError(f"{value!r} is no {kind}; write it as {_EXAMPLES[kind]}")
    return found


def _number(value: Amount, kind: Kind) -> float | None:
    if kind in ("count", "factor"):
        return None if isinstance(value, str) else float(value)
    if value in (0, "0"):
        return 0.0
    if kind == "size":
        try:
            return None if "/" in str(value) else quantities.size_bytes(str(value))
        except ValueError:
            return None
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(s|min|h|d)\s*", str(value))
    return float(found[1]) * _TIMES_S[found[2]] if found else None


def rate(text: str) -> float:
    """Bytes in a second from `5 GB/s`. ValueError if it is none, or not above zero."""
    try:
        found = quantities.size_bytes(text) if text.rstrip().endswith("/s") else 0.0
    except ValueError:
        found = 0.0
    if not math.isfinite(found) or found <= 0:
        raise ValueError(f"{text!r} is no rate; write it as 5GB/s")
    return found


def draw(of: Distribution, kind: Kind, random: np.random.Generator, count: int) -> np.ndarray:
    """So many values, as float64; counts are whole. ValueError if a parameter is wrong."""
    import numpy as np

    values = _draw(of, kind, random, count)
    if not np.isfinite(values).all():
        raise ValueError("the distribution has infinite values; give a smaller sigma, or a max")
    return np.rint(values) if kind == "count" else values


def _draw(of: Distribution, kind: Kind, random: np.random.Generator, count: int) -> np.ndarray:
    import numpy as np

    if isinstance(of, Uniform):
        low, high = amount(of.low, kind), amount(of.high, kind)
        if low > high:
            raise ValueError(f"low {of.low!r} is more than high {of.high!r}")
        return random.uniform(low, high, count)
    if isinstance(of, Exponential):
        return random.exponential(amount(of.mean, kind), count)
    if isinstance(of, Lognormal):
        return _lognormal(of, kind, random, count)
    if isinstance(of, Choice):
        values = np.array([amount(value, kind) for value in of.values])
        return random.choice(values, count, p=_probabilities(of))
    return np.full(count, amount(of.value if isinstance(of, Constant) else of, kind))


def _lognormal(of: Lognormal, kind: Kind, random: np.random.Generator, count: int) -> np.ndarray:
    import numpy as np

    median = amount(of.median, kind)
    if not math.isfinite(of.sigma) or of.sigma < 0:
        raise ValueError(f"sigma {of.sigma!r} is no number above or equal to zero")
    with np.errstate(over="ignore"):
        values = median * np.exp(of.sigma * random.standard_normal(count))
    return values if of.max is None else np.minimum(values, amount(of.max, kind))


def _probabilities(of: Choice) -> np.ndarray | None:
    import numpy as np

    if not of.values:
        raise ValueError("values is empty")
    if of.weights is None:
        return None
    weights = np.array(of.weights)
    if len(weights) != len(of.values):
        raise ValueError(f"{len(of.weights)} weights for {len(of.values)} values")
    if not np.isfinite(weights).all() or (weights < 0).any() or weights.sum() <= 0:
        raise ValueError("weights must be above or equal to zero, and not all of them zero")
    return weights / weights.sum()
