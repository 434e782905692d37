"""Darshan's counters of one file, from what a profile tells of it.

A count that the profile does not tell is -1, Darshan's mark of what it could not observe; a moment or a
time is 0, as in Darshan's logs. Nothing is estimated, with one exception: `F_SLOWEST_RANK_TIME`, on which
Darshan's estimate of throughput rests, is an upper bound where only the slowest rank of each part is known.
"""

from __future__ import annotations

from collections import Counter

from forebay.profiles.metrics import slowest_rank_s, top_layer
from forebay.profiles.model import File, Layer, LayerName, Traffic

#: Layer -> Darshan's module, and the prefix of its counters.
MODULES: dict[LayerName, tuple[str, str]] = {
    "POSIX": ("POSIX", "POSIX"),
    "MPI-IO": ("MPI-IO", "MPIIO"),
    "STDIO": ("STDIO", "STDIO"),
}
#: Names of the size classes in Darshan's counters.
SIZE_CLASSES = (
    "0_100", "100_1K", "1K_10K", "10K_100K", "100K_1M", "1M_4M", "4M_10M", "10M_100M", "100M_1G", "1G_PLUS",
)  # fmt: skip
#: Traffic's member -> the part of the counter's name that tells the kind of call.
CALL_KINDS = {"independent": "INDEP", "collective": "COLL", "nonblocking": "NB", "split": "SPLIT"}
COMMON_SIZES = 4
FIRST_MOMENT_S = 1e-9
SHARED = -1  # the rank of a record that several ranks were joined into
UNKNOWN = -1
#: The counters of a profile that knows nothing are UNKNOWN; these are settings and tables, 0 when empty.
EMPTY = (
    "MODE",
    "RENAMED_FROM",
    "MEM_ALIGNMENT",
    "FILE_ALIGNMENT",
    "TIME_SIZE",
    "STRIDE",
    "ACCESS",
    "RANK_BYTES",
)

Counters = dict[str, int | float | None]


def rank(file: File, ranks: int) -> int:
    """The rank of the file's records: the only one that opened it, or SHARED."""
    if ranks == 1:
        return 0
    return SHARED if file.rank is None else file.rank


def unknown(name: str) -> int | float:
    """The value of the counter `name` (with its prefix) if nothing is known."""
    stem = name.split("_", 1)[1]
    if stem.startswith("F_"):
        return 0.0
    return 0 if any(part in stem for part in EMPTY) else UNKNOWN


def counters(file: File, layer: LayerName) -> Counters:
    """What is known, by the names of the counters without the prefix; None: not known."""
    totals = file.layers[layer]
    known: Counters = {}
    for traffic, verb, past in _directions(totals):
        known[f"BYTES_{past}"] = traffic.bytes
        known[f"F_{verb}_TIME"] = traffic.seconds
        known[f"F_{verb}_START_TIMESTAMP"] = _moment(traffic.first_s)
        known[f"F_{verb}_END_TIMESTAMP"] = _moment(traffic.last_s)
    # Darshan counts the time of syncing as time of writing.
    known["F_WRITE_TIME"] = (totals.write.seconds or 0.0) + (totals.sync_s or 0.0)
    known |= {"POSIX": _posix, "MPI-IO": _mpiio, "STDIO": _stdio}[layer](file, totals)
    known["F_META_TIME"] = totals.metadata_s
    known["F_OPEN_START_TIMESTAMP"] = _moment(totals.opened_s)
    known["F_CLOSE_END_TIMESTAMP"] = _moment(totals.closed_s)
    known |= _extremes(file, layer)
    return known


def _moment(moment_s: float | None) -> float | None:
    """0 would mean that there was none; what was before the log's start counts as at its start."""
    return None if moment_s is None else max(moment_s, FIRST_MOMENT_S)


def _directions(layer: Layer) -> tuple[tuple[Traffic, str, str], tuple[Traffic, str, str]]:
    return (layer.read, "READ", "READ"), (layer.write, "WRITE", "WRITTEN")


