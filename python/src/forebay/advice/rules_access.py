"""Rules about how a program reads and writes one file: sizes, order, repetition."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import PurePosixPath

from forebay.advice import thresholds
from forebay.advice.counters import WAYS, Way, evidence
from forebay.advice.file_metrics import FileView, mean_bytes
from forebay.advice.model import Evidence
from forebay.advice.registry import file_rule
from forebay.advice.rules_collective import COLLECTIVE_CALLS, access_evidence, way_seconds
from forebay.advice.unbound_finding import Draft
from forebay.profiles import metrics
from forebay.profiles.model import Traffic
from forebay.quantities import count, percent, size

#: A directive's path may not hold these; docs/reference/directives.md has the rest of the syntax.
UNFIT_IN_DIRECTIVE = frozenset('"$')


def allocation_line(needed_bytes: float) -> str:
    """An allocation of a quarter more than is needed, in whole GiB."""
    capacity_gib = max(1, math.ceil(1.25 * needed_bytes / thresholds.GIB))
    return f"#DW jobdw type=scratch access_mode=striped capacity={capacity_gib}GiB"


def back_share(system: Traffic) -> float | None:
    """Share of the calls that began before the end of the rank's previous one."""
    if system.sequential is None or not system.calls:
        return None
    return 1 - system.sequential / system.calls


@file_rule
def small_independent(view: FileView) -> Iterator[Draft]:
    """Many small independent MPI-IO calls on a shared file."""
    found = [way for way in WAYS if _is_small_independent(view, way)]
    if not found:
        return
    shown = [item for way in found for item in access_evidence(view, way)]
    shares = {way: back_share(view.system(way)) for way in found}
    random = [way for way in found if (shares[way] or 0) > thresholds.RANDOM_SHARE_MIN]
    shown += [
        evidence(
            view.source, "steps back", round((shares[way] or 0) * (view.system(way).calls or 0)), "calls", way
        )
        for way in random
    ]
    ways = " and ".join(f"{way}s" for way in found)
    order = "at random places " if random else ""
    calls = sum(view.asked(way).independent or 0 for way in found)
    mean = max(mean_bytes(view.asked(way)) or mean_bytes(view.system(way)) or 0 for way in found)
    yield Draft(
        code="small-independent",
        level="problem",
        file=view.file.path,
        title=f"{count(calls)} independent MPI-IO {ways} {order}of {view.name} move {size(mean)} each",
        evidence=tuple(shown),
        rule="Over 1,000 calls of under 1 MiB, none collective: each pays the way to the storage for "
        "itself, and collective buffering cannot join them.",
        source="Drishti (thresholds of 1,000 calls, 1 MiB, 20 % random); ROMIO Users Guide",
        action=f"Call {' and '.join(COLLECTIVE_CALLS[way] for way in found)} in the program."
        + _near_the_node(view),
        lines=_buffer_lines(view),
        seconds=view.seconds,
    )


def _is_small_independent(view: FileView, way: Way) -> bool:
    asked = view.asked(way)
    independent = asked.independent or 0
    mean = mean_bytes(asked) or mean_bytes(view.system(way))
    if independent < thresholds.SMALL_CALLS_MIN or not view.is_shared or mean is None:
        return False
    return mean < thresholds.SMALL_CALL_BYTES and independent > (asked.collective or 0)


def _near_the_node(view: FileView) -> str:
    if view.job.profile.job.store:
        return ""
    return " Unchanged, it gains from a burst buffer near the node, where a small call is cheap."


def _buffer_lines(view: FileView) -> tuple[str, ...]:
    """An allocation for the file, unless the job has one."""
    needed = metrics.file_bytes(view.file)
    return () if view.job.profile.job.store or not needed else (allocation_line(needed),)


@file_rule
def independent_of_many(view: FileView) -> Iterator[Draft]:
    """Independent calls by all ranks that leave holes: pieces of an array, each row by itself."""
    for way in WAYS:
        asked, system = view.asked(way), view.system(way)
        if (
            not asked.independent
            or asked.collective
            or not view.is_shared
            or _is_small_independent(view, way)
        ):
            continue
        many = (system.calls or 0) >= thresholds.SMALL_CALLS_MIN
        split = many and (system.calls or 0) > asked.independent / thresholds.SPLIT_RATIO_MAX
        mean = mean_bytes(system)
        if not split or mean is None or mean >= thresholds.SMALL_CALL_BYTES:
            continue
        yield Draft(
            code="independent-pieces",
            level="problem",
            file=view.file.path,
            title=f"Independent {way}s of {view.name} fall into {count(system.calls or 0)} system calls "
            f"of {size(mean)}",
            evidence=access_evidence(view, way),
            rule="A call whose file view has holes becomes a system call for each piece, unless it is "
            "collective.",
            source="ROMIO Users Guide",
            action=f"Call {COLLECTIVE_CALLS[way]} in the program: two-phase I/O joins the pieces of all "
            "ranks.",
            seconds=way_seconds(view, way),
        )


