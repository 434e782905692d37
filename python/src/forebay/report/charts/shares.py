"""Where the time went: one bar for each layer, divided by what the ranks did."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from forebay.report.charts.palette import placeholder
from forebay.report.charts.svg_figure import Chart, blank, hide_spines, pattern, settings, to_chart

WIDTH_PX = 760
NARROW_PX = 400
#: Of a narrow chart's width, that of the bars: names of rows take the rest.
NARROW_SHARE = 0.7
#: All of the run time: the same axis in every report.
PERCENTS = ("0", "25 %", "50 %", "75 %", "100 %")
#: A part narrower than this has no label inside: text would outgrow it. A letter takes so much.
LABEL_PX_MIN = 60
LETTER_PX = 9


class Part(NamedTuple):
    """A part of a bar, as a share (0 to 1) of the axis."""

    ink: str
    name: str
    share: float
    amount: str  # as it is shown


def bar_of_shares(
    rows: Sequence[tuple[str, Sequence[Part]]],
    title: str,
    about: str,
    width_px: int = WIDTH_PX,
    ticks: Sequence[str] = PERCENTS,
) -> Chart:
    """Bars of parts over an axis with `ticks` at its quarters."""
    with settings():
        figure = blank(width_px, 62 + 46 * len(rows) + (0 if width_px > NARROW_PX else 34))
        axes = figure.subplots()
        for y, (_, parts) in enumerate(rows):
            _bar(axes, y, parts, width_px)
        axes.set_yticks(range(len(rows)), [name for name, _ in rows], fontsize=12)
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlim(0, 1)
        axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ticks)
        axes.get_xticklabels()[-1].set_horizontalalignment("right")
        hide_spines(axes, "left", "bottom")
        _legend(axes, rows, width_px)
        return to_chart(figure, title, about)


def _bar(axes, y: int, parts: Sequence[Part], width_px: int) -> None:
    left = 0.0
    for part in parts:
        shown = min(part.share, 1 - left)
        if shown <= 0:
            continue
        axes.barh(y, shown, left=left, height=0.66, **pattern(part.ink))
        if shown * width_px >= LABEL_PX_MIN:
            room_px = shown * width_px * (1 if width_px > NARROW_PX else NARROW_SHARE)
            _label(axes, left + shown / 2, y, part, room_px)
        left += shown


def _legend(axes, rows: Sequence[tuple[str, Sequence[Part]]], width_px: int) -> None:
    from matplotlib.patches import Patch

    names = {part.ink: part.name for _, parts in rows for part in parts if part.share >= 0.005}
    handles = [Patch(**pattern(ink), label=name) for ink, name in names.items()]
    place = {
        "loc": "upper left",
        "bbox_to_anchor": (0, -0.42 / len(rows) - 0.06),
        "ncols": len(handles) if width_px > NARROW_PX else 2,
    }
    axes.legend(
        handles=handles,
        frameon=False,
        fontsize=10.5,
        labelcolor=placeholder("text"),
        handlelength=1.6,
        columnspacing=1.4,
        borderaxespad=0,
        borderpad=0,
        **place,
    )


def _label(axes, x: float, y: int, part: Part, room_px: float) -> None:
    whole = f"{part.name} {part.amount}"
    text = whole if room_px > LETTER_PX * len(whole) else part.amount
    backed = {
        "boxstyle": "round,pad=0.18,rounding_size=0.3",
        "facecolor": placeholder(part.ink),
        "edgecolor": "none",
    }
    ink = "text" if part.ink == "still" else "paper"
    axes.text(x, y, text, ha="center", va="center", color=placeholder(ink), fontsize=11, bbox=backed)
