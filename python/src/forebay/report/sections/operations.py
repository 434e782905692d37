"""How many calls of which kind were made."""

from __future__ import annotations

from forebay import quantities
from forebay.profiles.metrics import LayerTotals
from forebay.report.charts.bars import Series, bars
from forebay.report.document import Cell, Section, Table, columns, number_cell
from forebay.report.sections.context import SectionContext

OPERATIONS = ("read", "write", "open", "stat", "seek", "sync")
INKS = {
    "MPI-IO independent": "metadata",
    "MPI-IO collective": "waiting",
    "POSIX": "suggestion",
    "STDIO": "sync",
    "DFS": "suggestion",
    "DAOS": "suggestion",
}


def section(context: SectionContext) -> Section:
    """The program's section."""
    counted = _counted(context)
    if not any(value for values in counted.values() for value in values):
        return Section("operations", "Operation counts", "No calls were counted.")
    limit = context.limit(
        lambda peer: max((v or 0 for values in _counted(peer).values() for v in values), default=0)
    )
    series = [Series(INKS[name], name, values) for name, values in counted.items() if any(values)]
    about = "; ".join(f"{one.name}: {_values_text(one.values)}" for one in series)
    rows = [
        [Cell(operation), *(number_cell(values[at]) for values in counted.values())]
        for at, operation in enumerate(OPERATIONS)
        if any(values[at] for values in counted.values())
    ]
    return Section(
        "operations",
        "Operation counts",
        _summary(counted),
        charts=[bars(OPERATIONS, series, "Calls of all ranks", about, quantities.count, limit)],
        tables=[Table("Calls of all ranks", columns("operation", *counted), rows, charted=True)],
    )


def _counted(context: SectionContext) -> dict[str, list[int | None]]:
    """For each interface the calls in the order of OPERATIONS. Opens of MPI-IO count as collective."""
    counted: dict[str, list[int | None]] = {}
    for layer in context.layers:
        sums = context.totals(layer)
        below = [sums.opens, sums.stats, sums.seeks, sums.syncs]
        if layer == "MPI-IO":
            counted["MPI-IO independent"] = [*_mpiio(sums, collective=False), None, None, None, None]
            counted["MPI-IO collective"] = [*_mpiio(sums, collective=True), *below]
        else:
            counted[layer] = [sums.read.calls, sums.write.calls, *below]
    return counted


def _mpiio(sums: LayerTotals, collective: bool) -> list[int | None]:
    """Reads and writes. Non-blocking calls count as independent, split ones as collective."""

    def calls(traffic) -> int | None:
        first, second = (
            (traffic.collective, traffic.split) if collective else (traffic.independent, traffic.nonblocking)
        )
        return None if first is None and second is None else (first or 0) + (second or 0)

    return [calls(sums.read), calls(sums.write)]


def _values_text(values: list[int | None]) -> str:
    named = zip(OPERATIONS, values, strict=True)
    return ", ".join(f"{operation} {quantities.count(value)}" for operation, value in named if value)


def _summary(counted: dict[str, list[int | None]]) -> str:
    sentences = []
    collective, independent = (
        sum(v or 0 for v in counted.get(f"MPI-IO {kind}", [])[:2]) for kind in ("collective", "independent")
    )
    if collective or independent:
        sentences.append(
            f"{quantities.percent(collective / (collective + independent))} of "
            f"{quantities.count(collective + independent)} reads and writes of MPI-IO are collective."
        )
    for layer in ("POSIX", "DFS", "DAOS"):
        if layer not in counted:
            continue
        data = sum(value or 0 for value in counted[layer][:2])
        others = sum(value or 0 for value in counted[layer][2:])
        sentences.append(
            f"{layer}: {quantities.count(data)} calls move data, "
            f"{quantities.count(others)} open, ask, seek or sync."
        )
    return (
        " ".join(sentences)
        or f"STDIO alone was used: {quantities.count(sum(v or 0 for v in counted.get('STDIO', [])))} calls."
    )
