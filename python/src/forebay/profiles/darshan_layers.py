"""The records of one file at one layer of a Darshan log, joined into a `Layer`. Pure functions."""

from __future__ import annotations

from collections import defaultdict

from forebay.profiles.darshan_counters import CALL_KINDS, SHARED, SIZE_CLASSES
from forebay.profiles.merge import known_sum, positive
from forebay.profiles.model import SIZE_CLASS_ENDS, Extreme, Layer, LayerName, RankSeconds, Traffic

PARTS = ("READ", "WRITE", "META")  # of the time in a layer
#: The counters of calls that move data, where there are several kinds of them.
CALLS = {
    ("MPI-IO", "READ"): [f"{kind}_READS" for kind in CALL_KINDS.values()],
    ("MPI-IO", "WRITE"): [f"{kind}_WRITES" for kind in CALL_KINDS.values()],
    ("DFS", "READ"): ["READS", "READXS"],
    ("DFS", "WRITE"): ["WRITES", "WRITEXS"],
    ("DAOS", "READ"): ["OBJ_FETCHES", "ARRAY_READS", "KV_GETS"],
    ("DAOS", "WRITE"): ["OBJ_UPDATES", "ARRAY_WRITES", "KV_PUTS"],
}

Counters = dict[str, int | float]


def extremes(prefix: str, records: list[tuple[int, Counters]]) -> tuple[Extreme | None, Extreme | None]:
    """Fastest and slowest rank, by the time in all calls: from the shared record, or from the others."""
    if len(records) == 1:
        rank, counters = records[0]
        is_told = counters[f"{prefix}_F_SLOWEST_RANK_TIME"] > 0 and counters[f"{prefix}_SLOWEST_RANK"] >= 0
        is_told = is_told and counters[f"{prefix}_F_FASTEST_RANK_TIME"] >= 0
        if rank != SHARED or not is_told:
            return None, None
        fastest, slowest = (
            Extreme(
                rank=counters[f"{prefix}_{which}_RANK"],
                seconds=counters[f"{prefix}_F_{which}_RANK_TIME"],
                bytes=counters[f"{prefix}_{which}_RANK_BYTES"],
            )
            for which in ("FASTEST", "SLOWEST")
        )
        return fastest, slowest
    of_ranks = [
        Extreme(
            rank=rank,
            seconds=sum(times),
            bytes=counters[f"{prefix}_BYTES_READ"] + counters[f"{prefix}_BYTES_WRITTEN"],
        )
        for rank, counters in records
        if min(times := [counters[f"{prefix}_F_{part}_TIME"] for part in PARTS]) >= 0
    ]
    order = sorted(of_ranks, key=lambda one: one.seconds)
    return (order[0], order[-1]) if order else (None, None)


class _Joined:
    """The records of one file at one layer, by the names of their counters without the prefix."""

    def __init__(self, prefix: str, records: list[tuple[int, Counters]]) -> None:
        self.prefix = prefix
        self.records = records
        self.of_ranks = all(rank != SHARED for rank, _ in records)

    def each(self, name: str) -> list[int | float]:
        return [counters[f"{self.prefix}_{name}"] for _, counters in self.records]

    def sum(self, *names: str) -> int | float | None:
        """Over all records and `names`; None where a record says -1: not recorded."""
        values = [value for name in names for value in self.each(name)]
        return None if min(values) < 0 else sum(values)

    def sizes(self, name: str) -> list[int] | None:
        counts = [self.sum(f"{name}_{size}") for size in SIZE_CLASSES]
        return None if None in counts else counts

    def seconds(self, part: str) -> list[float]:
        """Of each record. A negative time is none: it counts as 0, and `unread` of the profile tells it."""
        return [max(0.0, time) for time in self.each(f"F_{part}_TIME")]

    def sum_s(self, part: str) -> float | None:
        """Over all records; None if none of them has a time."""
        return known_sum(time for time in self.each(f"F_{part}_TIME") if time >= 0)

    def most_s(self, part: str) -> float | None:
        return max(self.seconds(part)) if self.of_ranks and self.sum_s(part) is not None else None

    def slowest_rank_s(self) -> float | None:
        if not self.of_ranks:
            return self.last("F_SLOWEST_RANK_TIME")
        return max(map(sum, zip(*map(self.seconds, PARTS), strict=True)))

    def rank_s(self) -> list[RankSeconds]:
        """Of each rank; empty if the ranks were joined into one record."""
        if not self.of_ranks:
            return []
        seconds: dict[int, RankSeconds] = {}
        times = zip(*map(self.seconds, PARTS), strict=True)
        for (rank, counters), (read_s, write_s, metadata_s) in zip(self.records, times, strict=True):
            one = seconds.setdefault(rank, RankSeconds(rank=rank, read_s=0.0, write_s=0.0, metadata_s=0.0))
            one.read_s += read_s
            one.write_s += write_s
            one.metadata_s += metadata_s
            one.opens += max(0, counters.get(f"{self.prefix}_OPENS", 0))
            one.stats += max(0, counters.get(f"{self.prefix}_STATS", 0))
        return list(seconds.values())

    def first(self, name: str) -> float | None:
        return min((moment for moment in self.each(name) if moment > 0), default=None)

    def last(self, name: str) -> float | None:
        return max((moment for moment in self.each(name) if moment > 0), default=None)


