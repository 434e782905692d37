"""Rules about stripes and alignment."""

from __future__ import annotations

import math
from collections.abc import Iterator

from forebay.advice import thresholds
from forebay.advice.counters import DIRECTIONS, evidence
from forebay.advice.file_metrics import (
    FileView,
    are_small,
    direction_seconds,
    is_buffered,
    mean_bytes,
    small_share,
    sole_rank,
)
from forebay.advice.registry import file_rule
from forebay.advice.rules_collective import aggregator_hints, more_aggregators
from forebay.advice.unbound_finding import Draft
from forebay.profiles import metrics
from forebay.profiles.model import Direction
from forebay.quantities import count, percent, size


@file_rule
def stripe_unit(view: FileView) -> Iterator[Draft]:
    """A stripe unit far above the mean system call."""
    for direction in DIRECTIONS:
        draft = _stripe_unit(view, direction)
        if draft is not None:
            yield draft


def _stripe_unit(view: FileView, direction: Direction) -> Draft | None:
    system, unit, mean = view.system(direction), view.file.stripe_bytes, mean_bytes(view.system(direction))
    if not unit or not mean or (system.calls or 0) < thresholds.STRIPE_CALLS_MIN:
        return None
    if not is_buffered(view, direction):
        return None  # small calls of another cause; only aggregators cut their work at stripe units
    share = metrics.stripe_share(system)
    if mean > thresholds.STRIPE_MEAN_RATIO_MAX * unit or (
        share is not None and share >= thresholds.STRIPE_SHARE_MAX
    ):
        return None
    proposed = 1 << round(math.log2(mean))
    least = thresholds.STRIPE_UNIT_BYTES_MIN if view.source != "darshan" else thresholds.LUSTRE_UNIT_BYTES_MIN
    if not least <= proposed < unit:
        return None
    hints = {"striping_unit": str(proposed)}
    aggregators = more_aggregators(view, direction) if view.asked(direction).collective else None
    also = ""
    if aggregators is not None:
        hints |= aggregator_hints(view, aggregators)
        also = f" and {aggregators} aggregators"
    shown = [
        evidence(view.source, "stripe unit", unit, "bytes"),
        evidence(view.source, "mean system call", mean, "bytes", direction),
        evidence(view.source, "system calls", system.calls, "calls", direction),
        evidence(view.source, "stripe sized", system.stripe_sized, "calls", direction),
        evidence(view.source, "aggregators", view.aggregators(direction), "ranks", direction),
    ]
    share_text = "" if share is None else f", {percent(share)} of the system {direction}s are of one stripe"
    return Draft(
        code="stripe-unit",
        parts=(direction, "waiting"),
        level="suggestion",
        file=view.file.path,
        title=f"The stripe unit of {view.name} is {size(unit)}, the mean system {direction} "
        f"{size(mean)}{share_text}",
        evidence=tuple(item for item in shown if item.value is not None),
        rule="The stripe unit should be near the mean system call; smaller units make more calls, so more "
        "aggregators should share them.",
        source="KAUST's burst buffer talk (2018), study of WRF-CHEM",
        action=f"Try a stripe unit of {size(proposed)}{also}, with a new file (the layout of "
        "a file that exists stays); go on while it gets faster.",
        hints=view.new_hints(hints),
        seconds=direction_seconds(view, direction),
    )


