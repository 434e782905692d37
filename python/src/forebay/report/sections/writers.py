"""Which ranks moved the data of a shared file: aggregators, writers, what collective buffering did."""

from __future__ import annotations

from forebay import quantities
from forebay.profiles import metrics
from forebay.profiles.model import Collective, File
from forebay.report.charts.writers import writers_of_ranks
from forebay.report.document import Cell, Column, Section, Table, number_cell
from forebay.report.sections.context import SectionContext

FILES_MAX = 20
CHARTS_MAX = 3
COLUMNS = [
    Column("file", "path"), Column("ranks"), Column("writers"), Column("aggregators"),
    Column("active: 1, ≤ ½, > ½, all", "text"),
    Column("reads in order to write"), Column("their bytes"), Column("stripe-sized writes"),
    Column("stripe unit"),
]  # fmt: skip


def section(context: SectionContext) -> Section:
    """The program's section."""
    files = shared(context)
    if not files:
        return Section(
            "writers",
            "Aggregators and writers",
            "No file was shared between ranks through MPI-IO, or written by several.",
        )
    told_files = [file for file in files if _is_known(file)]
    with_writers = [file for file in files if file.writers][:CHARTS_MAX]
    rows = [_row(file) for file in files[:FILES_MAX]]
    rest = f"and {quantities.count(len(files) - FILES_MAX)} more" if len(files) > FILES_MAX else None
    return Section(
        "writers",
        "Aggregators and writers",
        _summary(files[0]) if told_files else "The source does not tell which ranks wrote.",
        charts=[_chart(context, file) for file in with_writers],
        tables=[Table("Shared files, by bytes", COLUMNS, rows, rest)],
    )


def shared(context: SectionContext) -> list[File]:
    """Files of several ranks, or of MPI-IO, those with most bytes first."""
    files = [file for file in context.program.files if (file.ranks or 0) > 1 or "MPI-IO" in file.layers]
    return sorted(files, key=lambda file: metrics.file_bytes(file) or 0, reverse=True)


def _is_known(file: File) -> bool:
    return bool(file.writers) or _writers(file) is not None or _aggregators(file.collective) is not None


def _writers(file: File) -> int | None:
    below = file.layers.get("POSIX")
    return (below and below.write.ranks) or len(file.writers) or None


def _aggregators(collective: Collective | None) -> int | None:
    return collective.aggregators_write if collective else None


def _row(file: File) -> list[Cell]:
    collective = file.collective or Collective()
    below = file.layers.get("POSIX")
    active = ", ".join(map(str, collective.active)) if collective.active else quantities.UNKNOWN
    return [
        Cell(file.path),
        number_cell(file.ranks),
        number_cell(_writers(file)),
        number_cell(collective.aggregators_write),
        Cell(active),
        number_cell(collective.rmw_calls),
        number_cell(collective.rmw_bytes, quantities.size),
        number_cell(metrics.stripe_share(below.write) if below else None, quantities.percent),
        number_cell(file.stripe_bytes, quantities.size),
    ]


def _chart(context: SectionContext, file: File):
    moved = [(one.rank, one.bytes, one.aggregator) for one in file.writers]
    ranks = context.program.ranks or max(rank for rank, _, _ in moved) + 1
    most = context.limit(
        lambda peer: max((one.bytes for each in shared(peer)[:CHARTS_MAX] for one in each.writers), default=0)
    )
    about = ", ".join(f"rank {rank}: {quantities.size(amount)}" for rank, amount, _ in moved[:32])
    return writers_of_ranks(moved, ranks, f"{file.path}: bytes written by rank", about, most)


def _summary(file: File) -> str:
    ranks, writers, aggregators = file.ranks, _writers(file), _aggregators(file.collective)
    who = f"{quantities.count(writers)} of {quantities.count(ranks)} ranks wrote {file.path}"
    if aggregators:
        return f"{who}, {quantities.count(aggregators)} of them as aggregators of collective calls."
    return f"{who}." if writers else f"{file.path}: the source does not say which ranks wrote."
