"""Quantities as a person reads them. Sizes in bytes, times in seconds; None becomes `UNKNOWN`."""

from __future__ import annotations

import math
import re
import signal
from datetime import datetime

UNKNOWN = "–"
_UNITS_BYTES = {
    "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
    "PB": 10**15, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40, "PIB": 2**50,
}  # fmt: skip
_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_SMALL_S = ((1.0, 1.0, "s"), (1e-3, 1e3, "ms"), (1e-6, 1e6, "µs"), (0.0, 1e9, "ns"))


def _three_digits(value: float) -> str:
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if digits else text


def _scaled(value: float) -> tuple[float, str]:
    power = 0
    while abs(value) >= 1023.5 and power < len(_BINARY) - 1:
        value, power = value / 1024, power + 1
    return value, _BINARY[power]


def size(value: float | None) -> str:
    """A number of bytes in binary units."""
    if value is None:
        return UNKNOWN
    scaled, unit = _scaled(value)
    text = f"{scaled:.0f}" if unit == "B" or scaled == int(scaled) else _three_digits(scaled)
    return f"{text} {unit}"


def rate(bytes_per_s: float | None) -> str:
    """Bytes per second in binary units."""
    return UNKNOWN if bytes_per_s is None else f"{size(bytes_per_s)}/s"


def duration(value: float | None) -> str:
    """A length of time; from two minutes on in minutes, from two hours on in hours."""
    if value is None:
        return UNKNOWN
    if value >= 7200:
        return f"{int(value // 3600)} h {int(value % 3600 // 60):02d} min"
    if value >= 120:
        return f"{int(value // 60)} min {int(value % 60):02d} s"
    if value == 0:
        return "0 s"
    _, factor, unit = next(step for step in _SMALL_S if abs(value) >= step[0])
    return f"{_three_digits(value * factor)} {unit}"


def count(value: float | None) -> str:
    """A whole number with thousands set apart."""
    return UNKNOWN if value is None else f"{value:,.0f}"


def counted(value: int, noun: str) -> str:
    """`1 OST`, `1024 ranks`: the plural of `noun` has an s."""
    return f"{value} {noun}{'' if value == 1 else 's'}"


def percent(value: float | None) -> str:
    """A fraction as a percentage; less than one per cent is shown as such, not as zero."""
    if value is None:
        return UNKNOWN
    percent = 100 * value
    if 0 < percent < 1:
        return "< 1 %"
    if 99 < percent < 100:
        return "> 99 %"
    return f"{percent:.0f} %"


def at_most(value: float | None, is_bound: bool) -> str:
    """The same of what may be an upper bound, which is rounded up."""
    if value is None or not is_bound or value < 0.01:
        return percent(value)
    return f"at most {math.ceil(100 * value)} %"


def ratio(value: float | None) -> str:
    """How many times as much."""
    if value is None:
        return UNKNOWN
    return (
        f"× {value:.0f}" if value >= 100 else f"× {value:.2g}" if value < 0.1 else f"× {_three_digits(value)}"
    )


def moment(unix_s: float | None) -> str:
    """A date and time of day where the report is made."""
    if unix_s is None:
        return UNKNOWN
    return datetime.fromtimestamp(unix_s).astimezone().strftime("%Y-%m-%d %H:%M:%S %z")


def plain(value: object, unit: str = "") -> str:
    """A counter's value with the unit its source gives, such as ranks: `B` and `s` are scaled."""
    if value is None:
        return UNKNOWN
    if isinstance(value, str):
        return f"{value} {unit}".strip()
    scaled = {"B": size, "bytes": size, "s": duration, "B/s": rate, "bytes/s": rate}.get(unit)
    if scaled:
        return scaled(value)
    text = count(value) if isinstance(value, int) else f"{value:.3g}"
    return f"{text} {unit.removesuffix('s') if value == 1 else unit}".strip()


def exact_size(value: float | None) -> str:
    """A number of bytes, whole, with its size in binary units where that is shorter."""
    if value is None or value < 1024:
        return size(value)
    return f"{count(value)} B ({size(value)})"


def printable(text: str) -> str:
    """The text with `?` for characters that are not visible: names of files may hold anything."""
    return "".join(character if character.isprintable() else "?" for character in text)


def size_bytes(text: str) -> float:
    """`62.5 MB/s`, `1 MiB`: bytes, or bytes in a second."""
    found = re.fullmatch(r"\s*([0-9.]+)\s*([KMGTP]?i?B)(?:/s)?\s*", str(text), re.IGNORECASE)
    if found is None:
        raise ValueError(f"{text!r} is no size")
    return float(found[1]) * _UNITS_BYTES[found[2].upper()]


def signal_name(number: int) -> str:
    """SIGUSR1; of a number that has no name, the number."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
