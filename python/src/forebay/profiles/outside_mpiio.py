"""System calls on a file outside its MPI-IO calls: their time is no part of the time in MPI-IO."""

from __future__ import annotations

from msgspec.structs import replace

from forebay.profiles.merge import known_sum
from forebay.profiles.model import File, Layer, LayerName, RankSeconds, Traffic

#: A smaller share of the time in system calls may come from clocks and rounding. Ours.
SHARE_MIN = 0.05


def joined_with_mpiio(file: File) -> tuple[LayerName, Layer] | None:
    """MPI-IO and the system calls outside it as one layer, named after the longer of the two; None: no such.

    In a direction with calls outside MPI-IO the counts are those of all system calls.
    """
    asked, made = file.layers.get("MPI-IO"), file.layers.get("POSIX")
    if asked is None or made is None:
        return None
    if asked.read.data_s is not None or asked.write.data_s is not None:
        return None  # Forebay's records and Cray's tables tell which time in system calls is MPI-IO's
    read, write, metadata = _shares(file, asked, made)
    if not (read or write or metadata):
        return None
    outside_s = sum(
        share * (part_s or 0.0) for share, part_s in zip((read, write, metadata), _parts(made), strict=True)
    )
    name: LayerName = "POSIX" if outside_s > (known_sum(_parts(asked)) or 0.0) else "MPI-IO"
    rank_s = _of_ranks(asked, made, read, write, metadata)
    slowest_s = _plus(
        asked.slowest_rank_s, made.slowest_rank_s, outside_s / (known_sum(_parts(made)) or outside_s)
    )
    return name, replace(
        made if name == "POSIX" else asked,
        read=_traffic(asked.read, made.read, read),
        write=_traffic(asked.write, made.write, write),
        metadata_s=_plus(asked.metadata_s, made.metadata_s, metadata),
        metadata_slowest_rank_s=_plus(asked.metadata_slowest_rank_s, made.metadata_slowest_rank_s, metadata),
        slowest_rank_s=max(one.sum() for one in rank_s) if rank_s else slowest_s,
        rank_s=rank_s,
    )


def _parts(layer: Layer) -> tuple[float | None, float | None, float | None]:
    return layer.read.seconds, layer.write.seconds, layer.metadata_s


def _shares(file: File, asked: Layer, made: Layer) -> tuple[float, float, float]:
    """Of the seconds in system calls that read, write, and are metadata: the share outside MPI-IO.

    A write of MPI-IO may read, too, and both may seek, which Darshan counts as metadata.
    """
    rmw_s = file.collective.rmw_s if file.collective else None
    spare_s = (asked.write.seconds or 0.0) - (made.write.seconds or 0.0)
    write_s, spare_s = max(0.0, -spare_s), max(0.0, spare_s)
    of_writes_s = spare_s if rmw_s is None else min(rmw_s, spare_s)
    over_s = (made.read.seconds or 0.0) - of_writes_s - (asked.read.seconds or 0.0)
    read_s, spare_s = max(0.0, over_s), spare_s - of_writes_s + max(0.0, -over_s)
    metadata_s = max(0.0, (made.metadata_s or 0.0) - (asked.metadata_s or 0.0) - spare_s)
    return (
        _share(read_s, made.read.seconds),
        _share(write_s, made.write.seconds),
        _share(metadata_s, made.metadata_s),
    )


def _share(outside_s: float, whole_s: float | None) -> float:
    share = outside_s / whole_s if whole_s else 0.0
    return share if share >= SHARE_MIN else 0.0


def _plus(asked_s: float | None, made_s: float | None, share: float) -> float | None:
    return known_sum((asked_s, None if made_s is None or not share else share * made_s))


def _traffic(asked: Traffic, made: Traffic, share: float) -> Traffic:
    if not share:
        return asked
    return replace(
        made,
        seconds=_plus(asked.seconds, made.seconds, share),
        slowest_rank_s=_plus(asked.slowest_rank_s, made.slowest_rank_s, share),
    )


def _of_ranks(asked: Layer, made: Layer, read: float, write: float, metadata: float) -> list[RankSeconds]:
    """Of each rank; empty if one of the layers does not tell them."""
    if not asked.rank_s or not made.rank_s:
        return []
    ranks = {one.rank: replace(one) for one in asked.rank_s}
    for one in made.rank_s:
        sums = ranks.setdefault(one.rank, RankSeconds(rank=one.rank, read_s=0.0, write_s=0.0, metadata_s=0.0))
        sums.read_s += read * one.read_s
        sums.write_s += write * one.write_s
        sums.metadata_s += metadata * one.metadata_s
        sums.opens, sums.stats = max(sums.opens, one.opens), max(sums.stats, one.stats)
    return list(ranks.values())
