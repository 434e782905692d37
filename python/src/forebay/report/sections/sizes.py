"""In which sizes the data were moved."""

from __future__ import annotations

from forebay import quantities
from forebay.profiles.metrics import LayerTotals, TrafficTotals
from forebay.profiles.model import SIZE_CLASS_ENDS, SIZE_CLASS_NAMES, LayerName, Traffic
from forebay.report.charts.bars import Series, bars
from forebay.report.document import Cell, Column, Section, Table, number_cell
from forebay.report.sections.context import SectionContext

DIRECTIONS = (("write", "writes"), ("read", "reads"))


def section(context: SectionContext) -> Section:
    """The program's section."""
    sums = {layer: context.totals(layer) for layer in context.layers}
    counted = {
        layer: one
        for layer, one in sums.items()
        if any(_sizes(one, direction) for direction, _ in DIRECTIONS)
    }
    charts = [_chart(context, *item) for item in counted.items()]
    tables = [_classes(counted)] if counted else []
    common = [row for layer, one in sums.items() for row in _common(layer, one)]
    if common:
        names = [
            Column("layer", "text"),
            Column("direction", "text"),
            Column("size"),
            Column("calls"),
            Column("share"),
        ]
        tables.append(Table("Commonest sizes", names, common))
    return Section("sizes", "Access sizes", _summary(sums), charts=charts, tables=tables)


def usual_size(traffic: Traffic | TrafficTotals) -> Cell | None:
    """The size of at least half of the calls, else their class; None if neither is known."""
    calls = traffic.calls or 0
    size_bytes, number = traffic.common_sizes[0] if traffic.common_sizes else (0, 0)
    if number and 2 * number >= calls:
        return Cell(quantities.size(size_bytes), size_bytes)
    if traffic.sizes and calls and 2 * max(traffic.sizes) >= calls:
        at = traffic.sizes.index(max(traffic.sizes))
        return Cell(f"{SIZE_CLASS_NAMES[at]} bytes", SIZE_CLASS_ENDS[at])
    return None


def _sizes(sums: LayerTotals, direction: str) -> list[int]:
    return [] if not any(getattr(sums, direction).sizes or []) else getattr(sums, direction).sizes


def _chart(context: SectionContext, layer: LayerName, sums: LayerTotals):
    series = [
        Series(direction, name, sizes) for direction, name in DIRECTIONS if (sizes := _sizes(sums, direction))
    ]
    limit = context.limit(
        lambda peer: max(
            [n for direction, _ in DIRECTIONS for n in _sizes(peer.totals(layer), direction)], default=0
        )
    )
    used = _used(context, layer)
    series = [Series(one.ink, one.name, one.values[used]) for one in series]
    about = "; ".join(f"{one.name} {_classes_text(SIZE_CLASS_NAMES[used], one.values)}" for one in series)
    return bars(
        SIZE_CLASS_NAMES[used], series, f"{layer}: calls by size in bytes", about, quantities.count, limit
    )


def _used(context: SectionContext, layer: LayerName) -> slice:
    """From the first to the last class with calls, of all jobs that are compared."""
    of_peers = [peer.totals(layer) for peer in context.peers or [context]]
    used = [
        at
        for one in of_peers
        for direction, _ in DIRECTIONS
        for at, calls in enumerate(_sizes(one, direction))
        if calls
    ]
    return slice(min(used), max(used) + 1)


def _classes_text(names, calls) -> str:
    return ", ".join(f"{name}: {quantities.count(n)}" for name, n in zip(names, calls, strict=True) if n)


def _classes(counted: dict[LayerName, LayerTotals]) -> Table:
    kinds = [
        (layer, direction, name)
        for layer in counted
        for direction, name in DIRECTIONS
        if _sizes(counted[layer], direction)
    ]
    rows = [
        [Cell(name), *(number_cell(_sizes(counted[layer], direction)[at]) for layer, direction, _ in kinds)]
        for at, name in enumerate(SIZE_CLASS_NAMES)
        if any(_sizes(counted[layer], direction)[at] for layer, direction, _ in kinds)
    ]
    names = [Column("bytes", "text"), *(Column(f"{layer} {name}") for layer, _, name in kinds)]
    return Table("Calls by size", names, rows, charted=True)


def _common(layer: LayerName, sums: LayerTotals) -> list[list[Cell]]:
    rows = []
    for direction, name in DIRECTIONS:
        traffic = getattr(sums, direction)
        for size, calls in traffic.common_sizes:
            part = calls / traffic.calls if traffic.calls else None
            rows.append(
                [
                    Cell(layer),
                    Cell(name),
                    number_cell(size, quantities.exact_size),
                    number_cell(calls),
                    number_cell(part, quantities.percent),
                ]
            )
    return rows


def _summary(sums: dict[LayerName, LayerTotals]) -> str:
    told_layers = [text for layer, one in sums.items() if (text := _commonest_text(layer, one))]
    return " ".join(told_layers[:2]) or "No sizes of accesses are known."


def _commonest_text(layer: LayerName, sums: LayerTotals) -> str | None:
    direction, name = max(DIRECTIONS, key=lambda pair: sum(_sizes(sums, pair[0])))
    sizes = _sizes(sums, direction)
    if not sizes:
        return None
    largest = max(range(len(sizes)), key=sizes.__getitem__)
    part = quantities.percent(sizes[largest] / sum(sizes))
    return (
        f"{layer}: {part} of {quantities.count(sum(sizes))} {name} are of {SIZE_CLASS_NAMES[largest]} bytes."
    )
