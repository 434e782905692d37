"""Which ranks moved a file's data, where a Darshan log tells: traces, records of single ranks, heat maps."""

from __future__ import annotations

from collections import defaultdict

from forebay.profiles.darshan_messages import Log, Moved, Traced
from forebay.profiles.model import Collective, File, LayerName, Traffic, Writer

#: Layer -> (module of its trace, name of its heat map); empty where there is none.
SOURCES: dict[LayerName, tuple[str, str]] = {
    "MPI-IO": ("DXT_MPIIO", "MPIIO"),
    "POSIX": ("DXT_POSIX", "POSIX"),
    "STDIO": ("", "STDIO"),
    "DFS": ("", "DFS"),
    "DAOS": ("", "DAOS"),
}
Sides = list[tuple[int, Moved]]  # (rank, what it moved)


def hosts(log: Log) -> int | None:
    """Number of hosts, if every rank is in a trace: only there Darshan tells the host."""
    traced = [one for module in log.modules.values() for one in module.traced]
    if len({one.rank for one in traced}) != log.ranks:
        return None
    return len({one.host for one in traced})


class RankAttribution:
    """Looks up the ranks of each file of one log."""

    def __init__(self, log: Log) -> None:
        self.traced: dict[tuple[LayerName, int], list[Traced]] = defaultdict(list)
        #: Of heat maps, by layer and direction: the bytes of all ranks, and the ranks.
        self.heated: dict[tuple[LayerName, str], tuple[int, Sides]] = {}
        for layer, (trace, heat) in SOURCES.items():
            for one in log.modules[trace].traced if trace in log.modules else []:
                self.traced[layer, one.id].append(one)
            binned = log.modules["HEATMAP"].binned if "HEATMAP" in log.modules else []
            of_layer = [one for one in binned if one.layer == heat]
            for verb in ("read", "write") if of_layer else ():
                sides = _that_moved([(one.rank, _bytes_only(getattr(one, verb))) for one in of_layer])
                self.heated[layer, verb] = sum(moved.bytes for _, moved in sides), sides

    def fill(self, file: File, file_id: int, of_ranks: dict[LayerName, list[Traced]]) -> None:
        """Fills in writers, numbers of ranks and of aggregators. `of_ranks`: records of single ranks."""
        for layer, traffic, verb in _directions(file):
            sides = self._sides(layer, file_id, verb, traffic, of_ranks.get(layer, []))
            if sides is None:
                continue
            traffic.ranks = len(sides)
            if all(moved.calls for _, moved in sides):
                traffic.slowest_rank_s = max((moved.seconds for _, moved in sides), default=None)
                if verb == "write" and layer == _lowest(file):
                    file.writers = [_writer(file, rank, moved) for rank, moved in sides]
        _aggregators(file)

    def _sides(
        self, layer: LayerName, file_id: int, verb: str, traffic: Traffic, of_ranks: list[Traced]
    ) -> Sides | None:
        """The ranks that moved data in this direction, from the first source that accounts for all of it."""
        for source in (of_ranks, self.traced.get((layer, file_id), [])):
            sides = [(one.rank, getattr(one, verb)) for one in source]
            found = sum(moved.calls for _, moved in sides), sum(moved.bytes for _, moved in sides)
            if source and found == (traffic.calls, traffic.bytes):
                return _that_moved(sides)
        # A heat map is of all files together: it tells of one file if nothing else was moved.
        heat_bytes, heated = self.heated.get((layer, verb), (None, []))
        return heated if heat_bytes is not None and heat_bytes == traffic.bytes else None


def _that_moved(sides: Sides) -> Sides:
    """Those that moved anything, in the order of ranks."""
    return sorted((side for side in sides if side[1].bytes or side[1].calls), key=lambda side: side[0])


def _bytes_only(bins: list[int]) -> Moved:
    return Moved(0, sum(bins), 0.0, None, None)


def _directions(file: File) -> list[tuple[LayerName, Traffic, str]]:
    return [
        (name, getattr(layer, verb), verb)
        for name, layer in file.layers.items()
        for verb in ("read", "write")
    ]


def _lowest(file: File) -> LayerName | None:
    """The layer whose calls are the system's, or the C library's."""
    return next((layer for layer in ("POSIX", "STDIO", "DFS", "DAOS") if layer in file.layers), None)


def _all_collective(traffic: Traffic) -> bool:
    return bool(traffic.calls) and traffic.calls == (traffic.collective or 0) + (traffic.split or 0)


def _writer(file: File, rank: int, moved: Moved) -> Writer:
    """If all MPI-IO writes of the file were collective, whoever wrote did so inside of one."""
    aggregator = False
    if "MPI-IO" in file.layers:
        aggregator = True if _all_collective(file.layers["MPI-IO"].write) else None
    return Writer(
        rank=rank, bytes=moved.bytes, calls=moved.calls, seconds=moved.seconds, aggregator=aggregator
    )


def _aggregators(file: File) -> None:
    if "MPI-IO" not in file.layers or "POSIX" not in file.layers:
        return
    asked, made = file.layers["MPI-IO"], file.layers["POSIX"]
    file.collective = file.collective or Collective()
    if _all_collective(asked.write):
        file.collective.aggregators_write = made.write.ranks
    if _all_collective(asked.read):
        file.collective.aggregators_read = made.read.ranks
