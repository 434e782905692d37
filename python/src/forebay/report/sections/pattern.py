"""In which order and along which boundaries the system calls went."""

from __future__ import annotations

from forebay import quantities
from forebay.profiles import metrics
from forebay.profiles.model import LayerName
from forebay.report.document import Cell, Column, Section, Table, number_cell
from forebay.report.sections.context import SectionContext

NOTES = [
    "Sequential: a call begins at or behind the end of the same rank's previous one in that direction. "
    "Consecutive: exactly there.",
    "Stripe-sized: exactly one stripe unit. Not aligned: begins off a multiple of the file system's block.",
]


def section(context: SectionContext) -> Section:
    """The program's section."""
    rows = [row for layer in context.layers if layer != "MPI-IO" for row in _rows(context, layer)]
    known = [row for row in rows if any(cell.number is not None for cell in row[3:])]
    if not known:
        return Section(
            "pattern", "Order and alignment", "The source does not tell in which order calls were made."
        )
    names = ["calls", "sequential", "consecutive", "gaps", "bytes skipped", "stripe-sized"]
    columns = [Column("layer", "text"), Column("direction", "text"), *(Column(name) for name in names)]
    return Section(
        "pattern",
        "Order and alignment",
        _summary(context),
        tables=[Table("Order of system calls", columns, known)],
        facts=_alignment(context),
        notes=NOTES,
    )


def _rows(context: SectionContext, layer: LayerName) -> list[list[Cell]]:
    sums = context.totals(layer)
    return [
        _row(layer, name, traffic)
        for name, traffic in (("writes", sums.write), ("reads", sums.read))
        if traffic.calls
    ]


def _row(layer: LayerName, name: str, traffic: metrics.TrafficTotals) -> list[Cell]:
    return [
        Cell(layer),
        Cell(name),
        number_cell(traffic.calls),
        number_cell(_part(traffic.sequential, traffic.calls), quantities.percent),
        number_cell(_part(traffic.consecutive, traffic.calls), quantities.percent),
        number_cell(traffic.gaps),
        number_cell(traffic.gap_bytes, quantities.size),
        number_cell(metrics.stripe_share(traffic), quantities.percent),
    ]


def _part(some: int | None, calls: int | None) -> float | None:
    return None if some is None or not calls else some / calls


def _alignment(context: SectionContext) -> list[tuple[str, str]]:
    if "POSIX" not in context.layers:
        return []
    sums = context.totals("POSIX")
    part = _part(sums.not_aligned, (sums.read.calls or 0) + (sums.write.calls or 0))
    blocks = {
        layer.alignment_bytes
        for _, layer in metrics.layers_of([context.program], "POSIX")
        if layer.alignment_bytes
    }
    told_blocks = " or ".join(quantities.size(block) for block in sorted(blocks)) or "the block"
    return (
        []
        if part is None
        else [("not aligned", f"{quantities.percent(part)} of the POSIX calls begin off {told_blocks}")]
    )


def _summary(context: SectionContext) -> str:
    sentences = []
    for layer in context.layers:
        for name, traffic in (("writes", context.totals(layer).write), ("reads", context.totals(layer).read)):
            part = _part(traffic.sequential, traffic.calls)
            if layer == "POSIX" and part is not None:
                sentences.append(
                    f"{quantities.percent(part)} of {quantities.count(traffic.calls)} {name} are sequential."
                )
    return " ".join(sentences) or "The order of POSIX calls is not known."
