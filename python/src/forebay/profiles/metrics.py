"""Figures that follow from a profile. Pure functions; None wherever the source does not tell enough."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

import msgspec

from forebay.profiles.machine import Machine
from forebay.profiles.merge import known_sum, most_common
from forebay.profiles.model import LAYERS, Direction, File, Layer, LayerName, Profile, Program, Traffic
from forebay.profiles.outside_mpiio import joined_with_mpiio
from forebay.profiles.time_limits import TICK_S

#: Of the bytes written by MPI-IO: where the system wrote less, not all of its calls are known. Ours.
SYSTEM_BYTES_SHARE_MIN = 0.9


def layers_present(profile: Profile) -> list[LayerName]:
    """Layers that any file was used through, from the application downwards."""
    seen = {name for program in profile.programs for file in program.files for name in file.layers}
    return [name for name in LAYERS if name in seen]


def layers_of(programs: Iterable[Program], name: LayerName) -> Iterator[tuple[File, Layer]]:
    """Each file that was used through the layer."""
    for program in programs:
        for file in program.files:
            if name in file.layers:
                yield file, file.layers[name]


def top_layer(file: File) -> tuple[LayerName, Layer] | None:
    """The layer that the application itself called: the times of those below are part of its time.

    System calls outside the MPI-IO calls of the file are part of it, too.
    """
    name = next((name for name in LAYERS if name in file.layers), None)
    return None if name is None else joined_with_mpiio(file) or (name, file.layers[name])


def layers_by_bytes(program: Program) -> list[LayerName]:
    """Layers, those through which the application itself moved most bytes first."""
    moved: dict[LayerName, int] = dict.fromkeys(LAYERS, 0)
    for file in program.files:
        if top := top_layer(file):
            name, layer = top
            moved[name] += int(known_sum((layer.read.bytes, layer.write.bytes)) or 0)
    return sorted(LAYERS, key=lambda name: -moved[name])


def _moved_bytes_of(file: File, direction: Direction) -> int | None:
    """Bytes that the storage moved for the file: of an MPI-IO file those of the system calls below.

    Ranks may read the same bytes, which the system reads once. Written bytes are all in system calls: if
    many are missing, the source does not have all of these calls.
    """
    found = [getattr(file.layers[name], direction).bytes for name in LAYERS if name in file.layers]
    asked_bytes = found[0] if found else None
    system = file.layers.get("POSIX")
    system_bytes = getattr(system, direction).bytes if system else None
    if system is None or (direction == "write" and not has_all_bytes(system_bytes, asked_bytes)):
        return asked_bytes
    return system_bytes


def has_all_bytes(system_bytes: int | None, asked_bytes: int | None) -> bool:
    """Whether the system calls moved about what the program asked for."""
    return (system_bytes or 0) >= SYSTEM_BYTES_SHARE_MIN * (asked_bytes or 0)


class TrafficTotals(msgspec.Struct, kw_only=True):
    """One direction of one layer, summed over files and programs; the members as in `Traffic`."""

    calls: int | None
    bytes: int | None
    sizes: list[int] | None
    common_sizes: list[tuple[int, int]]
    seconds: float | None
    sequential: int | None
    consecutive: int | None
    gaps: int | None
    gap_bytes: int | None
    stripe_sized: int | None
    independent: int | None
    collective: int | None
    nonblocking: int | None
    split: int | None
    data_s: float | None
    other_system_s: float | None
    rest_s: float | None


class LayerTotals(msgspec.Struct, kw_only=True):
    """One layer, summed over files and programs."""

    files: int
    opens: int | None
    seeks: int | None
    stats: int | None
    name_calls: int | None
    syncs: int | None
    not_aligned: int | None
    metadata_s: float | None
    sync_s: float | None
    read: TrafficTotals
    write: TrafficTotals


_SUMMED = (
    "calls", "bytes", "seconds", "sequential", "consecutive", "gaps", "gap_bytes", "stripe_sized",
    "independent", "collective", "nonblocking", "split", "data_s", "other_system_s", "rest_s",
)  # fmt: skip


def _traffic_totals(traffics: list[Traffic]) -> TrafficTotals:
    sizes = [traffic.sizes for traffic in traffics if traffic.sizes is not None]
    return TrafficTotals(
        sizes=[sum(calls) for calls in zip(*sizes, strict=True)] if sizes else None,
        common_sizes=most_common(size for traffic in traffics for size in traffic.common_sizes),
        **{name: known_sum(getattr(traffic, name) for traffic in traffics) for name in _SUMMED},
    )


def totals(profile: Profile, layer: LayerName) -> LayerTotals:
    """Sums over all files and programs. A file used by two programs counts once among `files`."""
    found = list(layers_of(profile.programs, layer))
    layers = [layer for _, layer in found]
    counted = ("opens", "seeks", "stats", "name_calls", "syncs", "not_aligned", "metadata_s", "sync_s")
    return LayerTotals(
        files=len({file.path for file, _ in found}),
        read=_traffic_totals([layer.read for layer in layers]),
        write=_traffic_totals([layer.write for layer in layers]),
        **{name: known_sum(getattr(layer, name) for layer in layers) for name in counted},
    )


def layer_s(layer: Layer) -> float | None:
    """Seconds in the layer, summed over ranks: reads, writes, metadata, syncs."""
    return known_sum((layer.read.seconds, layer.write.seconds, layer.metadata_s, layer.sync_s))


def slowest_rank_s(file: File, layer: Layer) -> float | None:
    """Seconds of the rank that spent most in the file.

    Where the source gives the slowest rank of each part only, the sum of the parts, which is an upper bound.
    """
    if file.ranks == 1:
        return layer_s(layer)
    if layer.slowest_rank_s is not None:
        return layer.slowest_rank_s
    return known_sum(
        (
            layer.read.slowest_rank_s,
            layer.write.slowest_rank_s,
            layer.metadata_slowest_rank_s,
            layer.sync_slowest_rank_s,
        ),
    )


def slowest_direction_s(file: File, name: LayerName, direction: Direction) -> float | None:
    """Seconds in one direction of the layer's slowest rank; None where the source has no time of one rank."""
    layer = file.layers.get(name)
    traffic: Traffic | None = getattr(layer, direction) if layer else None
    if layer is None or traffic is None or traffic.slowest_rank_s is not None:
        return traffic.slowest_rank_s if traffic else None
    if file.ranks == 1:
        return traffic.seconds
    slowest_s, whole_s = slowest_rank_s(file, layer), layer_s(layer)
    if slowest_s is None or traffic.seconds is None or not whole_s:
        return None
    return slowest_s * traffic.seconds / whole_s


