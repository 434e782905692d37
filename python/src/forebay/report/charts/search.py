"""The course of a search, and what each parameter did: times relative to the default's, on a log axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from forebay.report.charts.palette import placeholder
from forebay.report.charts.svg_figure import Chart, blank, hide_spines, settings, to_chart

WIDTH_PX = 760
NARROW_PX = 400
STRIP_PX = 440
#: A name longer than this would leave no room for the dots; the tables have it whole.
NAME_LETTERS_MAX = 26
#: More dots than this are drawn small.
LARGE_MARKS_MAX = 60
#: An axis has so many numbers at most.
TICKS_MAX = 8
#: An axis holds these ratios in any case: noise is not to fill it.
AROUND_DEFAULT = (0.88, 1.12)
#: From every number that a person would choose to the decades alone: the first that are few enough are taken.
_DIGITS = ((1, 1.2, 1.5, 2, 3, 4, 5, 6, 7, 8, 9), (1, 1.5, 2, 3, 5, 7), (1, 2, 5), (1,))


class MarkerStyle(NamedTuple):
    """How a kind of run is marked."""

    name: str
    marker: str
    ink: str


#: Shape and ink by what a run was for; no two share either the one or the other.
MARKER_STYLES = {
    "default": MarkerStyle("default", "s", "muted"),
    "guess": MarkerStyle("guess", "^", "read"),
    "search": MarkerStyle("search", "o", "write"),
    "final": MarkerStyle("final round", "D", "suggestion"),
}
FAILED = MarkerStyle("failed", "x", "problem")


class Mark(NamedTuple):
    """A run: `ratio` is its time over the default's, None if it failed; `best` that of the best so far."""

    run: int
    kind: str  # of MARKER_STYLES
    ratio: float | None
    hollow: bool = False
    best: float | None = None


class Interval(NamedTuple):
    """A ratio of times, tuned over default, with its interval."""

    low: float
    middle: float
    high: float


def search_path(
    marks: Sequence[Mark],
    final: Interval | None,
    what: str,
    title: str,
    about: str,
    width_px: int = WIDTH_PX,
) -> Chart:
    """Runs in their order; a cross at the upper edge is one that failed. At the side the final round.

    `what` is the time whose ratios are drawn: run time, or time in I/O.
    """
    from matplotlib.ticker import MaxNLocator

    narrow = width_px <= NARROW_PX
    with settings():
        figure = blank(width_px, 330 if narrow else 340)
        sides = {"width_ratios": [5 if narrow else 9, 1], "wspace": 0.04}
        axes, side = (
            figure.subplots(1, 2, sharey=True, gridspec_kw=sides) if final else (figure.subplots(), None)
        )
        bounds = _bounds([m.ratio for m in marks if m.ratio], final)
        _ratio_axis(axes.yaxis, bounds)
        axes.axhline(1, color=placeholder("muted"), linewidth=1, linestyle=(0, (4, 3)))
        _marks(axes, marks)
        _best(axes, marks)
        first, last = marks[0].run, marks[-1].run
        margin = max(0.6, 0.02 * (last - first))
        axes.set_xlim(first - margin, last + margin)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6 if narrow else 12, min_n_ticks=1))
        axes.set_xlabel("run")
        axes.set_ylabel(f"{what} / default's", color=placeholder("muted"))
        hide_spines(axes)
        if side:
            _final_round(side, final)
        _legend(figure, axes, 3 if narrow else 7)
        return to_chart(figure, title, about)


def _bounds(ratios: Sequence[float], final: Interval | None = None) -> tuple[float, float]:
    """Limits that hold all ratios and a little around the default, apart from the edges."""
    within = [*ratios, *AROUND_DEFAULT, *(final or ())]
    low, high = min(within), max(within)
    room = max((high / low) ** 0.09, 1.04)
    return low / room, high * room


def _ratio_axis(axis, bounds: tuple[float, float]) -> None:
    from matplotlib.ticker import FixedLocator, NullLocator

    getattr(axis.axes, f"set_{axis.axis_name}scale")("log")
    getattr(axis.axes, f"set_{axis.axis_name}lim")(*bounds)
    ticks = _ticks(*bounds)
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_minor_locator(NullLocator())
    axis.set_ticklabels([f"{tick:.3g}" for tick in ticks])


def _ticks(low: float, high: float) -> list[float]:
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    found: list[float] = []
    for digits in _DIGITS:
        found = [digit * 10.0**decade for decade in decades for digit in digits]
        found = [tick for tick in found if low <= tick <= high]
        if len(found) <= TICKS_MAX:
            break
    return found if len(found) > 1 else [low, 1.0, high]


