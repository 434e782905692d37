"""How many files there were, and each of them."""

from __future__ import annotations

from forebay import quantities
from forebay.profiles import metrics
from forebay.profiles.model import File, Traffic
from forebay.report.document import Cell, Column, Section, Table, number_cell
from forebay.report.sections.context import SectionContext
from forebay.report.sections.sizes import usual_size

#: Rows of the table of files: those with the longest time. `--json` has all of them.
FILES_MAX = 200
COLUMNS = [
    Column("file", "path"), Column("layers", "text"), Column("ranks"), Column("slowest rank"),
    Column("written"),
    Column("read"), Column("system calls"), Column("usual size"), Column("slowest / fastest"),
    Column("stripes"),
]  # fmt: skip


def section(context: SectionContext) -> Section:
    """The program's section."""
    slowest = metrics.slowest_files(context.alone, len(context.program.files))
    times = {id(slow.file): slow.seconds for slow in slowest}
    ordered = [slow.file for slow in slowest]
    ordered += [file for file in context.program.files if id(file) not in times]
    rows = [_row(file, times.get(id(file))) for file in ordered[:FILES_MAX]]
    table = Table(
        "Files, those with the longest time first",
        *_known(rows),
        rest=_rest(ordered[FILES_MAX:]),
        sortable=True,
    )
    dropped = context.program.files_dropped
    return Section(
        "files",
        "Files",
        _summary(context, slowest),
        tables=[*_counts(context), table] if rows else [],
        notes=[f"{quantities.count(dropped)} opens of further files were not recorded."] if dropped else [],
    )


def _known(rows: list[list[Cell]]) -> tuple[list[Column], list[list[Cell]]]:
    """The columns of which at least one file tells, and their cells."""
    told_ones = [at for at in range(len(COLUMNS)) if any(row[at].text != quantities.UNKNOWN for row in rows)]
    return [COLUMNS[at] for at in told_ones], [[row[at] for at in told_ones] for row in rows]


def _summary(context: SectionContext, slowest: list[metrics.SlowFile]) -> str:
    files = context.program.files
    if not files:
        return (
            "No file was recorded."
            if context.program.finished
            else "The program did not end properly: no file is known."
        )
    number = f"{quantities.count(len(files))} file{'s' if len(files) > 1 else ''}"
    if not slowest or not slowest[0].seconds:
        return f"{number}; times are not known."
    first = slowest[0]
    took = f"{quantities.duration(first.seconds)} of its slowest rank"
    return f"{number}; the longest time went to {first.file.path}: {took}."


def _counts(context: SectionContext) -> list[Table]:
    rows = []
    for layer in context.layers:
        for kind in metrics.file_counts(context.alone, layer):
            sizes = (
                number_cell(kind.average_bytes, quantities.size),
                number_cell(kind.largest_bytes, quantities.size),
            )
            if kind.number:
                rows.append([Cell(layer), Cell(kind.kind), number_cell(kind.number), *sizes])
    names = [
        Column("layer", "text"),
        Column("kind", "text"),
        Column("files"),
        Column("average size"),
        Column("largest"),
    ]
    return [Table("File counts; sizes as far as bytes were touched", names, rows)] if rows else []


def _row(file: File, seconds: float | None) -> list[Cell]:
    below = file.layers.get("POSIX") or file.layers.get("STDIO")
    directions = [below.write, below.read] if below else []
    calls = metrics.known_sum(direction.calls for direction in directions)
    busiest = max(directions, key=lambda direction: direction.calls or 0, default=None)
    return [
        Cell(file.path),
        Cell(", ".join(file.layers)),
        number_cell(file.ranks),
        number_cell(seconds, quantities.duration),
        number_cell(_bytes(file, "write"), quantities.size),
        number_cell(_bytes(file, "read"), quantities.size),
        number_cell(calls),
        (busiest and usual_size(busiest)) or Cell(quantities.UNKNOWN),
        number_cell(_imbalance(file), quantities.ratio),
        _stripes(file),
    ]


def _bytes(file: File, direction: str) -> int | None:
    """What the application moved: at the layer that it called."""
    top = metrics.top_layer(file)
    traffic: Traffic | None = getattr(top[1], direction) if top else None
    return traffic.bytes if traffic else None


def _imbalance(file: File) -> float | None:
    """Time of the slowest rank over that of the fastest, of a shared file."""
    if not file.fastest or not file.slowest or file.fastest.seconds <= 0:
        return None
    return file.slowest.seconds / file.fastest.seconds


def _stripes(file: File) -> Cell:
    if file.stripe_count is None and file.stripe_bytes is None:
        return Cell(quantities.UNKNOWN)
    return Cell(
        f"{quantities.count(file.stripe_count)} of {quantities.size(file.stripe_bytes)}", file.stripe_count
    )


def _rest(files: list[File]) -> str | None:
    if not files:
        return None
    written, read = (
        metrics.known_sum(_bytes(file, direction) for file in files) for direction in ("write", "read")
    )
    return (
        f"and {quantities.count(len(files))} more files with shorter times: "
        f"{quantities.size(written)} written, {quantities.size(read)} read. `forebay report --json` has each."
    )
