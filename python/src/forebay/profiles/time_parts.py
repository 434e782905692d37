"""Where the time of a program's ranks went: moving data, read-modify-write, waiting, metadata, syncs."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import msgspec

from forebay.profiles.merge import known_sum
from forebay.profiles.metrics import (
    io_slowest_s,
    layer_s,
    layers_of,
    own_rank,
    slowest_direction_s,
    spent_in_tops,
    top_layer,
)
from forebay.profiles.model import LAYERS, Direction, File, Layer, LayerName, Program, Traffic

DIRECTIONS: tuple[Direction, ...] = ("read", "write")


class LayerTime(msgspec.Struct, kw_only=True):
    """Where a rank's time went, on average over the ranks of one program; seconds."""

    layer: LayerName
    wall_s: float
    read_s: float
    write_s: float
    metadata_s: float
    sync_s: float
    other_s: float  # the remaining time of the program: computation, and I/O through other layers
    # Of read_s and write_s together, where the source tells (MPI-IO)
    data_s: float | None  # in system calls that move data
    exchange_s: float | None  # between ranks: sending, waiting, copying
    parts: Parts

    def share(self, seconds: float) -> float:
        """Share of the program's time."""
        return seconds / self.wall_s


class Parts(msgspec.Struct, kw_only=True):
    """Seconds of a rank in I/O, by what they were spent in; nothing counts twice."""

    write: float = 0.0  # moving data
    read: float = 0.0
    rmw: float = 0.0  # MPI-IO: reads in calls that write, around pieces of blocks
    waiting: float = 0.0  # MPI-IO: exchange between ranks, waiting for them, copying
    metadata: float = 0.0  # opening, closing, asking, file views; locks and seeks of MPI-IO
    sync: float = 0.0

    def sum(self) -> float:
        """All of them."""
        return self.write + self.read + self.rmw + self.waiting + self.metadata + self.sync

    def add(
        self,
        direction: Direction,
        calls_s: float,
        data_s: float | None,
        locks_s: float = 0.0,
        rmw_s: float = 0.0,
    ) -> None:
        """Adds calls of one direction: what is no system call is exchange; data None: unknown."""
        moving_s = calls_s if data_s is None else min(calls_s, data_s)
        rmw_s = min(rmw_s, calls_s - moving_s)
        locks_s = min(locks_s, calls_s - moving_s - rmw_s)
        setattr(self, direction, getattr(self, direction) + moving_s)
        self.rmw += rmw_s
        self.metadata += locks_s
        self.waiting += calls_s - moving_s - rmw_s - locks_s


def time_split(program: Program) -> list[LayerTime]:
    """Mean seconds per rank in each layer; empty if neither ranks nor run time are known.

    Layers are not to be added up: the system calls of an MPI-IO file are part of its MPI-IO time.
    """
    if not program.wall_s or not program.ranks:
        return []
    named = ((name, list(layers_of([program], name))) for name in LAYERS)
    return [_layer_time(program, name, found) for name, found in named if found]


def _layer_time(program: Program, name: LayerName, found: list[tuple[File, Layer]]) -> LayerTime:
    def mean(value: Callable[[Layer], float | None]) -> float | None:
        total = known_sum(value(layer) for _, layer in found)
        return None if total is None else total / program.ranks

    whole = {
        "read_s": mean(lambda layer: layer.read.seconds) or 0.0,
        "write_s": mean(lambda layer: layer.write.seconds) or 0.0,
        "metadata_s": mean(lambda layer: layer.metadata_s) or 0.0,
        "sync_s": mean(lambda layer: layer.sync_s) or 0.0,
    }
    parts = Parts(metadata=whole["metadata_s"], sync=whole["sync_s"])
    is_told = False
    for (file, layer), direction in product(found, DIRECTIONS):
        calls_s = getattr(layer, direction).seconds or 0.0
        data_s, locks_s, rmw_s = None, 0.0, 0.0
        if name == "MPI-IO":
            data_s, locks_s, rmw_s = _in_calls(file, layer, direction)
            is_told = is_told or data_s is not None
        elif name == "POSIX" and direction == "read":
            rmw_s = _rmw_share(file) * calls_s
            data_s = calls_s - rmw_s
        data_s = None if data_s is None else data_s / program.ranks
        parts.add(direction, calls_s / program.ranks, data_s, locks_s / program.ranks, rmw_s / program.ranks)
    return LayerTime(
        layer=name,
        wall_s=program.wall_s,
        other_s=max(0.0, program.wall_s - sum(whole.values())),
        data_s=parts.read + parts.write if is_told else None,
        exchange_s=parts.waiting if is_told else None,
        parts=parts,
        **whole,
    )


def _rmw_share(file: File) -> float:
    """Of the seconds in system calls that read, those in calls of the program that write."""
    below = file.layers.get("POSIX")
    read_s = below.read.seconds if below else None
    rmw_s = file.collective.rmw_s if file.collective else None
    return rmw_s / read_s if rmw_s and read_s else 0.0


