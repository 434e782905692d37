"""Where the data were: by mount point."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from forebay import quantities
from forebay.profiles import metrics
from forebay.profiles.model import STREAMS, File
from forebay.report.document import Cell, Column, Section, Table, number_cell
from forebay.report.sections.context import SectionContext

COLUMNS = [
    Column("mount point", "path"),
    Column("file system", "text"),
    *map(Column, ("files", "written", "read", "share of the bytes")),
]


@dataclass
class _Mount:
    kind: str | None = None
    files: int = 0
    written: int = 0
    read: int = 0

    def add(self, file: File) -> None:
        top = metrics.top_layer(file)
        self.kind = self.kind or file.file_system
        self.files += 1
        self.written += (top[1].write.bytes or 0) if top else 0
        self.read += (top[1].read.bytes or 0) if top else 0

    @property
    def moved(self) -> int:
        return self.written + self.read


def section(context: SectionContext) -> Section | None:
    """The program's section; none where no mount point is known."""
    found: dict[str | None, _Mount] = defaultdict(_Mount)
    for file in context.program.files:
        if file.path not in STREAMS:
            found[file.mount].add(file)
    if not any(found):
        return None
    ordered = sorted(found.items(), key=lambda item: -item[1].moved)
    whole = sum(one.moved for one in found.values())
    rows = [_row(mount, one, whole) for mount, one in ordered]
    return Section(
        "mounts",
        "Data by mount point",
        _summary(ordered, whole),
        tables=[Table("Mount points", COLUMNS, rows)],
    )


def _row(mount: str | None, one: _Mount, whole: int) -> list[Cell]:
    return [
        Cell(mount or quantities.UNKNOWN),
        Cell(one.kind or quantities.UNKNOWN),
        number_cell(one.files),
        number_cell(one.written, quantities.size),
        number_cell(one.read, quantities.size),
        number_cell(one.moved / whole if whole else None, quantities.percent),
    ]


def _summary(ordered: list[tuple[str | None, _Mount]], whole: int) -> str:
    mount, most = ordered[0]
    if not whole:
        return "No data were moved."
    where = f"{mount} ({most.kind})" if mount and most.kind else mount or "places that are not known"
    return (
        f"{quantities.percent(most.moved / whole)} of {quantities.size(whole)} went to or came from {where}."
    )