def _marks(axes, marks: Sequence[Mark]) -> None:
    area = 46 if len(marks) <= LARGE_MARKS_MAX else 20
    for kind, style in MARKER_STYLES.items():
        for hollow in (False, True):
            found = [m for m in marks if m.kind == kind and m.ratio and m.hollow == hollow]
            face = "none" if hollow else placeholder(style.ink)
            axes.scatter(
                [m.run for m in found], [m.ratio for m in found], s=area, marker=style.marker, zorder=3,
                facecolor=face, edgecolor=placeholder(style.ink), linewidth=1.2,
            )  # fmt: skip
    failed = [m.run for m in marks if m.ratio is None]
    axes.scatter(
        failed, [1.0] * len(failed), s=area, marker=FAILED.marker, color=placeholder(FAILED.ink), zorder=3,
        transform=axes.get_xaxis_transform(), clip_on=False, linewidth=1.8,
    )  # fmt: skip


def _best(axes, marks: Sequence[Mark]) -> None:
    known = [(m.run, m.best) for m in marks if m.best is not None]
    if known:
        ink = placeholder("text")
        axes.step(*zip(*known, strict=True), where="post", color=ink, linewidth=1.3, zorder=2)


def _final_round(axes, final: Interval) -> None:
    ink = placeholder("suggestion")
    axes.bar(0, final.high - final.low, bottom=final.low, width=0.5, color=ink, alpha=0.45)
    axes.plot([-0.36, 0.36], [final.middle] * 2, color=ink, linewidth=2.2)
    axes.axhline(1, color=placeholder("muted"), linewidth=1, linestyle=(0, (4, 3)))
    axes.set_xlim(-1, 1)
    axes.set_xticks([0], [f"{final.middle:.2f}"])
    axes.xaxis.set_tick_params(labelcolor=placeholder("text"))
    axes.set_xlabel("paired")
    axes.tick_params(labelleft=False)
    hide_spines(axes, "left")


def _legend(figure, axes, columns: int) -> None:
    from matplotlib.lines import Line2D

    def mark(style: MarkerStyle, **other) -> Line2D:
        ink = placeholder(style.ink)
        return Line2D(
            [], [], linestyle="", marker=style.marker, color=ink, markersize=6.5, label=style.name, **other
        )

    handles = [mark(style) for style in MARKER_STYLES.values()]
    handles.append(mark(MarkerStyle("disturbed, no effect", "o", "muted"), fillstyle="none"))
    handles.append(mark(FAILED, markeredgewidth=1.8))
    handles.append(Line2D([], [], color=placeholder("text"), linewidth=1.3, label="best so far"))
    figure.legend(
        handles=handles, loc="outside upper left", ncols=columns, frameon=False, fontsize=10,
        labelcolor=placeholder("text"), handlelength=1.2, columnspacing=1.2, handletextpad=0.5,
        borderaxespad=0,
    )  # fmt: skip


def strip(
    rows: Sequence[tuple[str, Sequence[float]]], limits: Sequence[float], what: str, title: str, about: str
) -> Chart:
    """A row for each value of a parameter: a dot for each of its runs, a bar at their median.

    `limits` are the ratios that the axis must hold: the same for all parameters of a place.
    """
    with settings():
        figure = blank(STRIP_PX, 52 + 26 * len(rows))
        axes = figure.subplots()
        _ratio_axis(axes.xaxis, _bounds(limits))
        axes.axvline(1, color=placeholder("muted"), linewidth=1, linestyle=(0, (4, 3)))
        for y, (_, ratios) in enumerate(rows):
            _row(axes, y, ratios)
        axes.set_yticks(range(len(rows)), [_shortened(name) for name, _ in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlabel(f"{what} / default's", loc="right")
        axes.spines["left"].set_color(placeholder("muted"))
        hide_spines(axes)
        return to_chart(figure, title, about)


def _row(axes, y: int, ratios: Sequence[float]) -> None:
    spread = [y + 0.11 * ((at % 3) - 1) for at in range(len(ratios))]
    ink = placeholder("write")
    axes.scatter(sorted(ratios), spread, s=24, color=ink, alpha=0.7, linewidth=0, zorder=3)
    if ratios:
        axes.plot(
            [median(ratios)] * 2, [y - 0.34, y + 0.34], color=placeholder("text"), linewidth=2, zorder=2
        )


def _shortened(name: str) -> str:
    return name if len(name) <= NAME_LETTERS_MAX else f"{name[: NAME_LETTERS_MAX - 1]}…"