def _of_system(
    file: File, direction: Direction, read_s: float | None, write_s: float | None
) -> tuple[float | None, float]:
    """Of the system calls' seconds those that move data for calls of one direction, and those of RMW."""
    share = _rmw_share(file)
    if direction == "read":
        return (None if read_s is None else (1 - share) * read_s), 0.0
    return write_s, share * (read_s or 0.0)


def _in_calls(file: File, layer: Layer, direction: Direction) -> tuple[float | None, float, float]:
    """Of the calls of MPI-IO, the seconds in system calls that move data, in locks, and in
    read-modify-write; summed over ranks. Where the source does not tell, those of the file's POSIX layer.
    """
    traffic: Traffic = getattr(layer, direction)
    if traffic.data_s is not None:
        return traffic.data_s, traffic.other_system_s or 0.0, 0.0
    below = file.layers.get("POSIX")
    if below is None:
        return None, 0.0, 0.0
    data_s, rmw_s = _of_system(file, direction, below.read.seconds, below.write.seconds)
    return data_s, 0.0, max(rmw_s, _waited_for_rmw_s(file, layer, direction))


def _waited_for_rmw_s(file: File, layer: Layer, direction: Direction) -> float:
    """In collective writes all ranks wait while the slowest aggregator reads: its seconds, for each rank."""
    if direction == "read" or 2 * (layer.write.collective or 0) < (layer.write.calls or 0):
        return 0.0
    share = _rmw_share(file)
    read_s = slowest_direction_s(file, "POSIX", "read") if share else None
    return share * (read_s or 0.0) * (file.ranks or 1)


def slowest_rank_parts(program: Program) -> Parts | None:
    """Where the slowest rank's time in I/O went, each file at the layer the application called.

    Its sum is `io_slowest_s`. Of a shared file the slowest rank of each part counts: while the one that
    writes for others is in a system call, these wait for the storage, not for it.
    """
    spent_s = io_slowest_s(program)
    if spent_s is None:
        return None
    parts, spent = Parts(), spent_in_tops(program, program.files)
    slowest = spent.slowest_rank() if spent else None
    for file in program.files:
        if (top := top_layer(file)) is None:
            continue
        name, layer = top
        if slowest is not None and layer.rank_s:
            _add_rank(parts, file, name, layer, slowest)
        elif slowest is None or file.ranks != 1 or own_rank(file) in (None, slowest):
            _add_slowest(parts, file, name, layer)
    scale = spent_s / total_s if (total_s := parts.sum()) else 0.0
    return Parts(**{name: getattr(parts, name) * scale for name in Parts.__struct_fields__})


def _add_rank(parts: Parts, file: File, name: LayerName, layer: Layer, rank: int) -> None:
    one = next((one for one in layer.rank_s if one.rank == rank), None)
    if one is None:
        return
    parts.metadata += one.metadata_s
    below = file.layers.get("POSIX") if name == "MPI-IO" else None
    made = next((made for made in below.rank_s if made.rank == rank), None) if below else None
    for direction, calls_s in (("read", one.read_s), ("write", one.write_s)):
        data_s, rmw_s = _of_system(file, direction, made.read_s, made.write_s) if made else (None, 0.0)
        parts.add(direction, calls_s, data_s, rmw_s=rmw_s)


def _add_slowest(parts: Parts, file: File, name: LayerName, layer: Layer) -> None:
    def of_one(told_s: float | None, sum_s: float | None, of: Layer) -> float:
        """The slowest rank's; else its part of the layer's slowest rank, else the mean."""
        whole_s = layer_s(of)
        if told_s is not None or not sum_s or not whole_s:
            return told_s or 0.0
        slowest_s = of.slowest_rank_s
        return sum_s / max(1, file.ranks or 1) if slowest_s is None else slowest_s * sum_s / whole_s

    parts.metadata += of_one(layer.metadata_slowest_rank_s, layer.metadata_s, layer)
    parts.sync += of_one(layer.sync_slowest_rank_s, layer.sync_s, layer)
    below = file.layers.get("POSIX")
    for direction in DIRECTIONS:
        traffic: Traffic = getattr(layer, direction)
        data_s, rmw_s = None, 0.0
        if name == "MPI-IO" and traffic.data_s is not None:
            data_s = of_one(traffic.slowest_rank_data_s, traffic.data_s, layer)
        elif name == "MPI-IO" and below is not None:
            made = (of_one(one.slowest_rank_s, one.seconds, below) for one in (below.read, below.write))
            data_s, rmw_s = _of_system(file, direction, *made)
        locks_s = of_one(traffic.slowest_rank_other_s, traffic.other_system_s, layer)
        parts.add(direction, of_one(traffic.slowest_rank_s, traffic.seconds, layer), data_s, locks_s, rmw_s)