class Performance(msgspec.Struct, kw_only=True):
    """Throughput of one layer of one program as its slowest rank saw it."""

    bytes: int
    seconds: float
    bytes_per_s: float
    how: str  # one sentence: how it was computed


#: If one rank certainly spent so much of an upper bound, the bound is taken for its time. Ours.
BOUND_SHARE = 0.95


class TimeSpent(msgspec.Struct, kw_only=True):
    """Seconds in some files, as far as it is known which rank spent them."""

    of_ranks: dict[int, float]
    even_s: float  # of each rank, where it is not known which one spent how much
    shared_s: list[float]  # of each file of which the slowest rank's time alone is known

    def slowest_rank(self) -> int | None:
        """The rank with most of what is known of ranks."""
        return max(self.of_ranks, key=self.of_ranks.__getitem__, default=None)

    def slowest_s(self) -> float:
        """At most so much; exactly so much unless `is_bound`."""
        return max(self.of_ranks.values(), default=0.0) + self.even_s + sum(self.shared_s)

    @property
    def is_bound(self) -> bool:
        """Whether what is added up may be of different ranks, and one alone may have spent clearly less."""
        of_one_s = max(max(self.of_ranks.values(), default=0.0) + self.even_s, *self.shared_s, 0.0)
        return of_one_s < BOUND_SHARE * self.slowest_s()


