"""Which rank moved how much, and when."""

from __future__ import annotations

from forebay import quantities
from forebay.profiles.model import Heat
from forebay.report.document import Cell, Section, Table, columns, number_cell
from forebay.report.sections.context import SectionContext

DIRECTIONS = (("write", "written"), ("read", "read"))
#: Spans in the table next to the map.
SPANS = 10


def section(context: SectionContext) -> Section:
    """The program's section."""
    shown = [
        (heat, direction, name)
        for heat in context.program.heat
        for direction, name in DIRECTIONS
        if _moved(heat, direction)
    ]
    if not shown:
        return Section("over-time", "Ranks over time", "The source has no record of the ranks over time.")
    return Section(
        "over-time",
        "Ranks over time",
        _summary(*shown[0]),
        charts=[_chart(context, *one) for one in shown if _is_charted(context, one[0], one[1])],
        tables=[_table(context, shown)],
    )


def _moved(heat: Heat, direction: str) -> int:
    return sum(map(sum, getattr(heat, direction)))


def _is_charted(context: SectionContext, heat: Heat, direction: str) -> bool:
    """Not what is a ten-thousandth of all that was moved: messages, configuration."""
    most = context.limit(
        lambda peer: max(_moved(h, w) for h in peer.program.heat for w, _ in DIRECTIONS)
        if peer.program.heat
        else 0
    )
    return _moved(heat, direction) * 10_000 >= most


def _chart(context: SectionContext, heat: Heat, direction: str, name: str):
    from forebay.report.charts.heat import heat_map

    longest_s = context.limit(_length_s) or heat.bin_s
    cell = context.limit(
        lambda peer: max(
            (_cell(one, direction) for one in peer.program.heat if one.layer == heat.layer), default=0
        )
    )
    about = f"{_summary(heat, direction, name)} The table below has the sums."
    return heat_map(
        heat,
        direction,
        _length_s(context),
        (longest_s, cell or 1),
        f"{heat.layer}: bytes {name} by rank and time",
        about,
    )


def _length_s(context: SectionContext) -> float:
    recorded_s = max(
        (len(heat.write[0]) * heat.bin_s for heat in context.program.heat if heat.write), default=0.0
    )
    return min(context.program.wall_s or recorded_s, recorded_s) or recorded_s


def _cell(heat: Heat, direction: str) -> int:
    return max((max(row, default=0) for row in getattr(heat, direction)), default=0)


def _summary(heat: Heat, direction: str, name: str) -> str:
    rows = [sum(row) for row in getattr(heat, direction)]
    active = sum(1 for amount in rows if amount)
    who = "rows of ranks" if heat.ranks_per_row > 1 else "ranks"
    most = max(rows) / sum(rows)
    spans = sum(1 for column in zip(*getattr(heat, direction), strict=True) if any(column))
    bins = len(getattr(heat, direction)[0])
    when = "" if bins < SPANS else f" Data moved in {quantities.percent(spans / bins)} of the time."
    return (
        f"{heat.layer}: {quantities.size(sum(rows))} {name} by {active} of {len(rows)} {who}, "
        f"the busiest with {quantities.percent(most)}.{when}"
    )


def _table(context: SectionContext, shown: list[tuple[Heat, str, str]]) -> Table:
    length_s = _length_s(context)
    edges = [length_s * n / SPANS for n in range(SPANS + 1)]
    sums = [_spans(heat, direction, length_s) for heat, direction, _ in shown]
    rows = [
        [
            Cell(f"{quantities.duration(edges[n])} to {quantities.duration(edges[n + 1])}"),
            *(number_cell(one[n], quantities.size) for one in sums),
        ]
        for n in range(SPANS)
    ]
    if all(len(heat.write[0]) < 2 for heat, _, _ in shown):
        rows = [
            [
                Cell(f"0 to {quantities.duration(length_s)}"),
                *(number_cell(sum(one), quantities.size) for one in sums),
            ]
        ]
    names = columns("time since the begin", *(f"{heat.layer} {name}" for heat, _, name in shown))
    return Table("Bytes of all ranks by time", names, rows)


def _spans(heat: Heat, direction: str, length_s: float) -> list[int]:
    spans = [0] * SPANS
    for at, column in enumerate(zip(*getattr(heat, direction), strict=True)):
        middle_s = (at + 0.5) * heat.bin_s
        spans[min(SPANS - 1, int(middle_s / length_s * SPANS))] += sum(column)
    return spans
