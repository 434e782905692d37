"""A profile as pandas tables. What the source does not tell is missing (NA), never 0."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from forebay.errors import ForebayError

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped]

    from forebay.profiles.model import File, Heat, Layer, LayerName, Profile, Program

#: Columns and their types. `program` is its number, as on the page. Text is `object`: a path may hold bytes
#: that are no UTF-8, as `os.fsdecode` gives them.
PROGRAMS = {
    "program": "Int64",
    "name": "object",
    "arguments": "object",
    "mpi": "object",
    "ranks": "Int64",
    "hosts": "Int64",
    "started_unix_s": "Float64",
    "wall_s": "Float64",
    "io_s": "Float64",
    "io_slowest_rank_s": "Float64",
    "read_bytes": "Int64",
    "written_bytes": "Int64",
    "files": "Int64",
    "finished": "boolean",
}
FILES = {
    "program": "Int64",
    "path": "object",
    "layer": "object",
    "ranks": "Int64",
    "opens": "Int64",
    "reads": "Int64",
    "writes": "Int64",
    "read_bytes": "Int64",
    "written_bytes": "Int64",
    "seeks": "Int64",
    "stats": "Int64",
    "syncs": "Int64",
    "name_calls": "Int64",
    "read_s": "Float64",
    "write_s": "Float64",
    "metadata_s": "Float64",
    "sync_s": "Float64",
    "slowest_rank_s": "Float64",
}
OVER_TIME = {
    "program": "Int64",
    "layer": "object",
    "begin_s": "Float64",
    "end_s": "Float64",
    "read_bytes": "Int64",
    "written_bytes": "Int64",
}


class PackageNotInstalledError(ForebayError, ImportError):
    """A table needs a Python package that is not installed."""


def programs(profile: Profile) -> pandas.DataFrame:
    """A row for each program of the job."""
    return _table(PROGRAMS, (_program(at, one) for at, one in enumerate(profile.programs, 1)))


def files(profile: Profile) -> pandas.DataFrame:
    """A row for each file and layer of each program."""
    rows = (
        _file(at, file, name, layer)
        for at, program in enumerate(profile.programs, 1)
        for file in program.files
        for name, layer in file.layers.items()
    )
    return _table(FILES, rows)


def over_time(profile: Profile) -> pandas.DataFrame:
    """A row for each span of time and layer: bytes of all ranks. Empty without heat maps."""
    rows = (
        row
        for at, program in enumerate(profile.programs, 1)
        for heat in program.heat
        for row in _spans(at, heat)
    )
    return _table(OVER_TIME, rows)


def _table(columns: dict[str, str], rows: Iterable[tuple[Any, ...]]) -> pandas.DataFrame:
    try:
        import pandas
    except ImportError as error:
        hint = f"{sys.executable} -m pip install pandas"
        raise PackageNotInstalledError("tables need pandas, which is not installed", hint) from error
    by_column = list(zip(*rows, strict=True)) or [()] * len(columns)
    # Each column with its type: by way of floating point, large integers would lose digits.
    series = {
        name: pandas.Series(list(values), dtype=kind)
        for (name, kind), values in zip(columns.items(), by_column, strict=True)
    }
    return pandas.DataFrame(series)


def _program(number: int, program: Program) -> tuple[Any, ...]:
    from forebay.profiles import metrics

    return (
        number,
        program.name,
        program.arguments,
        program.mpi,
        program.ranks,
        program.hosts,
        program.started_unix_s,
        program.wall_s,
        metrics.io_s(program),
        metrics.io_slowest_s(program),
        metrics.moved_bytes(program, "read"),
        metrics.moved_bytes(program, "write"),
        len(program.files),
        program.finished,
    )


def _file(number: int, file: File, name: LayerName, layer: Layer) -> tuple[Any, ...]:
    return (
        number,
        file.path,
        name,
        file.ranks,
        layer.opens,
        layer.read.calls,
        layer.write.calls,
        layer.read.bytes,
        layer.write.bytes,
        layer.seeks,
        layer.stats,
        layer.syncs,
        layer.name_calls,
        layer.read.seconds,
        layer.write.seconds,
        layer.metadata_s,
        layer.sync_s,
        layer.slowest_rank_s,
    )


def _spans(number: int, heat: Heat) -> Iterable[tuple[Any, ...]]:
    read, write = (zip(*rows, strict=True) for rows in (heat.read, heat.write))
    for at, (of_reads, of_writes) in enumerate(zip(read, write, strict=True)):
        yield number, heat.layer, at * heat.bin_s, (at + 1) * heat.bin_s, sum(of_reads), sum(of_writes)
