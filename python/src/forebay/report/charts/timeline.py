"""The calls of each rank over time, as bars. On the page a script zooms it; without one it shows all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import count

import msgspec

from forebay import quantities
from forebay.profiles.trace import ACTIVITIES, Activity, RankCalls, Span
from forebay.report.charts.palette import coloured, placeholder
from forebay.report.charts.svg_figure import FONTS, Chart

#: Bars of all ranks together.
BARS_MAX = 8000
#: The finest gap that separates two bars, as a part of the run.
FINEST = 2**-20
WIDTH_PX, LABELS_PX, TOP_PX, AXIS_PX = 860, 64, 26, 24
#: Height of a row, and of its unit: inks differ in height and place, not only in colour.
ROW_PX, ROW_PX_MANY, MANY = 22, 12, 24
PLACES: dict[Activity, tuple[float, float]] = {
    "write": (0.08, 0.5), "read": (0.5, 0.92), "rmw": (0.68, 0.92), "waiting": (0.42, 0.58),
    "metadata": (0.25, 0.75), "sync": (0.08, 0.92),
}  # fmt: skip
#: Steps of the page's axis: times are whole numbers, so that the text is short.
STEPS = 100_000
QUARTERS = (0.0, 0.25, 0.5, 0.75, 1.0)
NARROWEST_PX = 0.4
_serial = count()


class Bar(msgspec.Struct):
    """Spans that are drawn as one, in the activity that took most of it."""

    begin_s: float
    end_s: float
    by_activity: dict[Activity, float]  # seconds

    @property
    def activity(self) -> Activity:
        """What took most of it."""
        return max(self.by_activity, key=self.by_activity.__getitem__)


class Timeline(Chart):
    """On paper it has no script, and its bars are at least as wide as can be seen."""

    def __init__(self, title: str, about: str, page: str, paper: str) -> None:
        super().__init__(title, about, page, WIDTH_PX)
        self._paper = paper

    def on_paper(self) -> str:
        """SVG in colours of its own, for light paper."""
        return coloured(self._paper, paper=True)


def merged(spans: Iterable[Span], bars_max: int, length_s: float) -> tuple[list[Bar], float]:
    """At most so many bars, and the gap that they were merged over."""
    bars = [Bar(span.begin_s, span.end_s, {span.activity: span.end_s - span.begin_s}) for span in spans]
    gap_s = length_s * FINEST
    bars = _coarser(bars, gap_s)
    while len(bars) > bars_max:
        gap_s *= 2 if len(bars) > 4 * bars_max else 1.25
        bars = _coarser(bars, gap_s)
    return bars, gap_s


def far(bars: Iterable[Bar], length_s: float) -> list[Bar]:
    """The bars as the whole run shows them: what is closer than a pixel is one."""
    copies = [Bar(bar.begin_s, bar.end_s, dict(bar.by_activity)) for bar in bars]
    return _coarser(copies, length_s / (WIDTH_PX - LABELS_PX))


def _coarser(bars: list[Bar], gap_s: float) -> list[Bar]:
    """Joins neighbours that are closer than the gap, if they are of one activity or together shorter than it.

    So two neighbours take the gap at least: there are at most 2 * run / gap + 1 of them.
    """
    found: list[Bar] = []
    for bar in bars:
        last = found[-1] if found else None
        if last is not None and bar.begin_s - last.end_s < gap_s and _is_one(last, bar, gap_s):
            last.end_s = max(last.end_s, bar.end_s)
            for activity, spent_s in bar.by_activity.items():
                last.by_activity[activity] = last.by_activity.get(activity, 0.0) + spent_s
        else:
            found.append(bar)
    return found


def _is_one(left: Bar, right: Bar, gap_s: float) -> bool:
    return right.end_s - left.begin_s < gap_s or left.activity == right.activity


def timeline(
    ranks: Sequence[RankCalls], length_s: float, names: dict[str, str], title: str, about: str
) -> tuple[Timeline, int, float]:
    """The chart, the number of its bars, and the largest gap that was merged."""
    drawn = [merged(one.spans, BARS_MAX // len(ranks), length_s) for one in ranks]
    rows = [bars for bars, _ in drawn]
    labels = [f"rank {one.rank}" for one in ranks]
    charts = (_svg(rows, labels, length_s, names, title, about, paper) for paper in (False, True))
    return Timeline(title, about, *charts), sum(map(len, rows)), max(gap_s for _, gap_s in drawn)


def _svg(
    rows: list[list[Bar]],
    labels: list[str],
    length_s: float,
    names: dict[str, str],
    title: str,
    about: str,
    paper: bool,
) -> str:
    row_px = ROW_PX if len(rows) <= MANY else ROW_PX_MANY
    height_px, width_px = row_px * len(rows), WIDTH_PX - LABELS_PX
    whole = [far(bars, length_s) for bars in rows]
    if paper:
        scale = width_px / length_s
        bars = (
            f'<g transform="translate({LABELS_PX} {TOP_PX})">{_paths(whole, row_px, scale, NARROWEST_PX)}</g>'
        )
    else:
        near, wide = (_paths(one, row_px, STEPS / length_s, 1) for one in (rows, whole))
        bars = (
            f'<svg class="bars" x="{LABELS_PX}" y="{TOP_PX}" width="{width_px}" height="{height_px}" '
            f'viewBox="0 0 {STEPS} {height_px}" preserveAspectRatio="none">'
            f'<g class="far">{wide}</g><g class="near" display="none">{near}</g></svg>'
        )
    name = f"t{next(_serial)}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH_PX} {TOP_PX + height_px + AXIS_PX}" '
        f'role="img" aria-labelledby="{name}-title {name}-about" data-timeline="{length_s!r}" '
        f'font-family="{escape(FONTS)}" font-size="11" fill="{placeholder("text")}">'
        f'<title id="{name}-title">{escape(title)}</title><desc id="{name}-about">{escape(about)}</desc>'
        f"{_legend(_used(rows), names)}{_rows(labels, row_px)}{bars}{_axis(length_s, height_px)}</svg>"
    )


def _paths(rows: list[list[Bar]], row_px: int, scale: float, narrowest: float) -> str:
    """One path for each activity. Lines around bars make those visible that are narrower than a pixel."""
    return "".join(
        f'<path fill="{placeholder(activity)}" stroke="{placeholder(activity)}" '
        f'stroke-width="{NARROWEST_PX}" '
        f'vector-effect="non-scaling-stroke" d="{_path(rows, activity, row_px, scale, narrowest)}"/>'
        for activity in _used(rows)
    )


def _used(rows: list[list[Bar]]) -> list[Activity]:
    return [
        activity for activity in ACTIVITIES if any(bar.activity == activity for bars in rows for bar in bars)
    ]


def _path(rows: list[list[Bar]], activity: Activity, row_px: int, scale: float, narrowest: float) -> str:
    top, bottom = PLACES[activity]
    pieces = []
    for at, bars in enumerate(rows):
        y, height = f"{(at + top) * row_px:.4g}", f"{(bottom - top) * row_px:.3g}"
        for bar in bars:
            if bar.activity == activity:
                width = max(narrowest, (bar.end_s - bar.begin_s) * scale)
                x, width = (f"{value:.1f}".removesuffix(".0") for value in (bar.begin_s * scale, width))
                pieces.append(f"M{x} {y}h{width}v{height}h-{width}z")
    return "".join(pieces)


def _legend(used: Sequence[Activity], names: dict[str, str]) -> str:
    x, found = LABELS_PX, []
    for activity in used:
        top, bottom = PLACES[activity]
        found.append(
            f'<rect x="{x}" y="{2 + 14 * top:.1f}" width="14" height="{14 * (bottom - top):.1f}" '
            f'fill="{placeholder(activity)}"/><text x="{x + 19}" y="13">{escape(names[activity])}</text>'
        )
        x += 36 + 7 * len(names[activity])
    return "".join(found)


def _rows(labels: list[str], row_px: int) -> str:
    """Names of the rows, of many every fourth; a line between any two."""
    step = 1 if row_px == ROW_PX else 4
    lines = []
    for at, label in enumerate(labels):
        y = TOP_PX + at * row_px
        lines.append(f'<path d="M{LABELS_PX} {y}H{WIDTH_PX}" stroke="{placeholder("line")}"/>')
        if at % step == 0:
            x = LABELS_PX - 8
            lines.append(f'<text x="{x}" y="{y + row_px / 2 + 4:g}" text-anchor="end">{escape(label)}</text>')
    return "".join(lines)


def _axis(length_s: float, height_px: int) -> str:
    y = TOP_PX + height_px
    ticks = [f'<path d="M{LABELS_PX} {y}H{WIDTH_PX}" stroke="{placeholder("muted")}"/>']
    for share in QUARTERS:
        x = LABELS_PX + share * (WIDTH_PX - LABELS_PX)
        anchor = {0.0: "start", 1.0: "end"}.get(share, "middle")
        ticks.append(
            f'<text class="tick" x="{x:g}" y="{y + 16}" text-anchor="{anchor}" fill="{placeholder("muted")}">'
            f"{escape(quantities.duration(share * length_s))}</text>"
        )
    return "".join(ticks)
