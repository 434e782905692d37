"""Who moved a file's data: one column for each rank that did."""

from __future__ import annotations

from collections.abc import Sequence

from forebay import quantities
from forebay.report.charts.palette import placeholder
from forebay.report.charts.svg_figure import Chart, blank, hide_spines, settings, to_chart

WIDTH_PX = 440


def writers_of_ranks(
    moved: Sequence[tuple[int, int, bool | None]],
    ranks: int,
    title: str,
    about: str,
    limit: int | None = None,
) -> Chart:
    """Columns of (rank, bytes, whether it aggregates) over all `ranks`; a dot marks an aggregator's."""
    with settings():
        figure = blank(WIDTH_PX, 150)
        axes = figure.subplots()
        most = limit or max((amount for _, amount, _ in moved), default=0) or 1
        axes.bar([r for r, _, _ in moved], [b for _, b, _ in moved], width=0.8, color=placeholder("write"))
        marked = [(r, b) for r, b, aggregates in moved if aggregates]
        if marked:
            axes.plot(*zip(*marked, strict=True), "o", color=placeholder("text"), markersize=4, clip_on=False)
            axes.set_title("dot: aggregator", fontsize=9.5, loc="right", color=placeholder("muted"), pad=6)
        axes.set_xlim(-0.6, max(ranks, *(r + 1 for r, _, _ in moved)) - 0.4)
        axes.set_ylim(0, most * 1.08)
        axes.set_yticks([most], [quantities.size(most)])
        axes.set_xlabel("rank")
        if ranks <= 16:
            axes.set_xticks(range(ranks))
        hide_spines(axes)
        return to_chart(figure, title, about)
