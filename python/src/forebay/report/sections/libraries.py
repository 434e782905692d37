"""What HDF5 and PnetCDF did: datasets, variables and files, where the source has them."""

from __future__ import annotations

from collections.abc import Callable

from forebay import quantities
from forebay.profiles import metrics
from forebay.profiles.model import LibraryObject
from forebay.report.document import Cell, Column, Section, Table, number_cell
from forebay.report.sections.context import SectionContext

ROWS_MAX = 50
COLUMNS = [
    Column("name", "path"),
    Column("is a", "word"),
    *map(Column, ("written", "writes", "read", "reads", "collective", "time, all ranks")),
]


def of_library(library: str) -> Callable[[SectionContext], Section | None]:
    """Makes the section of one library; none where the program has no records of it."""

    def section(context: SectionContext) -> Section | None:
        found = [one for one in context.program.objects if one.library == library]
        if not found:
            return None
        found.sort(key=_seconds, reverse=True)
        rest = len(found) - ROWS_MAX
        return Section(
            library.lower(),
            library,
            _summary(library, found),
            tables=[
                Table(
                    "Datasets, variables and files, those with most time first",
                    COLUMNS,
                    [_row(one) for one in found[:ROWS_MAX]],
                    f"and {quantities.count(rest)} more with less time" if rest > 0 else None,
                    sortable=True,
                )
            ],
            notes=["The time of calls below, of MPI-IO and of the system, is a part of the library's."],
        )

    return section


def _seconds(one: LibraryObject) -> float:
    return metrics.known_sum((one.read_s, one.write_s, one.metadata_s, one.wait_s)) or 0.0


def _row(one: LibraryObject) -> list[Cell]:
    calls = (one.reads or 0) + (one.writes or 0)
    share = one.collective / calls if calls and one.collective is not None else None
    return [
        Cell(one.path),
        Cell(one.kind),
        number_cell(one.written_bytes, quantities.size),
        number_cell(one.writes),
        number_cell(one.read_bytes, quantities.size),
        number_cell(one.reads),
        number_cell(share, quantities.percent),
        number_cell(_seconds(one), quantities.duration),
    ]


def _summary(library: str, found: list[LibraryObject]) -> str:
    data = [one for one in found if one.reads is not None or one.writes is not None]
    counted = data or found
    written, read = (
        metrics.known_sum(getattr(one, name) for one in counted) for name in ("written_bytes", "read_bytes")
    )
    kinds = {"dataset": 0, "variable": 0, "file": 0}
    for one in found:
        kinds[one.kind] += 1
    numbers = " and ".join(
        f"{quantities.count(number)} {kind}{'s' if number > 1 else ''}"
        for kind, number in kinds.items()
        if number
    )
    if written is None and read is None:
        return f"{library} had {numbers}. The log does not tell how much they moved."
    return f"{library} wrote {quantities.size(written)} and read {quantities.size(read)}, in {numbers}."