def own_rank(file: File) -> int | None:
    """The only rank that used the file; None: several, or not known."""
    return file.rank if file.rank is not None else file.writers[0].rank if file.writers else None


def _spent(program: Program, found: Iterable[tuple[File, Layer]]) -> TimeSpent | None:
    """None if no time is known."""
    seconds: dict[int, float] = defaultdict(float)
    unattributed_s, shared_s, is_known = 0.0, [], False
    for file, layer in found:
        if layer.rank_s:
            for one in layer.rank_s:
                seconds[one.rank] += one.sum()
        elif file.ranks != 1:
            slowest_s = slowest_rank_s(file, layer)
            is_known = is_known or slowest_s is not None
            shared_s += [slowest_s] if slowest_s else []
            unattributed_s += (layer_s(layer) or 0.0) if slowest_s is None else 0.0
            continue
        elif (rank := own_rank(file)) is None:
            unattributed_s += layer_s(layer) or 0.0
        else:
            seconds[rank] += layer_s(layer) or 0.0
        is_known = True
    if not is_known:
        return None
    return TimeSpent(of_ranks=seconds, even_s=unattributed_s / max(1, program.ranks or 1), shared_s=shared_s)


class RankUse(msgspec.Struct, kw_only=True):
    """What one rank did in the files that it alone used."""

    bytes: int = 0
    calls: int = 0  # that move data, open or ask
    seconds: float = 0.0


def of_own_files(program: Program) -> dict[int, RankUse]:
    """By rank. Empty where the seconds of the ranks are not known."""
    found: dict[int, RankUse] = defaultdict(RankUse)
    for file in program.files:
        top = top_layer(file)
        rank = own_rank(file) if file.ranks == 1 else None
        if top is None or rank is None:
            continue
        found[rank].bytes += (top[1].read.bytes or 0) + (top[1].write.bytes or 0)
        calls = (top[1].read.calls, top[1].write.calls, top[1].opens, top[1].stats)
        found[rank].calls += int(known_sum(calls) or 0)
        found[rank].seconds += layer_s(top[1]) or 0.0
    return dict(found)


def performance(program: Program, layer: LayerName) -> Performance | None:
    """Bytes over the time of the slowest rank: Darshan's `agg_perf_by_slowest`.

    That time is the slowest rank's over the files it alone opened, and, added to it, for each shared file
    that of the file's slowest rank; no more than any rank spent in I/O, where that is known. None if no byte
    was moved or no time is known.
    """
    found = list(layers_of([program], layer))
    moved = known_sum(part.bytes for _, layer in found for part in (layer.read, layer.write))
    spent = _spent(program, found)
    seconds = spent.slowest_s() if spent else 0.0
    if program.io_slowest_rank_s:
        seconds = min(seconds, program.io_slowest_rank_s)
    if not moved or seconds < TICK_S:
        return None
    how = "bytes over the time of the slowest rank: its own files and each shared file's slowest"
    if spent and spent.even_s:
        how += "; where it is not known which rank spent the time, it counts as spread evenly"
    return Performance(bytes=int(moved), seconds=seconds, bytes_per_s=moved / seconds, how=how)


class IoShare(msgspec.Struct, kw_only=True):
    """Share of the run time that went into I/O calls of the application, between 0 and 1."""

    average: float | None  # of the ranks
    slowest: float | None  # rank: at least the average
    average_s: float | None
    slowest_s: float | None
    run_s: float
    is_bound: bool  # no rank spent more than `slowest_s`, and maybe none so much


def moved_bytes(program: Program, direction: Direction) -> int | None:
    """Bytes that the storage moved for the program, each once."""
    moved = known_sum(_moved_bytes_of(file, direction) for file in program.files)
    return None if moved is None else int(moved)


