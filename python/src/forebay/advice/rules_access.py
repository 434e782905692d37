"""Rules about how a program reads and writes one file: sizes, order, repetition."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from forebay.advice import thresholds
from forebay.advice.counters import DIRECTIONS, evidence
from forebay.advice.file_metrics import (
    FileView,
    are_small,
    direction_seconds,
    is_random,
    mean_bytes,
    sole_rank,
    steps_back,
    typical_call_size,
)
from forebay.advice.model import Evidence
from forebay.advice.registry import file_rule
from forebay.advice.rules_collective import COLLECTIVE_CALLS, access_evidence
from forebay.advice.unbound_finding import Draft
from forebay.profiles import metrics
from forebay.profiles.model import Direction, Traffic
from forebay.quantities import count, percent, size

#: A directive's path may not hold these; docs/reference/directives.md has the rest of the syntax.
UNFIT_IN_DIRECTIVE = frozenset('"$')


@file_rule
def small_independent(view: FileView) -> Iterator[Draft]:
    """Many small independent MPI-IO calls of several ranks on one file."""
    found = [direction for direction in DIRECTIONS if _is_small_independent(view, direction)]
    if not found or sole_rank(view.file) is not None:
        return
    shown = [item for direction in found for item in access_evidence(view, direction)]
    random = [direction for direction in found if is_random(view, view.system(direction))]
    shown += [
        evidence(view.source, "steps back", steps_back(view, view.system(direction)), "calls", direction)
        for direction in random
    ]
    directions = " and ".join(f"{direction}s" for direction in found)
    order = "at random places " if random else ""
    calls = sum(view.asked(direction).independent or 0 for direction in found)
    of_way = _sized(view, max(found, key=lambda direction: view.asked(direction).independent or 0))
    yield Draft(
        code="small-independent",
        parts=tuple(found),
        level="problem",
        file=view.file.path,
        title=f"{count(calls)} independent MPI-IO {directions} {order}of {view.name} move "
        f"{typical_call_size(of_way, thresholds.SMALL_CALL_BYTES)} each",
        evidence=tuple(shown),
        rule="Over 1,000 calls, most of at most 100 KiB, none collective: each pays the way to the storage "
        "for itself, and collective buffering cannot join them.",
        source="Drishti (1,000 calls, 20 % random; the size is ours); ROMIO Users Guide",
        action=f"Call {' and '.join(COLLECTIVE_CALLS[direction] for direction in found)} in the program."
        + _near_the_node(view),
        allocation_bytes=view.needs_bytes,
        seconds=metrics.known_sum(direction_seconds(view, direction) for direction in found),
    )


def _sized(view: FileView, direction: Direction) -> Traffic:
    """The calls whose sizes count: those of the program where they are known, else those of the system."""
    asked = view.asked(direction)
    return asked if asked.sizes is not None or mean_bytes(asked) is not None else view.system(direction)


def _is_small_independent(view: FileView, direction: Direction) -> bool:
    asked = view.asked(direction)
    independent = asked.independent or 0
    if independent < thresholds.SMALL_CALLS_MIN or not view.is_shared:
        return False
    is_small = are_small(_sized(view, direction), thresholds.SMALL_CALL_BYTES)
    return is_small and independent > (asked.collective or 0)


@file_rule
def single_rank_mpiio(view: FileView) -> Iterator[Draft]:
    """One rank that makes very many tiny MPI-IO calls."""
    rank = sole_rank(view.file) if view.mpiio is not None else None
    if rank is None:
        return
    for direction in DIRECTIONS:
        asked = view.asked(direction)
        is_small = are_small(_sized(view, direction), thresholds.SMALL_LOCAL_CALL_BYTES)
        if (asked.calls or 0) < thresholds.SMALL_CALLS_MIN or not is_small:
            continue
        yield Draft(
            code="single-rank-mpiio",
            parts=(direction,),
            level="problem",
            file=view.file.path,
            title=f"Rank {rank} alone makes {count(asked.calls or 0)} MPI-IO {direction} calls of "
            f"{typical_call_size(_sized(view, direction), thresholds.SMALL_LOCAL_CALL_BYTES)} on {view.name}",
            evidence=access_evidence(view, direction),
            rule="MPI-IO has no buffer: each call of one rank goes to the storage by itself.",
            source="MPI standard, chapter on I/O; the limits are those of small-calls",
            action="Collect the pieces in memory, and move them in one call; a derived datatype makes one "
            "call of pieces with holes.",
            seconds=direction_seconds(view, direction),
        )


@file_rule
def independent_of_many(view: FileView) -> Iterator[Draft]:
    """Independent calls by all ranks that leave holes: pieces of an array, each row by itself."""
    for direction in DIRECTIONS:
        asked, system = view.asked(direction), view.system(direction)
        if (
            not asked.independent
            or asked.collective
            or not view.is_shared
            or _is_small_independent(view, direction)
        ):
            continue
        many = (system.calls or 0) >= thresholds.SMALL_CALLS_MIN
        split = many and (system.calls or 0) > asked.independent / thresholds.SPLIT_RATIO_MAX
        if not split or not are_small(system, thresholds.SMALL_CALL_BYTES):
            continue
        yield Draft(
            code="independent-pieces",
            parts=(direction,),
            level="problem",
            file=view.file.path,
            title=f"Independent {direction}s of {view.name} fall into "
            f"{count(system.calls or 0)} system calls of "
            f"{typical_call_size(system, thresholds.SMALL_CALL_BYTES)}",
            evidence=access_evidence(view, direction),
            rule="A call whose file view has holes becomes a system call for each piece, unless it is "
            "collective.",
            source="ROMIO Users Guide",
            action=f"Call {COLLECTIVE_CALLS[direction]} in the program: two-phase I/O joins the pieces of "
            "all ranks.",
            seconds=direction_seconds(view, direction),
        )


def _near_the_node(view: FileView) -> str:
    if view.job.profile.job.store:
        return ""
    return " Unchanged, it gains from a burst buffer near the node, where a small call is cheap."


@file_rule
def small_calls(view: FileView) -> Iterator[Draft]:
    """Many small calls without MPI-IO: Fortran records, streams, loops of writes."""
    if view.top is None or view.top[0] == "MPI-IO":
        return
    name, layer = view.top
    least = thresholds.STREAM_CALLS_MIN if name == "STDIO" else thresholds.SMALL_CALLS_MIN
    for direction in DIRECTIONS:
        traffic: Traffic = getattr(layer, direction)
        random = is_random(view, traffic)
        is_apart = random or (name == "POSIX" and view.is_shared and _leave_gaps(traffic))
        most = thresholds.SMALL_CALL_BYTES if is_apart else thresholds.SMALL_LOCAL_CALL_BYTES
        if (traffic.calls or 0) < least or not are_small(traffic, most):
            continue
        calls = Evidence(counter=f"{name} {direction} calls", value=traffic.calls, unit="calls")
        mean = Evidence(counter=f"{name} mean {direction} call", value=mean_bytes(traffic), unit="bytes")
        action, lines = _buffer(view, name)
        if random:
            action, lines = "Sort the accesses, or keep the file near the node.", ()
        yield Draft(
            code="small-calls",
            parts=(direction,),
            level="suggestion",
            file=view.file.path,
            title=f"{count(traffic.calls or 0)} {direction} calls {'at random places ' if random else ''}of "
            f"{typical_call_size(traffic, most)} on {view.name}, without MPI-IO",
            evidence=(calls, mean),
            rule="Each call costs the same however little it moves; a buffer in the program joins them.",
            source="Drishti (over 1,000 small calls); the size limit is ours, because page caches join "
            "larger calls",
            action=action,
            lines=lines,
            seconds=direction_seconds(view, direction),
        )


def _leave_gaps(traffic: Traffic) -> bool:
    """Whether most calls do not begin where the rank's previous one ended."""
    return traffic.consecutive is not None and 2 * traffic.consecutive < (traffic.calls or 0)


