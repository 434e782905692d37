"""A file, and a job, as the rules look at them: the figures that several rules need, worked out once."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from pathlib import PurePosixPath

from forebay.advice import thresholds
from forebay.advice.hint_lines import file_pattern
from forebay.profiles import metrics
from forebay.profiles.machine import Machine
from forebay.profiles.model import (
    SIZE_CLASS_ENDS,
    Direction,
    File,
    Hints,
    Layer,
    LayerName,
    Profile,
    Program,
    Traffic,
)
from forebay.quantities import printable, size

#: File systems where writers of one file wait for each other's locks.
PARALLEL_FILE_SYSTEMS = frozenset({"lustre", "gpfs", "beegfs", "dvs", "panfs", "ceph"})


class JobView:
    """The job, its I/O share, and the machine if one was named."""

    def __init__(self, profile: Profile, machine: Machine | None) -> None:
        self.profile = profile
        self.machine = machine
        self.io_share = metrics.io_share(profile)

    @cached_property
    def is_worth_it(self) -> bool:
        """Whether I/O takes enough of the run time to gain anything. Unknown times count as worth it."""
        share = self.io_share
        return share is None or share.slowest is None or share.slowest >= thresholds.IO_SHARE_MIN

    @cached_property
    def files(self) -> list[FileView]:
        """Files that take a share of the time, or of the bytes, worth a look."""
        return [view for program in self.profile.programs for view in self._views(program)]

    @cached_property
    def own_ranks(self) -> dict[str, int]:
        """Of files that one rank alone used, by path."""
        files = (file for program in self.profile.programs for file in program.files)
        return {file.path: file.rank for file in files if file.rank is not None}

    def _views(self, program: Program) -> list[FileView]:
        moved = sum(metrics.file_bytes(file) or 0 for file in program.files)
        views = [FileView(self, program, file) for file in program.files]
        alike_s: dict[str, float] = defaultdict(float)
        for view in views:
            alike_s[view.pattern] += view.seconds or 0.0
        return [view for view in views if self._counts(view, alike_s[view.pattern], moved)]

    def _counts(self, view: FileView, alike_s: float, moved_bytes: int) -> bool:
        """Whether it is worth a look together with those named like it: one step's file takes little."""
        if view.seconds is not None and self.io_share is not None:
            return alike_s >= thresholds.FILE_SHARE_MIN * self.io_share.run_s
        return (metrics.file_bytes(view.file) or 0) >= thresholds.FILE_BYTES_SHARE_MIN * moved_bytes


class FileView:
    """One file of one program."""

    def __init__(self, job: JobView, program: Program, file: File) -> None:
        self.job = job
        self.program = program
        self.file = file

    @property
    def source(self) -> str:
        """What recorded it, for the names of counters."""
        return self.job.profile.source

    @property
    def name(self) -> str:
        """Last part of the path, fit to be printed."""
        return printable(PurePosixPath(self.file.path).name or self.file.path)

    @cached_property
    def pattern(self) -> str:
        """That of its name, which files of other steps and ranks share."""
        return file_pattern(self.file.path)

    @cached_property
    def mpiio(self) -> Layer | None:
        """Its MPI-IO calls."""
        return self.file.layers.get("MPI-IO")

    @cached_property
    def posix(self) -> Layer | None:
        """Its system calls."""
        return self.file.layers.get("POSIX")

    @cached_property
    def top(self) -> tuple[LayerName, Layer] | None:
        """The layer that the application called."""
        return metrics.top_layer(self.file)

    @cached_property
    def seconds(self) -> float | None:
        """Of the slowest rank; where only the sum over ranks is known, their mean."""
        if self.top is None:
            return None
        slowest_s = metrics.slowest_rank_s(self.file, self.top[1])
        total_s = metrics.layer_s(self.top[1])
        if slowest_s is None and total_s is not None:
            return total_s / max(1, self.file.ranks or self.program.ranks or 1)
        return slowest_s

    @property
    def is_shared(self) -> bool:
        """Opened by several ranks; where the number is not told, MPI-IO files are taken to be shared."""
        return self.mpiio is not None if self.file.ranks is None else self.file.ranks > 1

    @property
    def ranks(self) -> int | None:
        """That opened it, else those of the program."""
        return self.file.ranks or self.program.ranks

    @property
    def hints(self) -> Hints:
        """Its hints; empty if none are known."""
        return self.file.hints or Hints()

    def asked(self, direction: Direction) -> Traffic:
        """What the program asked MPI-IO for."""
        return getattr(self.mpiio, direction) if self.mpiio else Traffic()

    def system(self, direction: Direction) -> Traffic:
        """What the system was asked for."""
        return getattr(self.posix, direction) if self.posix else Traffic()

    def aggregators(self, direction: Direction) -> int | None:
        """Ranks that moved data for others."""
        collective = self.file.collective
        if collective is None:
            return None
        return collective.aggregators_write if direction == "write" else collective.aggregators_read

    def new_hints(self, proposed: dict[str, str]) -> dict[str, str]:
        """Those of `proposed` that are not what the file has now."""
        layout = {"striping_unit": self.file.stripe_bytes, "striping_factor": self.file.stripe_count}
        now = {key: str(value) for key, value in layout.items() if value}
        return {key: value for key, value in proposed.items() if value not in (now.get(key), self.hint(key))}

    @cached_property
    def libraries(self) -> set[str]:
        """Libraries above MPI-IO that the program or the file is of, as far as it is known."""
        by_name = {".h5": "HDF5", ".hdf5": "HDF5"}.get(PurePosixPath(self.file.path).suffix)
        return {*self.program.libraries, *filter(None, [by_name])}

    @property
    def needs_bytes(self) -> int | None:
        """Of an allocation that has room for the file; None if the job has one."""
        return None if self.job.profile.job.store else metrics.file_bytes(self.file)

    @property
    def is_on_parallel_file_system(self) -> bool:
        """As far as the source tells: its file system, or a layout in stripes."""
        kind = (self.file.file_system or "").lower()
        return kind in PARALLEL_FILE_SYSTEMS or self.file.stripe_bytes is not None

    def hint(self, key: str) -> str | None:
        """The value in force, else the one asked for from the environment, else by the program."""
        hints = self.hints
        for known in (hints.in_force or {}, hints.environment, hints.program):
            if key in known:
                return known[key]
        return None


