"""Waits by pool and policy, and how full a pool was over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from forebay.report.charts.palette import placeholder
from forebay.report.charts.svg_figure import Chart, blank, hide_spines, settings, to_chart

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH_PX = 760
NARROW_PX = 400
#: Ink, marker and line of each series: no two share any of them.
STYLES = (
    ("write", "o", "-"), ("read", "s", "--"), ("metadata", "^", "-."), ("suggestion", "D", ":"),
    ("rmw", "v", "-"), ("sync", "P", "--"), ("waiting", "X", "-."), ("note", "*", ":"),
)  # fmt: skip
_UNITS_S = ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes"), (1.0, "seconds"))
_TIB = 2**40

#: A name, and for each pool size in bytes the mean wait in seconds with its interval.
Series = tuple[str, Sequence[tuple[float, float, float | None, float | None]]]


def _unit(seconds: float) -> tuple[float, str]:
    return next(((length, name) for length, name in _UNITS_S if seconds >= length), _UNITS_S[-1])


def waits(series: Sequence[Series], title: str, about: str, width_px: int = WIDTH_PX) -> Chart:
    """The mean wait against the size of the pool, a line for each policy and granularity."""
    longest_s = max((wait_s for _, points in series for _, wait_s, _, _ in points), default=0.0)
    length_s, unit = _unit(longest_s)
    with settings():
        figure = blank(width_px, 320)
        axes = figure.subplots()
        for number, (name, points) in enumerate(series):
            ink, marker, line = STYLES[number % len(STYLES)]
            sizes = [size / _TIB for size, *_ in points]
            means = [wait_s / length_s for _, wait_s, _, _ in points]
            colour = placeholder(ink)
            axes.plot(
                sizes,
                means,
                marker=marker,
                linestyle=line,
                color=colour,
                label=name,
                markersize=6,
                linewidth=1.6,
            )
            for size, _, low_s, high_s in points:
                if low_s is not None and high_s is not None:
                    ends = max(0.0, low_s) / length_s, high_s / length_s
                    axes.vlines(size / _TIB, *ends, color=colour, linewidth=1.2)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("pool (TiB)")
        axes.set_ylabel(f"mean wait ({unit})", color=placeholder("muted"))
        hide_spines(axes)
        _legend(figure, width_px)
        return to_chart(figure, title, about)


def over_time(
    part_s: float,
    shares: Sequence[tuple[str, Sequence[float]]],
    waiting: Sequence[float],
    title: str,
    about: str,
    width_px: int = WIDTH_PX,
) -> Chart:
    """Shares in use over time, and below them the jobs that wait."""
    length_s, unit = _unit(part_s * len(waiting))
    times = [(number + 0.5) * part_s / length_s for number in range(len(waiting))]
    with settings():
        figure = blank(width_px, 400)
        above, below = figure.subplots(2, 1, sharex=True, gridspec_kw={"height_ratios": [3, 2]})
        for (name, values), (ink, _, line) in zip(shares, STYLES, strict=False):
            percent = [100 * value for value in values]
            above.plot(times, percent, color=placeholder(ink), linestyle=line, linewidth=1.4, label=name)
        above.set_ylim(0, 102)
        above.set_ylabel("in use (%)", color=placeholder("muted"))
        below.fill_between(times, waiting, color=placeholder("waiting"), linewidth=0, alpha=0.6)
        below.set_ylim(bottom=0)
        below.set_ylabel("waiting jobs", color=placeholder("muted"))
        below.set_xlabel(unit)
        for axes in (above, below):
            hide_spines(axes)
        _legend(figure, width_px)
        return to_chart(figure, title, about)


def _legend(figure: Figure, width_px: int) -> None:
    figure.legend(
        loc="outside upper left", ncols=4 if width_px > NARROW_PX else 2, frameon=False, fontsize=10,
        labelcolor=placeholder("text"), handlelength=2.4, columnspacing=1.4, borderaxespad=0,
    )  # fmt: skip
