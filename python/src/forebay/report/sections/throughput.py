"""How much went through each layer, and how fast."""

from __future__ import annotations

from forebay import quantities
from forebay.profiles import metrics
from forebay.profiles.model import LayerName
from forebay.report.charts.bars import Series, bars
from forebay.report.document import Cell, Section, Table, columns, number_cell
from forebay.report.sections.context import SectionContext

COLUMNS = columns(
    "layer", "files", "read", "read calls", "written", "write calls", "slowest rank", "throughput"
)  # fmt: skip


def section(context: SectionContext) -> Section:
    """The program's section."""
    found = {layer: metrics.performance(context.program, layer) for layer in context.layers}
    known = {layer: one for layer, one in found.items() if one}
    facts = _efficiency(context)
    return Section(
        "throughput",
        "Throughput per layer",
        _summary(context, known),
        charts=[_chart(context, known)] if known else [],
        tables=[
            Table("Bytes and calls of each layer", COLUMNS, [_row(context, *item) for item in found.items()])
        ],
        facts=facts,
        notes=_notes([one.how for one in known.values()]),
    )


def _chart(context: SectionContext, known: dict[LayerName, metrics.Performance]):
    mark = (context.machine.peak_bytes_per_s, f"peak of {context.machine.name}") if context.machine else None
    values = [one.bytes_per_s for one in known.values()]
    about = "; ".join(f"{layer}: {quantities.rate(one.bytes_per_s)}" for layer, one in known.items())
    limit = max(context.limit(_fastest) or 0, mark[0] if mark else 0)
    title = "Throughput as the slowest rank saw it"
    return bars(
        list(known), [Series("suggestion", "throughput", values)], title, about, quantities.rate, limit, mark
    )


def _fastest(context: SectionContext) -> float | None:
    return max(
        (one.bytes_per_s for layer in context.layers if (one := metrics.performance(context.program, layer))),
        default=None,
    )


def _row(context: SectionContext, layer: LayerName, speed: metrics.Performance | None) -> list[Cell]:
    sums = context.totals(layer)
    return [
        Cell(layer),
        number_cell(sums.files),
        number_cell(sums.read.bytes, quantities.size),
        number_cell(sums.read.calls),
        number_cell(sums.write.bytes, quantities.size),
        number_cell(sums.write.calls),
        number_cell(speed and speed.seconds, quantities.duration),
        number_cell(speed and speed.bytes_per_s, quantities.rate),
    ]


def _efficiency(context: SectionContext) -> list[tuple[str, str]]:
    if context.machine is None:
        return []
    found = metrics.efficiency(context.alone, context.machine)
    peak = f"{quantities.rate(context.machine.peak_bytes_per_s)} ({context.machine.peak_is})"
    if found is None:
        return [("storage's peak", peak), ("I/O efficiency", "not known: the throughput is not")]
    share = f"{quantities.percent(found.share)} of the peak, at {found.layer}"
    return [
        ("storage's peak", peak),
        ("I/O efficiency", share + ("; a cache was in front" if found.share > 1 else "")),
    ]


def _summary(context: SectionContext, known: dict[LayerName, metrics.Performance]) -> str:
    if not context.layers:
        return "No file was recorded."
    if not known:
        return "The source tells no time of the slowest rank, so no throughput is known."
    layer = next(layer for layer in metrics.layers_by_bytes(context.program) if layer in known)
    one = known[layer]
    moved = f"{layer} moved {quantities.size(one.bytes)} at {quantities.rate(one.bytes_per_s)}"
    return f"{moved}, as the slowest rank saw it."


def _notes(hows: list[str]) -> list[str]:
    """How throughput was computed; of several ways the one that says most."""
    return [f"Throughput is {max(hows, key=len)}."] if hows else []
