"""Which hints were asked for, which are in force, which did nothing."""

from __future__ import annotations

from forebay import quantities
from forebay.profiles.model import File, Hints
from forebay.report.document import Cell, Column, Section, Table
from forebay.report.sections.context import SectionContext

FILES_MAX = 20
COLUMNS = [
    Column("file", "path"), Column("hint", "text"), Column("asked for", "text"), Column("in force", "text"),
    Column("effect", "text"),
]  # fmt: skip


def section(context: SectionContext) -> Section:
    """The program's section."""
    files = [file for file in context.program.files if file.hints]
    if not files:
        return Section("hints", "Hints", "The source does not tell which hints were in force.")
    rows = [row for file in files[:FILES_MAX] for row in _rows(file, file.hints)]
    rest = f"and the hints of {len(files) - FILES_MAX} more files" if len(files) > FILES_MAX else None
    tables = [Table("Hints of each file", COLUMNS, rows, rest)] if rows else []
    untold = any(file.hints.in_force is None for file in files)
    notes = ["This MPI does not tell which hints are in force."] if untold else []
    return Section("hints", "Hints", _summary(files), tables=tables, notes=notes)


def asked(hints: Hints) -> dict[str, str]:
    """Hints of the environment override the program's own."""
    return {**hints.program, **hints.environment}


def _rows(file: File, hints: Hints) -> list[list[Cell]]:
    without = {one.key: one for one in hints.without_effect}
    wanted, force = asked(hints), hints.in_force or {}
    rows = []
    for key in dict.fromkeys([*without, *wanted, *force]):
        said = wanted.get(key) or (without[key].asked if key in without else quantities.UNKNOWN)
        effect = f"none: {without[key].seen}" if key in without else "yes" if force.get(key) == said else ""
        rows.append(
            [Cell(file.path), Cell(key), Cell(said), Cell(force.get(key, quantities.UNKNOWN)), Cell(effect)]
        )
    return rows


def _summary(files: list[File]) -> str:
    wanted = sum(len(asked(file.hints)) for file in files)
    without = sum(len(file.hints.without_effect) for file in files)
    if not wanted and not without:
        return "No hints were asked for."
    if without:
        return f"{without} of {wanted} hints asked for had no effect."
    return (
        f"{wanted} hint{'s were' if wanted > 1 else ' was'} asked for; none is known to have had no effect."
    )