def _plus(count: int | None, more: int | None) -> int | None:
    return count if more is None or count is None else count + more


def _posix(file: File, layer: Layer) -> Counters:
    known: Counters = {"OPENS": layer.opens, "SEEKS": layer.seeks, "STATS": layer.stats}
    # Which of the two calls synced is unknown.
    known |= {"FSYNCS": layer.syncs, "FDSYNCS": None if layer.syncs is None else 0}
    known |= {"FILE_NOT_ALIGNED": layer.not_aligned, "FILE_ALIGNMENT": layer.alignment_bytes}
    for traffic, verb, past in _directions(layer):
        known[f"{verb}S"] = traffic.calls
        known[f"CONSEC_{verb}S"] = traffic.consecutive
        known[f"SEQ_{verb}S"] = traffic.sequential
        known[f"MAX_BYTE_{past}"] = _last_byte(traffic)
        known |= _sizes(traffic, f"SIZE_{verb}")
    known |= _common_sizes(layer)
    if file.collective is not None and "MPI-IO" in file.layers:
        # To Darshan a read is a read, whatever made it necessary; its size class is unknown.
        known["READS"] = _plus(layer.read.calls, file.collective.rmw_calls)
        known["BYTES_READ"] = _plus(layer.read.bytes, file.collective.rmw_bytes)
    return known


def _mpiio(file: File, layer: Layer) -> Counters:
    known: Counters = {"SYNCS": layer.syncs}
    # A rank can open a file alone only on a communicator of its own.
    alone = file.ranks == 1
    known |= {"INDEP_OPENS": layer.opens if alone else 0, "COLL_OPENS": 0 if alone else layer.opens}
    for traffic, verb, _ in _directions(layer):
        for kind, counter in CALL_KINDS.items():
            known[f"{counter}_{verb}S"] = getattr(traffic, kind)
        known |= _sizes(traffic, f"SIZE_{verb}_AGG")
    return known | _common_sizes(layer)


def _stdio(file: File, layer: Layer) -> Counters:
    known: Counters = {"OPENS": layer.opens, "SEEKS": layer.seeks, "FLUSHES": layer.syncs}
    for traffic, verb, past in _directions(layer):
        known[f"{verb}S"] = traffic.calls
        known[f"MAX_BYTE_{past}"] = _last_byte(traffic)
    return known


def _last_byte(traffic: Traffic) -> int | None:
    if traffic.bytes == 0:
        return 0
    return None if traffic.end_bytes is None else traffic.end_bytes - 1


def _sizes(traffic: Traffic, stem: str) -> Counters:
    return {f"{stem}_{name}": calls for name, calls in zip(SIZE_CLASSES, traffic.sizes or (), strict=False)}


def _common_sizes(layer: Layer) -> Counters:
    """The commonest sizes of reads and writes together, as Darshan counts them."""
    counts: Counter[int] = Counter()
    for size_bytes, calls in [*layer.read.common_sizes, *layer.write.common_sizes]:
        counts[size_bytes] += calls
    known: Counters = {}
    for number, (size_bytes, calls) in enumerate(counts.most_common(COMMON_SIZES), start=1):
        known |= {f"ACCESS{number}_ACCESS": size_bytes, f"ACCESS{number}_COUNT": calls}
    return known


def _extremes(file: File, layer: LayerName) -> Counters:
    """Fastest and slowest rank of a file of several ranks, counting the program's own calls."""
    if file.ranks == 1:
        return {}
    known: Counters = {"F_SLOWEST_RANK_TIME": slowest_rank_s(file, file.layers[layer])}
    top = top_layer(file)
    if top is not None and top[0] == layer and file.fastest is not None and file.slowest is not None:
        for which, extreme in (("FASTEST", file.fastest), ("SLOWEST", file.slowest)):
            known |= {f"{which}_RANK": extreme.rank, f"{which}_RANK_BYTES": extreme.bytes}
        known["F_FASTEST_RANK_TIME"] = file.fastest.seconds
    return known
