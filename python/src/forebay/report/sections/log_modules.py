"""Which modules a Darshan log has, in which versions, and what wrote it."""

from __future__ import annotations

from forebay import quantities
from forebay.profiles.model import LogFormat, LogModule
from forebay.report.document import Cell, Column, Section, Table, number_cell
from forebay.report.sections.context import SectionContext

COLUMNS = [Column("module", "word"), Column("format version"), Column("in this report", "text")]


def section(context: SectionContext) -> Section | None:
    """The program's section; none if the source is no Darshan log."""
    log = context.program.log
    if log is None:
        return None
    rows = [[Cell(one.name), number_cell(one.version), Cell(_state(one))] for one in log.modules]
    return Section(
        "log-modules",
        "Modules of the log",
        _summary(log),
        tables=[Table("Modules", COLUMNS, rows)] if rows else [],
    )


def _state(module: LogModule) -> str:
    if not module.read:
        return "not read"
    return "read" if module.complete else "read; incomplete"


def _summary(log: LogFormat) -> str:
    number = len(log.modules)
    modules = "one module" if number == 1 else f"{quantities.count(number)} modules"
    return f"{log.writer or 'An unknown library'} wrote {modules} in log format {log.version}."