def io_s(program: Program) -> float | None:
    """Seconds in I/O of the application, summed over ranks; each file at the layer it was called through."""
    if program.io_s is not None:
        return program.io_s
    tops = (top_layer(file) for file in program.files)
    return known_sum(layer_s(top[1]) for top in tops if top is not None)


def io_slowest_s(program: Program) -> float | None:
    """Seconds in I/O of the slowest rank. Where only files tell their slowest rank, at most so many."""
    if program.io_slowest_rank_s is not None:
        return _within_run(program, program.io_slowest_rank_s)
    return slowest_s_in(program, program.files)


def slowest_s_in(program: Program, files: Iterable[File]) -> float | None:
    """The same in some files of the program."""
    spent = spent_in_tops(program, files)
    if spent is None:
        return None
    return _within_run(program, spent.slowest_s())


def _within_run(program: Program, seconds: float) -> float:
    return min(seconds, program.wall_s) if program.wall_s else seconds


def spent_in_tops(program: Program, files: Iterable[File]) -> TimeSpent | None:
    """Seconds in files, each at the layer that the application called; None if no time is known."""
    tops = ((file, top[1]) for file in files if (top := top_layer(file)) is not None)
    return _spent(program, tops)


def is_bound(program: Program) -> bool:
    """Whether each rank may have spent less than `io_slowest_s`, which adds the slowest ranks of files."""
    if program.io_slowest_rank_s is not None:
        return False
    spent = spent_in_tops(program, program.files)
    return spent is not None and spent.is_bound


def _io_average_s(program: Program) -> float | None:
    spent_s = io_s(program)
    return None if spent_s is None or not program.ranks else spent_s / program.ranks


def _over_time(programs: list[Program], spent: Callable[[Program], float | None]) -> float | None:
    """Seconds of all programs. Of those that run at the same time the largest share counts at each moment."""
    known = [(program, spent_s) for program in programs if (spent_s := spent(program)) is not None]
    spans = sorted(
        (program.started_unix_s, program.started_unix_s + program.wall_s, spent_s / program.wall_s)
        for program, spent_s in known
        if program.started_unix_s is not None and program.wall_s
    )
    in_turn = all(before[1] <= after[0] for before, after in pairwise(spans))
    if in_turn or len(spans) < len(known):
        return known_sum(spent_s for _, spent_s in known)
    moments = sorted({moment for begin, end, _ in spans for moment in (begin, end)})
    return sum(
        (later - moment) * max((share for begin, end, share in spans if begin <= moment < end), default=0.0)
        for moment, later in pairwise(moments)
    )


def io_share(profile: Profile) -> IoShare | None:
    """I/O of all programs against the time of the job; None if that time is not known, or 0."""
    walls_s = known_sum(program.wall_s for program in profile.programs)
    run_s = profile.job.wall_s or walls_s
    if not run_s:
        return None
    average_s = _over_time(profile.programs, _io_average_s)
    slowest_s = _over_time(profile.programs, io_slowest_s)
    if slowest_s is not None and average_s is not None:
        slowest_s = max(slowest_s, average_s)

    def share(seconds: float | None) -> float | None:
        return None if seconds is None else min(1.0, seconds / run_s)

    return IoShare(
        average=share(average_s),
        slowest=share(slowest_s),
        average_s=average_s,
        slowest_s=slowest_s,
        run_s=run_s,
        is_bound=any(map(is_bound, profile.programs)),
    )


class FileCount(msgspec.Struct, kw_only=True):
    """Files of one kind; sizes as far as their bytes were touched."""

    kind: str  # total, read-only, write-only, read/write
    number: int
    average_bytes: float | None
    largest_bytes: int | None


def file_bytes(file: File) -> int | None:
    """Size of the file as its accesses tell it.

    The end of the last byte moved where the source has it, else the larger of the bytes read and written,
    which counts bytes moved twice twice.
    """
    parts = [part for layer in file.layers.values() for part in (layer.read, layer.write)]
    ends = [part.end_bytes for part in parts if part.end_bytes is not None]
    if ends:
        return max(ends)
    return max((part.bytes for part in parts if part.bytes is not None), default=None)


