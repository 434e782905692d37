"""Numbers and names as they are said in titles and actions."""

from __future__ import annotations

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def size(number_bytes: float) -> str:
    """`960 B`, `4.2 MiB`."""
    value = float(number_bytes)
    unit = 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value /= 1024
        unit += 1
    return f"{value:.0f} {_UNITS[unit]}" if unit == 0 or value >= 999.5 else f"{value:.3g} {_UNITS[unit]}"


def printable(text: str) -> str:
    """The text with `?` for what is no visible character: names of files may hold anything."""
    return "".join(character if character.isprintable() else "?" for character in text)


def count(number: float) -> str:
    """`23,040`."""
    return f"{number:,.0f}"


def percent(share: float) -> str:
    """`3 %`; `under 1 %`."""
    return "under 1 %" if 0 < share < 0.01 else f"{100 * share:.0f} %"


def seconds(value: float) -> str:
    """`12 s`, `0.021 s`."""
    return f"{value:.2g} s" if value < 10 else f"{value:,.0f} s"
