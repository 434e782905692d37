"""Numbers with units, as machine files and options have them: MB are powers of 1000, MiB of 1024."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Literal

Kind = Literal["time", "rate", "size", "count"]

_PREFIXES = {"": 0, "k": 1, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}
_SIZES = {f"{prefix}B": 1000**power for prefix, power in _PREFIXES.items() if prefix != "K"} | {
    f"{prefix.upper()}iB": 1024**power for prefix, power in _PREFIXES.items() if prefix not in ("", "k")
}
UNITS: dict[Kind, dict[str, float]] = {
    "time": {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0},
    "size": _SIZES,
    "rate": {f"{unit}/s": factor for unit, factor in _SIZES.items()},
}
EXAMPLES: dict[Kind, str] = {
    "time": 'a time with its unit, such as "500 us"',
    "size": 'a size with its unit, such as "368 GiB"',
    "rate": 'a rate with its unit, such as "1.5 TB/s"',
    "count": "a whole number from 1 on, without quotes and unit",
}
_BITS = re.compile(r"[kKMGTP]?i?b(?:it)?(?:/s|ps)?")
_NUMBER = re.compile(r"\s*[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?\s*")
_FORM = re.compile(r"\s*([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)\s*(\S*)\s*")


def parse(text: object, kind: Kind, *, can_be_zero: bool = False) -> float:
    """The number in seconds, bytes, bytes per second, or as it is.

    Raises ValueError with the reason: no number, no unit, a unit of another kind, zero, negative, infinite.
    """
    if kind == "count":
        return _count(text)
    if not isinstance(text, str):
        raise ValueError("a number alone has no unit")
    found = _FORM.fullmatch(text)
    if found is None:
        raise ValueError("it is not a number with a unit")
    try:
        number = float(found[1])
    except ValueError:
        raise ValueError(f"{found[1]!r} is not a number") from None
    value = number * _factor(found[2], kind)
    if value < 0 or not math.isfinite(value):
        raise ValueError("it must be finite and not negative")
    if value == 0 and not can_be_zero:
        raise ValueError("it must not be zero")
    return value


def in_bytes(text: str) -> str:
    """A size of an option with its unit: a number alone is in bytes, as IOR and Slurm take it."""
    return f"{text.strip()}B" if _NUMBER.fullmatch(text) else text


def exact_bytes(text: str, *, can_be_zero: bool = False) -> int:
    """A size in whole bytes, rounded up. ValueError as `parse`."""
    parse(text, "size", can_be_zero=can_be_zero)
    found = _FORM.fullmatch(text)
    return math.ceil(Fraction(found[1]) * int(_SIZES[found[2]]))


def _count(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError("it is not a whole number from 1 on")
    return value


def _factor(unit: str, kind: Kind) -> float:
    units = UNITS[kind]
    if unit in units:
        return units[unit]
    if not unit:
        raise ValueError(f"the unit is missing; expected one of {', '.join(units)}")
    if _BITS.fullmatch(unit):
        raise ValueError(f"{unit!r} means bits; divide by 8 and write bytes, such as GB/s")
    for other in UNITS:
        if unit in UNITS[other]:
            raise ValueError(f"{unit!r} is the unit of a {other}, and this is a {kind}")
    near = next((known for known in units if known.lower() == unit.lower()), None)
    if near:
        raise ValueError(f"{unit!r} is not a unit; did you mean {near!r}?")
    raise ValueError(f"{unit!r} is not a unit of a {kind}; expected one of {', '.join(units)}")


def rate_text(bytes_per_s: float) -> str:
    """A rate in decimal units, as vendors and publications give it: `1.5 TB/s`."""
    return f"{_decimal(bytes_per_s)}/s"


def size_text(size_bytes: float) -> str:
    """A size in decimal units: `53.7 GB`."""
    return _decimal(size_bytes)


def stripe_text(size_bytes: int) -> str:
    """A stripe unit in the binary unit that divides it: `256 KiB`."""
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size_bytes % factor == 0:
            return f"{size_bytes // factor} {unit}"
    return f"{size_bytes} B"


def _decimal(value: float) -> str:
    for prefix in ("P", "T", "G", "M", "k"):
        factor = 1000.0 ** _PREFIXES[prefix]
        if value >= factor:
            return f"{value / factor:.3g} {prefix}B"
    return f"{value:.3g} B"


def node_hours_text(hours: float) -> str:
    """`0.0575`, `12,300`."""
    return f"{hours:,.0f}" if hours >= 1000 else f"{hours:.3g}"