def _buffer(view: FileView, layer: str) -> tuple[str, tuple[str, ...]]:
    """How to give the program a buffer; a line where its run time library is known to take one."""
    variables = view.job.profile.job.environment
    is_fortran = PurePosixPath(view.file.path).name.startswith("fort.") or any(
        name.startswith(("GFORTRAN_", "FORT_")) for name in variables
    )
    if layer == "STDIO":
        return "Give the stream a buffer of 1 MiB (setvbuf), and do not flush it after each call.", ()
    if is_fortran:
        line = "export GFORTRAN_UNFORMATTED_BUFFER_SIZE=1048576 FORT_BUFFERED=true  # gfortran, Intel"
        return "Give Fortran's records a buffer of 1 MiB by the line below.", (line,)
    return "Collect the pieces in a buffer of 1 MiB in the program, and move it in one call.", ()


@file_rule
def read_again(view: FileView) -> Iterator[Draft]:
    """More bytes read than the file has.

    In a collective read the system may read for all ranks once; in a write of MPI-IO it may read, too.
    """
    if view.top is None:
        return
    called, system = view.top[1].read, view.system("read")
    end = next((part.end_bytes for part in (called, system) if part.end_bytes), None)
    counted = [(one.bytes, name) for one, name in ((called, view.top[0]), (system, "POSIX")) if one.bytes]
    read_bytes, layer = min(counted, default=(0, ""))
    if not end or read_bytes < thresholds.REREAD_RATIO_MIN * end:
        return
    if read_bytes - end < thresholds.REREAD_BYTES_MIN or end < thresholds.REREAD_FILE_BYTES_MIN:
        return
    path = PurePosixPath(view.file.path)
    fits = (
        path.is_absolute() and view.file.path.isprintable() and not UNFIT_IN_DIRECTIVE & set(view.file.path)
    )
    stage_in = f'#DW stage_in type=file source="{path}" destination="$DW_JOB_STRIPED/{path.name}"'
    may_stage = fits and not view.job.profile.job.store
    yield Draft(
        code="read-again",
        parts=("read",),
        level="suggestion",
        file=view.file.path,
        title=f"{view.name} was read {read_bytes / end:.1f} times over: {size(read_bytes)} of {size(end)}",
        evidence=(
            Evidence(counter=f"{layer} bytes read", value=read_bytes, unit="bytes"),
            evidence(view.source, "end", end, "bytes", "read"),
        ),
        rule="Bytes read beyond the end of the file, per file, were read before.",
        source="Darshan's counters; the comparison that Drishti makes over all files is made for each file",
        action="Keep what was read, or read it on one rank and broadcast it; else stage the file into "
        "the burst buffer and read it there.",
        lines=(stage_in,) if may_stage else (),
        allocation_bytes=end if may_stage else None,
        seconds=_again_s(view, 1 - end / read_bytes),
    )