@file_rule
def small_calls(view: FileView) -> Iterator[Draft]:
    """Many small calls without MPI-IO: Fortran records, streams, loops of writes."""
    if view.top is None or view.top[0] == "MPI-IO":
        return
    name, layer = view.top
    least = thresholds.STREAM_CALLS_MIN if name == "STDIO" else thresholds.SMALL_CALLS_MIN
    for way in WAYS:
        traffic: Traffic = getattr(layer, way)
        mean = mean_bytes(traffic)
        if mean is None or (traffic.calls or 0) < least or mean >= thresholds.SMALL_LOCAL_CALL_BYTES:
            continue
        share = back_share(traffic)
        order = "at random places " if (share or 0) > thresholds.RANDOM_SHARE_MIN else ""
        calls = Evidence(counter=f"{name} {way} calls", value=traffic.calls, unit="calls")
        yield Draft(
            code="small-calls",
            level="suggestion",
            file=view.file.path,
            title=f"{count(traffic.calls or 0)} {way} calls {order}of {size(mean)} on {view.name}, "
            "without MPI-IO",
            evidence=(calls, Evidence(counter=f"{name} mean {way} call", value=mean, unit="bytes")),
            rule="Each call costs the same however little it moves; a buffer in the program joins them.",
            source="Drishti (over 1,000 small calls); the size limit is ours, because page caches join "
            "larger calls",
            action="Give the program a buffer of 1 MiB: Fortran by the line below, a C stream by setvbuf."
            if not order
            else "Sort the accesses, or keep the file near the node.",
            lines=()
            if order
            else ("export GFORTRAN_UNFORMATTED_BUFFER_SIZE=1048576 FORT_BUFFERED=true  # gfortran, Intel",),
            seconds=view.seconds,
        )


@file_rule
def read_again(view: FileView) -> Iterator[Draft]:
    """More bytes read than the file has."""
    if view.top is None:
        return
    read: Traffic = view.top[1].read
    end = next((part.end_bytes for part in (read, view.system("read")) if part.end_bytes), None)
    if not end or not read.bytes or read.bytes < thresholds.REREAD_RATIO_MIN * end:
        return
    if read.bytes - end < thresholds.REREAD_BYTES_MIN:
        return
    path = PurePosixPath(view.file.path)
    fits = (
        path.is_absolute() and view.file.path.isprintable() and not UNFIT_IN_DIRECTIVE & set(view.file.path)
    )
    stage_in = f'#DW stage_in type=file source="{path}" destination="$DW_JOB_STRIPED/{path.name}"'
    lines = (allocation_line(end), stage_in) if fits and not view.job.profile.job.store else ()
    yield Draft(
        code="read-again",
        level="suggestion",
        file=view.file.path,
        title=f"{view.name} was read {read.bytes / end:.1f} times over: {size(read.bytes)} of {size(end)}",
        evidence=(
            Evidence(counter=f"{view.top[0]} bytes read", value=read.bytes, unit="bytes"),
            evidence(view.source, "end", end, "bytes", "read"),
        ),
        rule="Bytes read beyond the end of the file, per file, were read before.",
        source="Darshan's counters; the comparison that Drishti makes over all files is made for each file",
        action="Keep what was read, or read it on one rank and broadcast it; else stage the file into "
        "the burst buffer and read it there.",
        lines=lines,
        seconds=way_seconds(view, "read"),
    )


@file_rule
def many_syncs(view: FileView) -> Iterator[Draft]:
    """Flushes to storage so often that they take much of the time."""
    layer = view.posix or view.mpiio  # flushing a stream goes no further than the page cache
    syncs = layer.syncs or 0 if layer else 0
    if layer is None or view.top is None or syncs < thresholds.SYNCS_MIN:
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
    ranks = view.ranks or 1
    yield Draft(
        code="many-syncs",
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
        lines=_buffer_lines(view),
        seconds=sync_s / ranks if sync_s else view.seconds,
    )
