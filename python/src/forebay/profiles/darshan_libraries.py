"""What a Darshan log says of HDF5 and PnetCDF: files, datasets and variables, joined over all records."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from forebay.profiles.darshan_messages import Log
from forebay.profiles.model import LibraryObject

#: Module -> library, and what its records are of.
MODULES = {
    "H5F": ("HDF5", "file"),
    "H5D": ("HDF5", "dataset"),
    "PNETCDF_FILE": ("PnetCDF", "file"),
    "PNETCDF_VAR": ("PnetCDF", "variable"),
}
#: Member of LibraryObject -> counters without the prefix, which are added; each module has some of them.
SUMS = {
    "opens": ("OPENS", "CREATES"),
    "reads": ("READS", "INDEP_READS", "COLL_READS", "NB_READS"),
    "writes": ("WRITES", "INDEP_WRITES", "COLL_WRITES", "NB_WRITES"),
    "collective": ("COLL_READS", "COLL_WRITES"),
    "nonblocking": ("NB_READS", "NB_WRITES"),
    "syncs": ("FLUSHES", "SYNCS"),
    "read_bytes": ("BYTES_READ",),
    "written_bytes": ("BYTES_WRITTEN",),
    "read_s": ("F_READ_TIME",),
    "write_s": ("F_WRITE_TIME",),
    "metadata_s": ("F_META_TIME",),
    "wait_s": ("F_WAIT_TIME",),
}
#: Whether collective MPI-IO was used: 1 or 0 in each record.
COLLECTIVE = "USE_MPIIO_COLLECTIVE"


def libraries(log: Log) -> list[str]:
    """The libraries that the log has modules of."""
    return sorted({MODULES[name][0] for name in log.modules if name in MODULES})


def objects(log: Log) -> list[LibraryObject]:
    """Files, datasets and variables."""
    return [one for module in MODULES if module in log.modules for one in _objects(log, module)]


def _objects(log: Log, name: str) -> Iterator[LibraryObject]:
    module, (library, kind) = log.modules[name], MODULES[name]
    columns = {column.removeprefix(f"{name}_"): at for at, column in enumerate(_columns(log, name))}
    rows: dict[int, list[list[float]]] = defaultdict(list)
    for record in module.records:
        rows[record.id].append([*record.counters, *record.times])
    for record_id, of_object in rows.items():

        def total(names: tuple[str, ...], of_object: list[list[float]] = of_object) -> float | None:
            values = [row[columns[one]] for one in names if one in columns for row in of_object]
            known = [value for value in values if value >= 0]
            return sum(known) if known else None

        found = {member: total(names) for member, names in SUMS.items()}
        if COLLECTIVE in columns:
            calls = (found["reads"] or 0) + (found["writes"] or 0)
            found["collective"] = calls if total((COLLECTIVE,)) else 0
        path = log.names.get(record_id) or f"<no name, record {record_id:x}>"
        yield LibraryObject(library=library, kind=kind, path=path, **found)


def _columns(log: Log, name: str) -> list[str]:
    module = log.modules[name]
    return module.counter_names + module.time_names
