"""Curves against a number of servers, and predicted against published figures. Axes of shares are linear."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from forebay.report.charts.palette import placeholder
from forebay.report.charts.svg_figure import Chart, blank, settings, to_chart

WIDTH_PX = 440
HEIGHT_PX = 300
#: Numbers closer than this on an axis would cover each other.
TICK_FACTOR = 1.5
#: An axis over a smaller factor also has numbers between whole decades.
DENSE_FACTOR_MAX = 300
#: An axis over a smaller factor has evenly spaced numbers.
LINEAR_FACTOR_MAX = 4

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Shape and ink of the series of a scatter; no two share both.
_MARKS = (
    ("o", "write"), ("s", "read"), ("^", "suggestion"), ("D", "metadata"), ("v", "sync"), ("x", "problem"),
    ("P", "waiting"), ("*", "text"),
)  # fmt: skip


class Line(NamedTuple):
    """A curve, with a band around it if it has one."""

    name: str
    ink: str
    values: Sequence[float]
    band: Sequence[tuple[float, float]] | None


class Scatter(NamedTuple):
    """Points of one experiment: (published, predicted)."""

    name: str
    points: Sequence[tuple[float, float]]


def curves(
    at: Sequence[int],
    lines: Sequence[Line],
    *,
    x: str,
    y: str,
    title: str,
    about: str,
    is_share: bool = False,
) -> Chart:
    """Lines with a mark at each number, and their bands. Shares have a linear axis from zero on."""
    with settings():
        figure = blank(WIDTH_PX, HEIGHT_PX)
        axes = figure.subplots()
        for number, line in enumerate(lines):
            colour = placeholder(line.ink)
            style = "-" if number == 0 else (0, (4, 3))
            marker = "o" if number == 0 else "s"
            axes.plot(
                at, line.values, color=colour, linestyle=style, marker=marker, markersize=4, label=line.name
            )
            if line.band:
                low, high = zip(*line.band, strict=True)
                axes.fill_between(at, low, high, color=colour, alpha=0.15, linewidth=0)
        axes.set_xscale("log", base=2)
        if is_share:
            axes.set_ylim(bottom=0)
        else:
            axes.set_yscale("log")
        axes.set_xticks([one for one in at if one == at[0] or one >= TICK_FACTOR * at[at.index(one) - 1]])
        _plain_numbers(axes, is_share)
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        axes.grid(axis="y", linewidth=0.6)
        axes.legend(frameon=False, fontsize=10.5, labelcolor=placeholder("text"))
        return to_chart(figure, title, about)


def _plain_numbers(axes: Axes, is_linear: bool = False) -> None:
    """Numbers as they are, not as powers. A short axis has more than whole decades."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    low, high = axes.get_ylim()
    if is_linear or high < LINEAR_FACTOR_MAX * low:
        axes.yaxis.set_major_locator(MaxNLocator(5))
    elif high < DENSE_FACTOR_MAX * low:
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())


def scatter(series: Sequence[Scatter], *, x: str, y: str, title: str, about: str) -> Chart:
    """Points around the line where both are equal; dashed lines are a factor of 1.5 away."""
    with settings():
        figure = blank(WIDTH_PX, HEIGHT_PX + 80)
        axes = figure.subplots()
        values = [value for one in series for point in one.points for value in point]
        low, high = min(values) / 1.5, max(values) * 1.5
        for factor, style in ((1.0, "-"), (1.5, (0, (4, 3))), (1 / 1.5, (0, (4, 3)))):
            axes.plot([low, high], [low * factor, high * factor], color=placeholder("line"), linestyle=style)
        for number, one in enumerate(series):
            marker, ink = _MARKS[number % len(_MARKS)]
            across, up = zip(*one.points, strict=True)
            axes.plot(across, up, marker, color=placeholder(ink), markersize=5, label=one.name)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlim(low, high)
        axes.set_ylim(low, high)
        _plain_numbers(axes)
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        axes.legend(frameon=False, fontsize=9.5, labelcolor=placeholder("text"), loc="upper left")
        return to_chart(figure, title, about)
