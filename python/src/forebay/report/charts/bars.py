"""Counts by kind: access sizes, operations, throughput. Horizontal bars, each with its number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from forebay.report.charts.palette import placeholder
from forebay.report.charts.svg_figure import Chart, blank, hide_spines, pattern, settings, to_chart

WIDTH_PX = 440


class Series(NamedTuple):
    """Bars of one ink, one for each name on the axis; None: unknown."""

    ink: str
    name: str
    values: Sequence[float | None]


def bars(
    names: Sequence[str],
    series: Sequence[Series],
    title: str,
    about: str,
    format_value: Callable[[float], str],
    limit: float | None = None,
    mark: tuple[float, str] | None = None,
) -> Chart:
    """Bars from nothing to `limit` (default: the largest); `format_value` writes the number next to each bar.

    `mark` is a value with its name, drawn as a line across all bars.
    """
    largest = max(
        [v for one in series for v in one.values if v is not None] + [mark[0] if mark else 0], default=0
    )
    limit = limit or largest or 1
    thick = 0.8 / len(series)
    with settings():
        figure = blank(WIDTH_PX, 30 + round(len(names) * (10 + 12 * len(series))))
        axes = figure.subplots()
        for row, one in enumerate(series):
            _series(axes, one, row, thick, limit, format_value)
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set_xlim(0, limit * 1.22)
        axes.set_xticks([])
        if mark:
            axes.axvline(mark[0], color=placeholder("text"), linewidth=1.2, linestyle=(0, (4, 3)))
            axes.set_xlabel(f"dashed: {mark[1]}", loc="right")
        if len(series) > 1:
            axes.legend(
                loc="lower right",
                frameon=False,
                fontsize=10.5,
                labelcolor=placeholder("text"),
                ncols=len(series),
                bbox_to_anchor=(1, 1),
                borderaxespad=0,
                handlelength=1.4,
            )
        axes.spines["left"].set_color(placeholder("muted"))
        hide_spines(axes, "bottom")
        return to_chart(figure, title, about)


def _series(
    axes, one: Series, row: int, thick: float, limit: float, format_value: Callable[[float], str]
) -> None:
    places = [y - 0.4 + thick * (row + 0.5) for y in range(len(one.values))]
    lengths = [value or 0 for value in one.values]
    axes.barh(places, lengths, height=thick * 0.92, label=one.name, **pattern(one.ink))
    for y, value in zip(places, one.values, strict=True):
        if value:
            axes.text(
                value + limit * 0.012,
                y,
                format_value(value),
                va="center",
                fontsize=9.5,
                color=placeholder("text"),
            )
