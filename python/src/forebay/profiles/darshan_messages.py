"""What a Darshan log holds, as Darshan's library hands it out: passed from the process that reads the log.

The library ends its process on some damaged logs, so it runs in one of its own (`darshan_library`).
"""

from __future__ import annotations

import msgspec


class Moved(msgspec.Struct, array_like=True):
    """What one rank moved in one direction, from a trace (DXT)."""

    calls: int
    bytes: int
    seconds: float
    first_s: float | None  # since the log's start
    last_s: float | None


class Traced(msgspec.Struct, array_like=True):
    """One file and rank of a trace (DXT)."""

    id: int
    rank: int
    host: str
    read: Moved
    write: Moved


class Record(msgspec.Struct, array_like=True):
    """One file, and one rank or all of them (-1), in the order of the module's counter names."""

    id: int
    rank: int
    counters: list[int]
    times: list[float]


class Stripes(msgspec.Struct, array_like=True):
    """One file on Lustre: (stripe count, stripe bytes) of each component of its layout."""

    id: int
    components: list[tuple[int, int]]
    targets: list[int]  # the storage targets of all components


class Binned(msgspec.Struct, array_like=True):
    """Bytes of one rank by time, of one layer ("POSIX", "MPIIO", "STDIO")."""

    layer: str
    rank: int
    bin_s: float
    read: list[int]
    write: list[int]


class Module(msgspec.Struct, array_like=True):
    """One module of the log; which of the lists is filled depends on the module."""

    version: int
    partial: bool
    lost: str | None = None  # what the library said when it could not read it
    counter_names: list[str] = []
    time_names: list[str] = []
    records: list[Record] = []
    traced: list[Traced] = []
    stripes: list[Stripes] = []
    binned: list[Binned] = []


class Log(msgspec.Struct, array_like=True):
    """A whole log. Text is UTF-8; other bytes are written as `\\xff`."""

    uid: int
    job: int
    ranks: int
    started_unix_s: float
    wall_s: float
    metadata: str
    command: str
    mounts: list[tuple[str, str]]  # (path, type)
    names: dict[int, str]
    modules: dict[str, Module]
    version: str  # of the format of the log