def file_counts(profile: Profile, layer: LayerName) -> list[FileCount]:
    """Darshan's file count summary: all files, read only, written only, both.

    Files that were opened and nothing more are in `total`.
    """
    by_path: dict[str, list[tuple[File, Layer]]] = defaultdict(list)
    for file, part in layers_of(profile.programs, layer):
        by_path[file.path].append((file, part))
    kinds: dict[str, list[int | None]] = {"total": [], "read-only": [], "write-only": [], "read/write": []}
    for uses in by_path.values():
        size = max((size for file, _ in uses if (size := file_bytes(file)) is not None), default=None)
        is_read = any(part.read.bytes or part.read.calls for _, part in uses)
        is_written = any(part.write.bytes or part.write.calls for _, part in uses)
        kinds["total"].append(size)
        if is_read or is_written:
            kinds[
                "read/write" if is_read and is_written else "read-only" if is_read else "write-only"
            ].append(size)
    return [_file_count(kind, sizes) for kind, sizes in kinds.items()]


def _file_count(kind: str, sizes: list[int | None]) -> FileCount:
    known = [size for size in sizes if size is not None]
    average = sum(known) / len(known) if known else None
    return FileCount(
        kind=kind, number=len(sizes), average_bytes=average, largest_bytes=max(known, default=None)
    )


class SlowFile(msgspec.Struct, kw_only=True):
    """A file and the time of its slowest rank at the layer that the application used."""

    program: Program
    file: File
    layer: LayerName
    seconds: float


def slowest_files(profile: Profile, n: int) -> list[SlowFile]:
    """The `n` files with the longest time of their slowest rank, else (not known) of all ranks' mean."""
    found = []
    for program in profile.programs:
        for file in program.files:
            if (top := top_layer(file)) is None:
                continue
            name, layer = top
            seconds = slowest_rank_s(file, layer)
            if seconds is None and (spent_s := layer_s(layer)) is not None:
                seconds = spent_s / max(1, file.ranks or program.ranks or 1)
            if seconds is not None:
                found.append(SlowFile(program=program, file=file, layer=name, seconds=seconds))
    return sorted(found, key=lambda slow: -slow.seconds)[:n]


def stripe_share(traffic: Traffic | TrafficTotals) -> float | None:
    """Share of the system calls that moved exactly one stripe unit."""
    if traffic.stripe_sized is None or not traffic.calls:
        return None
    return traffic.stripe_sized / traffic.calls


def not_ended_properly(profile: Profile) -> list[Program]:
    """Programs that called MPI_Abort, or did not reach their end.

    Of a job that succeeded only those with MPI: pools of workers, `timeout` and scripts kill processes whose
    work is done.
    """
    job = profile.job
    status = job.job_status if job.job_status is not None else job.exit_code
    has_succeeded = status == 0 and not job.running and not job.killed
    return [
        program
        for program in profile.programs
        if (not program.finished or program.aborted_code is not None)
        and (program.uses_mpi or not has_succeeded)
    ]


class Efficiency(msgspec.Struct, kw_only=True):
    """Throughput of the job against what the storage can do at most."""

    layer: LayerName
    bytes_per_s: float
    peak_bytes_per_s: float
    share: float  # above 1 where caches are in front of the storage
    peak: str  # one sentence: where the peak is from


def efficiency(profile: Profile, machine: Machine) -> Efficiency | None:
    """The fastest program's throughput, at the layer the application called, against the machine's peak."""
    best: tuple[float, LayerName] | None = None
    for program in profile.programs:
        for name in LAYERS:
            if (found := performance(program, name)) is not None:
                best = max(best or (0.0, name), (found.bytes_per_s, name))
                break
    if best is None:
        return None
    peak = machine.peak_bytes_per_s
    return Efficiency(
        layer=best[1], bytes_per_s=best[0], peak_bytes_per_s=peak, share=best[0] / peak, peak=machine.peak_is
    )
