"""Ranks over time: bytes of each rank, with the sum over ranks above and over time at the side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy

from forebay import quantities
from forebay.profiles.model import Heat
from forebay.report.charts.palette import INKS, placeholder
from forebay.report.charts.svg_figure import Chart, blank, hide_spines, settings, to_chart

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH_PX = 760


def heat_map(
    heat: Heat, direction: str, wall_s: float, limits: tuple[float, float], title: str, about: str
) -> Chart:
    """The map of one direction (`read`, `write`) of one layer.

    `limits` are the longest time in seconds and the most bytes of a cell on the axes: equal in a comparison.
    """
    cells = numpy.array(getattr(heat, direction), dtype=float)
    with settings():
        figure = blank(WIDTH_PX, 130 + min(180, max(56, 14 * len(cells))))
        over, corner, field, side = _panels(figure)
        corner.set_axis_off()
        _field(field, cells, heat, direction, limits)
        _margin_of_time(over, cells, heat, direction, limits[0])
        _margin_of_ranks(side, cells, direction)
        if wall_s < limits[0] * 0.995:
            field.axvline(wall_s, color=placeholder("muted"), linewidth=1, linestyle=(0, (3, 3)))
        return to_chart(figure, title, about)


def _panels(figure: Figure):
    grid = {"width_ratios": [6, 1], "height_ratios": [1, 2.6], "wspace": 0.03, "hspace": 0.03}
    return figure.subplots(2, 2, sharex="col", gridspec_kw=grid).flat


def _field(axes, cells: numpy.ndarray, heat: Heat, direction: str, limits: tuple[float, float]) -> None:
    from matplotlib.colors import LinearSegmentedColormap, LogNorm

    rows, bins = cells.shape
    # One hue whose opacity grows: it stands out from light and from dark paper alike.
    light, dark = INKS[direction]
    middle = tuple((int(light[i : i + 2], 16) + int(dark[i : i + 2], 16)) / 510 for i in (1, 3, 5))
    hue = LinearSegmentedColormap.from_list(direction, [(*middle, 0.22), (*middle, 1.0)])
    shades = hue.with_extremes(bad=(0, 0, 0, 0))
    most = max(limits[1], 2)
    least = min(max(most / 1e4, 1), cells[cells > 0].min(initial=most)) if most > 2 else 1
    extent = (0, bins * heat.bin_s, rows * heat.ranks_per_row - 0.5, -0.5)
    shown = numpy.ma.masked_equal(cells, 0)
    axes.imshow(
        shown, shades, LogNorm(least, most, clip=True), aspect="auto", interpolation="none", extent=extent
    )
    axes.set_xlim(0, limits[0])
    axes.set_ylabel("rank")
    axes.set_xlabel("seconds since the program began")
    if rows * heat.ranks_per_row <= 8:
        axes.set_yticks(range(rows * heat.ranks_per_row))
    for side in ("top", "right"):
        axes.spines[side].set_visible(True)


def _margin_of_time(axes, cells: numpy.ndarray, heat: Heat, direction: str, longest_s: float) -> None:
    rates = cells.sum(axis=0) / heat.bin_s
    edges = numpy.arange(len(rates) + 1) * heat.bin_s
    axes.stairs(rates, edges, fill=True, color=placeholder(direction))
    axes.set_xlim(0, longest_s)
    peak = rates.max(initial=0)
    axes.set_ylim(0, peak * 1.05 or 1)
    axes.set_yticks([peak], [quantities.rate(peak)], fontsize=9.5)
    hide_spines(axes, "bottom")


def _margin_of_ranks(axes, cells: numpy.ndarray, direction: str) -> None:
    sums = cells.sum(axis=1)
    axes.barh(range(len(sums)), sums, height=0.86, color=placeholder(direction))
    axes.set_ylim(len(sums) - 0.5, -0.5)
    most = sums.max(initial=0)
    axes.set_xlim(0, most * 1.05 or 1)
    axes.set_xticks([most], [quantities.size(most)], fontsize=9.5)
    axes.get_xticklabels()[0].set_horizontalalignment("right")
    axes.set_yticks([])
    axes.set_xlabel("sum")
    hide_spines(axes, "left")