def _traffic(joined: _Joined, verb: str, past: str, calls: list[str]) -> Traffic:
    """`verb` is READ or WRITE, `past` READ or WRITTEN, `calls` the counters that together are all calls."""
    # The others have no such counter, and 0 also stands for a file without a byte moved.
    ends = joined.each(f"MAX_BYTE_{past}") if joined.prefix in ("POSIX", "STDIO") else []
    return Traffic(
        end_bytes=max(ends) + 1 if any(end > 0 for end in ends) else None,
        calls=joined.sum(*calls),
        bytes=joined.sum(f"BYTES_{past}"),
        seconds=joined.sum_s(verb),
        slowest_rank_s=joined.most_s(verb),
        first_s=joined.first(f"F_{verb}_START_TIMESTAMP"),
        last_s=joined.last(f"F_{verb}_END_TIMESTAMP"),
    )


def layer_of(prefix: str, records: list[tuple[int, Counters]]) -> Layer:
    """All records of the file; `prefix` is that of the counters."""
    joined = _Joined(prefix, records)
    made = {"POSIX": _posix, "MPIIO": _mpiio, "STDIO": _stdio, "DFS": _dfs, "DAOS": _daos}
    layer = made[prefix](joined)
    layer.metadata_s = joined.sum_s("META")
    layer.metadata_slowest_rank_s = joined.most_s("META")
    layer.slowest_rank_s = joined.slowest_rank_s()
    layer.rank_s = joined.rank_s()
    layer.opened_s = joined.first("F_OPEN_START_TIMESTAMP")
    layer.closed_s = joined.last("F_CLOSE_END_TIMESTAMP")
    return layer


def _posix(joined: _Joined) -> Layer:
    read, write = (
        _traffic(joined, "READ", "READ", ["READS"]),
        _traffic(joined, "WRITE", "WRITTEN", ["WRITES"]),
    )
    for traffic, verb in ((read, "READ"), (write, "WRITE")):
        traffic.sizes = joined.sizes(f"SIZE_{verb}")
        traffic.sequential = joined.sum(f"SEQ_{verb}S")
        traffic.consecutive = joined.sum(f"CONSEC_{verb}S")
    _share_common_sizes(joined, read, write)
    return Layer(
        read=read,
        write=write,
        opens=joined.sum("OPENS"),
        seeks=joined.sum("SEEKS"),
        stats=joined.sum("STATS"),
        syncs=joined.sum("FSYNCS", "FDSYNCS"),
        switches=joined.sum("RW_SWITCHES"),
        not_aligned=joined.sum("FILE_NOT_ALIGNED"),
        alignment_bytes=positive(int(max(joined.each("FILE_ALIGNMENT")))),
    )


def _mpiio(joined: _Joined) -> Layer:
    read, write = (
        _traffic(joined, verb, past, CALLS["MPI-IO", verb])
        for verb, past in (("READ", "READ"), ("WRITE", "WRITTEN"))
    )
    for traffic, verb in ((read, "READ"), (write, "WRITE")):
        for kind, counter in CALL_KINDS.items():
            setattr(traffic, kind, joined.sum(f"{counter}_{verb}S"))
        traffic.sizes = joined.sizes(f"SIZE_{verb}_AGG")
    _share_common_sizes(joined, read, write)
    return Layer(
        read=read,
        write=write,
        opens=joined.sum("INDEP_OPENS", "COLL_OPENS"),
        syncs=joined.sum("SYNCS"),
        switches=joined.sum("RW_SWITCHES"),
        views=joined.sum("VIEWS"),
    )


def _stdio(joined: _Joined) -> Layer:
    return Layer(
        read=_traffic(joined, "READ", "READ", ["READS"]),
        write=_traffic(joined, "WRITE", "WRITTEN", ["WRITES"]),
        opens=joined.sum("OPENS"),
        seeks=joined.sum("SEEKS"),
        syncs=joined.sum("FLUSHES"),
    )


def _of_daos(joined: _Joined, layer: LayerName) -> tuple[Traffic, Traffic]:
    read = _traffic(joined, "READ", "READ", CALLS[layer, "READ"])
    write = _traffic(joined, "WRITE", "WRITTEN", CALLS[layer, "WRITE"])
    read.sizes, write.sizes = joined.sizes("SIZE_READ"), joined.sizes("SIZE_WRITE")
    _share_common_sizes(joined, read, write)
    return read, write


def _dfs(joined: _Joined) -> Layer:
    read, write = _of_daos(joined, "DFS")
    return Layer(read=read, write=write, opens=joined.sum("OPENS", "GLOBAL_OPENS"), stats=joined.sum("STATS"))


def _daos(joined: _Joined) -> Layer:
    read, write = _of_daos(joined, "DAOS")
    return Layer(read=read, write=write, opens=joined.sum("OBJ_OPENS", "ARRAY_OPENS", "KV_OPENS"))


def _share_common_sizes(joined: _Joined, read: Traffic, write: Traffic) -> None:
    """Darshan counts common sizes of reads and writes together: known only if one of both had such sizes."""
    if read.sizes is None or write.sizes is None:
        return
    counts: dict[int, int] = defaultdict(int)
    for number in range(1, 5):
        sizes, calls = joined.each(f"ACCESS{number}_ACCESS"), joined.each(f"ACCESS{number}_COUNT")
        for size, count in zip(sizes, calls, strict=True):
            counts[size] += count
    for size, count in sorted(counts.items(), key=lambda one: (-one[1], one[0])):
        if count <= 0:
            continue
        kind = _size_class(size)
        if not read.sizes[kind] and len(write.common_sizes) < 4:
            write.common_sizes.append((size, count))
        elif not write.sizes[kind] and len(read.common_sizes) < 4:
            read.common_sizes.append((size, count))


def _size_class(size: int) -> int:
    return next(kind for kind, end in enumerate(SIZE_CLASS_ENDS) if end is None or size <= end)