def _again_s(view: FileView, share: float) -> float | None:
    """Of the time of reading, that of the bytes which were read before."""
    read_s = direction_seconds(view, "read")
    return None if read_s is None else share * read_s


@file_rule
def many_syncs(view: FileView) -> Iterator[Draft]:
    """Flushes to storage so often that they take much of the time."""
    layer = view.posix or view.mpiio  # flushing a stream goes no further than the page cache
    syncs = layer.syncs or 0 if layer else 0
    ranks = view.ranks or 1
    least = max(thresholds.SYNCS_MIN, thresholds.SYNCS_PER_RANK_MIN * ranks)
    if layer is None or view.top is None or syncs < least:
        return
    sync_s = view.top[1].sync_s or layer.sync_s
    total_s = metrics.layer_s(view.top[1])
    writes = layer.write.calls or 0
    if sync_s and total_s:
        is_heavy = sync_s >= thresholds.SYNC_SHARE_MIN * total_s
    else:
        is_heavy = syncs >= thresholds.SYNCS_PER_WRITE_MIN * writes
    if not is_heavy:
        return
    share = f", {percent(min(1.0, sync_s / total_s))} of its time" if sync_s and total_s else ""
    yield Draft(
        code="many-syncs",
        parts=("sync",) if view.top[1].sync_s else ("write",),
        level="problem",
        file=view.file.path,
        title=f"{view.name} was flushed to storage {count(syncs)} times{share}",
        evidence=(
            evidence(view.source, "syncs", syncs, "calls"),
            evidence(view.source, "system calls", writes, "calls"),
            Evidence(counter="time in syncs, summed over ranks", value=sync_s, unit="s"),
        ),
        rule="A sync waits for the storage itself; caches and burst buffers cannot hide it.",
        source="POSIX, fsync; the limits are ours",
        action="Flush when a checkpoint is whole, not in between; on a burst buffer stage-out makes the "
        "data safe.",
        allocation_bytes=view.needs_bytes,
        seconds=sync_s / ranks if sync_s else direction_seconds(view, "write"),
    )