@file_rule
def one_stripe(view: FileView) -> Iterator[Draft]:
    """A large shared file on one storage target of a Lustre with many."""
    size_bytes = metrics.file_bytes(view.file) or 0
    large = size_bytes >= thresholds.ONE_STRIPE_BYTES_MIN
    if view.file.stripe_count != 1 or not large or not view.is_shared or not view.ranks or view.ranks < 2:
        return
    emulated = view.job.profile.job.emulated is not None
    if (view.file.file_system or "").lower() != "lustre" and view.job.machine is None and not emulated:
        return
    if view.mpiio is None and sole_rank(view.file) is not None:
        return
    if any(_is_known_small(view, direction) for direction in DIRECTIONS):
        return  # small calls keep no target busy
    targets = view.job.machine.targets if view.job.machine else None
    stripes = min(view.ranks, size_bytes // thresholds.STRIPE_BYTES_MIN, targets or thresholds.STRIPES_MAX)
    if stripes == 1:
        return
    folder = view.file.path.rpartition("/")[0] or "/"
    is_own = folder.isprintable() and folder != (view.file.mount or "/").rstrip("/")
    yield Draft(
        code="one-stripe",
        parts=("write", "read", "waiting"),
        level="problem" if size_bytes >= thresholds.GIB else "suggestion",
        file=view.file.path,
        title=f"{view.name} is shared by {count(view.ranks)} ranks and is stored on one storage target",
        evidence=(
            evidence(view.source, "stripe count", 1, "targets"),
            evidence(view.source, "end", size_bytes, "bytes"),
        ),
        rule="One shared file: as many stripes as storage targets, or as ranks if those are fewer.",
        source="Cray's course on parallel I/O (2012)",
        action=f"Stripe the directory of the file over {stripes} targets before the job writes; files that "
        "exist keep their layout.",
        stripes=(folder, stripes) if is_own else None,
        seconds=view.seconds,
    )


def _is_known_small(view: FileView, direction: Direction) -> bool:
    """Whether the system calls are small, and the source has all of them."""
    asked, system = view.asked(direction), view.system(direction)
    is_whole = metrics.has_all_bytes(system.bytes, asked.bytes)
    return bool(system.bytes) and is_whole and are_small(system, thresholds.SMALL_CALL_BYTES)


@file_rule
def not_aligned(view: FileView) -> Iterator[Draft]:
    """Writes across block borders, where writers of a shared file wait for each other's locks."""
    posix = view.posix
    if posix is None or not posix.not_aligned or not view.is_on_parallel_file_system or not view.is_shared:
        return
    calls = (posix.read.calls or 0) + (posix.write.calls or 0)
    mean = mean_bytes(posix.write)
    if (posix.write.calls or 0) < thresholds.SMALL_CALLS_MIN or mean is None:
        return
    if not thresholds.STRIPE_UNIT_BYTES_MIN <= mean < thresholds.LARGE_CALL_BYTES:
        return
    small = sum(
        round(small_share(part, thresholds.SMALL_CALL_BYTES) * (part.calls or 0))
        for part in (posix.read, posix.write)
    )
    if posix.not_aligned - small < thresholds.NOT_ALIGNED_SHARE_MIN * (calls - small):
        return  # the small ones, which begin anywhere, may be all
    if view.asked("write").collective or (view.file.collective and view.file.collective.rmw_calls):
        return  # aggregators have ranges of whole stripes; data sieving has blocks of its own
    unit = view.file.stripe_bytes or posix.alignment_bytes
    hints = view.new_hints({"striping_unit": str(unit)}) if unit and view.mpiio is not None else {}
    yield Draft(
        code="not-aligned",
        parts=("write",),
        level="suggestion",
        file=view.file.path,
        title=f"{percent(posix.not_aligned / calls)} of the system calls on {view.name} begin inside of "
        "a block",
        evidence=(
            evidence(view.source, "not aligned", posix.not_aligned, "calls"),
            evidence(view.source, "system calls", calls, "calls"),
        ),
        rule="Two ranks that write into one block of a parallel file system wait for each other's lock.",
        source="Drishti's threshold (10 %); Cray's course on parallel I/O (2012)",
        action=_alignment(view, unit),
        hints=hints,
        seconds=direction_seconds(view, "write"),
    )


def _alignment(view: FileView, unit: int | None) -> str:
    """What begins on borders, by the library that decides it."""
    borders = f"multiples of {size(unit)}" if unit else "block borders"
    if "PnetCDF" in view.libraries:
        return f"Let variables begin on {borders}: nc_var_align_size in PNETCDF_HINTS."
    if "HDF5" in view.libraries:
        return f"Let datasets begin on {borders}: H5Pset_alignment."
    return f"Let the range of each rank begin on {borders}."