def direction_seconds(view: FileView, direction: Direction) -> float | None:
    """Time in one direction at the layer that the application called, of the slowest rank.

    Where only the sum over ranks is known, its share of the slowest rank's time in the file.
    """
    if view.top is None:
        return None
    layer = view.top[1]
    traffic: Traffic = getattr(layer, direction)
    if traffic.slowest_rank_s is not None:
        return traffic.slowest_rank_s
    if traffic.seconds is None:
        return view.seconds
    whole_s = metrics.layer_s(layer)
    return view.seconds * traffic.seconds / whole_s if whole_s and view.seconds is not None else 0.0


def mean_bytes(traffic: Traffic) -> float | None:
    """Mean size of a call."""
    return traffic.bytes / traffic.calls if traffic.calls and traffic.bytes is not None else None


def program_name(program: Program) -> str:
    """Last part of the executable's path."""
    return (program.name or "the program").rpartition("/")[2]


def allocation_bytes(job: JobView, program: Program) -> int | None:
    """Of an allocation that has room for the program's files; None if the job has one."""
    if job.profile.job.store:
        return None
    return sum(metrics.file_bytes(file) or 0 for file in program.files) or None


def sole_rank(file: File) -> int | None:
    """The rank that alone moves the file's data; None: several do, or it is not known."""
    if file.ranks == 1:
        return metrics.own_rank(file)
    top, slowest = metrics.top_layer(file), file.slowest
    moved = ((top[1].read.bytes or 0) + (top[1].write.bytes or 0)) if top else 0
    if slowest is None or not moved or slowest.bytes < thresholds.SOLE_RANK_SHARE_MIN * moved:
        return None
    return slowest.rank


def small_share(traffic: Traffic, most_bytes: int) -> float:
    """Share of the calls of at most `most_bytes`, the end of a class of sizes; 0 if it is not known.

    Without a histogram the mean decides for all calls.
    """
    calls = sum(traffic.sizes or ())
    if not calls:
        mean = mean_bytes(traffic)
        return 1.0 if mean is not None and mean <= most_bytes else 0.0
    ends = zip(SIZE_CLASS_ENDS, traffic.sizes or (), strict=True)
    return sum(number for end, number in ends if end is not None and end <= most_bytes) / calls


def are_small(traffic: Traffic, most_bytes: int) -> bool:
    """Whether calls of at most `most_bytes` are most of the calls, and larger ones do not move most bytes."""
    mean = mean_bytes(traffic)
    if mean is None or mean >= thresholds.BULK_RATIO_MIN * most_bytes:
        return False
    return small_share(traffic, most_bytes) >= thresholds.SMALL_SHARE_MIN


def typical_call_size(traffic: Traffic, most_bytes: int) -> str:
    """What the calls of at most `most_bytes` move: their commonest size, else their mean, else the limit."""
    commonest = next((one for one in traffic.common_sizes if one[0] <= most_bytes), None)
    if commonest and 2 * commonest[1] >= (traffic.calls or 0):
        return size(commonest[0])
    mean = mean_bytes(traffic)
    return size(mean) if mean is not None and mean <= most_bytes else f"at most {size(most_bytes)}"


def steps_back(view: FileView, traffic: Traffic) -> int | None:
    """Calls that began before the end of the rank's previous one.

    The first call after each open counts as one in Darshan's logs, as does each append after it: not here.
    """
    if traffic.sequential is None or traffic.calls is None:
        return None
    layer = view.posix or (view.top[1] if view.top else None)
    opens = (layer.opens or 0) if layer else 0
    return max(0, traffic.calls - traffic.sequential - opens)


def is_random(view: FileView, traffic: Traffic) -> bool:
    """Whether many calls go back in the file."""
    return (steps_back(view, traffic) or 0) > thresholds.RANDOM_SHARE_MIN * (traffic.calls or 0)


def is_buffered(view: FileView, direction: Direction) -> bool | None:
    """Whether collective calls were joined into large system calls; None: there were none, or unknown.

    Not joined: many system calls, each far smaller than what one rank asked for in one call, and than a
    stripe and 1 MiB: aggregators that write a stripe, or a buffer, in each call are joining. Where the bytes
    asked for are not told: more system calls than collective calls. Of writes the source has to have all
    system calls; a block that many ranks read is read by the system once.
    """
    asked, system = view.asked(direction), view.system(direction)
    if not asked.collective or system.calls is None:
        return None
    has_all = system.bytes is None or metrics.has_all_bytes(system.bytes, asked.bytes)
    if direction == "write" and not has_all:
        return None
    if system.calls < thresholds.SPLIT_CALLS_MIN:
        return True
    mean_asked, mean_system = mean_bytes(asked), mean_bytes(system)
    stripe_bytes = view.file.stripe_bytes
    enough = [thresholds.BUFFERED_CALL_BYTES_MIN]
    enough += [thresholds.STRIPE_MEAN_RATIO_MAX * stripe_bytes] if stripe_bytes else []
    if (mean_system or 0) >= min(enough):
        return True
    if mean_asked is not None and mean_system is not None:
        return mean_system >= thresholds.SPLIT_RATIO_MAX * mean_asked
    return system.calls <= asked.collective
