"""Rules about opening, closing and asking, and about many small files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import PurePosixPath

from forebay.advice import thresholds
from forebay.advice.counters import evidence
from forebay.advice.file_metrics import FileView, JobView, allocation_bytes, program_name
from forebay.advice.model import Evidence
from forebay.advice.registry import file_rule, job_rule
from forebay.advice.unbound_finding import Draft
from forebay.profiles import metrics, time_parts
from forebay.profiles.model import File, Layer, Program
from forebay.quantities import count, duration, percent, size


def _is_blocked(layer: Layer) -> bool:
    """Whether few opens took so long that somebody must have been waited for."""
    opens = layer.opens or 0
    if not 0 < opens <= thresholds.BLOCKED_OPENS_MAX:
        return False
    return (layer.metadata_s or 0.0) >= thresholds.BLOCKED_OPEN_S_MIN * opens


@file_rule
def blocked_open(view: FileView) -> Iterator[Draft]:
    """An open that takes minutes."""
    if view.top is None or not _is_blocked(view.top[1]):
        return
    layer = view.top[1]
    each_s = (layer.metadata_s or 0.0) / (layer.opens or 1)
    yield Draft(
        code="blocked-open",
        parts=("metadata",),
        level="problem",
        file=view.file.path,
        title=f"Opening {view.name} took {duration(each_s)}",
        evidence=(
            evidence(view.source, "metadata", layer.metadata_s, "s, summed over ranks"),
            evidence(view.source, "opens", layer.opens, "calls"),
        ),
        rule="A metadata server answers within seconds. An open that takes minutes waits for somebody.",
        source="POSIX, open of a FIFO; the limit is ours",
        action="Look at what it is: a pipe whose other end nobody opened, a mount that hung, or a file that "
        "was recalled from tape.",
        seconds=each_s,
    )


@job_rule
def metadata_heavy(view: JobView) -> Iterator[Draft]:
    """Opening and closing take more time than moving data."""
    for program in view.profile.programs:
        parts, run_s, ranks = time_parts.slowest_rank_parts(program), program.wall_s, program.ranks
        tops = [top[1] for file in program.files if (top := metrics.top_layer(file)) is not None]
        if parts is None or not run_s or not ranks or any(map(_is_blocked, tops)):
            continue
        if parts.metadata < max(thresholds.METADATA_SHARE_MIN * parts.sum(), thresholds.IO_SHARE_MIN * run_s):
            continue
        opens = sum(layer.opens or 0 for layer in tops)
        if _most_opens_of_a_rank(program, opens) < thresholds.OPENS_PER_RANK_MIN:
            continue
        if _of_stats(program) or _imports(program):
            continue  # the finding about these names the cause
        if 2 * _waited_in_opens_s(program) > parts.metadata:
            continue  # for ranks that come later, not for the metadata server
        metadata_s = metrics.known_sum(layer.metadata_s for layer in tops)
        yield Draft(
            code="metadata-heavy",
            parts=("metadata",),
            level="problem",
            title=f"{program_name(program)} spends {percent(parts.metadata / parts.sum())} of its I/O time "
            "opening, closing "
            f"and asking, not moving data: {count(opens)} opens of {count(len(tops))} files",
            evidence=(
                evidence(view.profile.source, "metadata", metadata_s, "s, summed over ranks"),
                evidence(view.profile.source, "opens", opens, "calls"),
                Evidence(counter="files", value=len(tops), unit="files"),
            ),
            rule="One metadata server answers for all nodes; opens and stats do not get faster with more "
            "storage.",
            source="Cray's course on parallel I/O (2012); the limit is ours",
            action="Open once and keep open; open on one rank and broadcast; put many small files into one. "
            "In a burst buffer near the node these calls do not leave the node.",
            allocation_bytes=allocation_bytes(view, program),
            seconds=parts.metadata,
        )


def _waited_in_opens_s(program: Program) -> float:
    """Of opening and closing by MPI-IO, what the system calls of the slowest rank do not account for."""
    waited_s = 0.0
    for file in program.files:
        asked, made = file.layers.get("MPI-IO"), file.layers.get("POSIX")
        if asked is not None and made is not None and made.metadata_s is not None:
            waited_s += max(0.0, _metadata_s(file, asked) - _metadata_s(file, made))
    return waited_s


def _metadata_s(file: File, layer: Layer) -> float:
    """Of the slowest rank; its share of the layer's slowest rank where that alone is known."""
    if layer.metadata_slowest_rank_s is not None:
        return layer.metadata_slowest_rank_s
    slowest_s, whole_s = metrics.slowest_rank_s(file, layer), metrics.layer_s(layer)
    return (slowest_s or 0.0) * (layer.metadata_s or 0.0) / whole_s if whole_s else 0.0


def _most_opens_of_a_rank(program: Program, opens: int) -> float:
    """Of the rank that opens most, where the source tells; else the mean of the ranks."""
    of_ranks: dict[int, int] = defaultdict(int)
    for file in program.files:
        top = metrics.top_layer(file)
        for one in top[1].rank_s if top else ():
            of_ranks[one.rank] += one.opens
    return max(max(of_ranks.values(), default=0), opens / (program.ranks or 1))


class _Stats:
    """Questions for attributes of a program, and what they may have taken of the slowest rank's time."""

    def __init__(self, program: Program) -> None:
        self.calls, self.opens, self.files = 0, 0, 0
        self.calls_of: dict[int, int] = defaultdict(int)
        self.s_of: dict[int, float] = defaultdict(float)
        shared_s = 0.0
        for file in program.files:
            layer = file.layers.get("POSIX")
            if layer is None:
                continue
            self.calls += layer.stats or 0
            self.opens += layer.opens or 0
            self.files += bool(layer.stats)
            for one in layer.rank_s:
                self.calls_of[one.rank] += one.stats
                self.s_of[one.rank] += _stat_share(one.stats, one.opens) * one.metadata_s
            if not layer.rank_s:
                ranks = file.ranks or program.ranks or 1
                spent_s = layer.metadata_slowest_rank_s or (layer.metadata_s or 0.0) / ranks
                shared_s += _stat_share(layer.stats, layer.opens) * spent_s
        self.slowest_s = max(self.s_of.values(), default=0.0) + shared_s
        self.rank = max(self.calls_of, key=self.calls_of.__getitem__, default=None)

    @property
    def of_one_rank(self) -> int | None:
        """The rank that asks nearly all the questions, of several."""
        if self.rank is None or not self.calls:
            return None
        share = self.calls_of[self.rank] / self.calls
        return self.rank if share >= thresholds.ONE_RANK_STATS_SHARE_MIN else None


def _stat_share(stats: int | None, opens: int | None) -> float:
    """Of the metadata time: an open comes with a close."""
    calls = (stats or 0) + 2 * (opens or 0)
    return (stats or 0) / calls if calls else 0.0


def _of_stats(program: Program) -> _Stats | None:
    """Where questions are the load: more of them than opens, and long enough."""
    stats, run_s = _Stats(program), program.wall_s
    is_one = stats.of_one_rank is not None and (program.ranks or 1) > 1
    least = thresholds.ONE_RANK_STATS_MIN if is_one else thresholds.STATS_MIN
    if stats.calls < least or not run_s or stats.slowest_s < thresholds.FINDING_SHARE_MIN * run_s:
        return None
    of_rank = stats.calls_of.get(stats.rank or 0, 0) if is_one else stats.calls
    return stats if of_rank >= least and (is_one or stats.calls > stats.opens) else None


@job_rule
def stat_storm(view: JobView) -> Iterator[Draft]:
    """Asking for attributes of files, again and again, or on one rank for all."""
    for program in view.profile.programs:
        stats = _of_stats(program)
        if stats is None:
            continue
        rank, ranks = stats.of_one_rank, program.ranks or 1
        is_alone = rank is not None and ranks > 1
        who = f"Rank {rank} alone, of {count(ranks)}," if is_alone else program_name(program)
        action = "Ask once and remember the answer; list a directory instead of asking for each file."
        if is_alone:
            action = "Let the ranks share the work, or do without it: a file that was just created exists."
        yield Draft(
            code="stat-storm",
            parts=("metadata",),
            level="problem",
            title=f"{who} asks {count(stats.calls)} times for the attributes of {count(stats.files)} "
            f"files: {duration(stats.slowest_s)}",
            evidence=(
                Evidence(counter="POSIX_STATS", value=stats.calls, unit="calls"),
                evidence(view.profile.source, "opens", stats.opens, "calls"),
                Evidence(counter="time in them, of the slowest rank", value=stats.slowest_s, unit="s"),
            ),
            rule="Each question goes to the metadata server, on Lustre also to the targets of the file.",
            source="Lustre Operations Manual, on ls -l; the limits are ours",
            action=action,
            seconds=stats.slowest_s,
        )


@job_rule
def many_small_files(view: JobView) -> Iterator[Draft]:
    """Thousands of files under 1 MiB."""
    for program in view.profile.programs:
        sized = [(file, moved) for file in program.files if (moved := metrics.file_bytes(file)) is not None]
        small = [(file, moved) for file, moved in sized if moved < thresholds.SMALL_FILE_BYTES]
        if len(small) < thresholds.SMALL_FILES_MIN or 2 * len(small) < len(sized):
            continue
        spent_s = metrics.slowest_s_in(program, [file for file, _ in small])
        if spent_s is not None and _is_of_one(program, [file for file, _ in small]):
            continue
        mean = sum(moved for _, moved in small) / len(small)
        yield Draft(
            code="many-small-files",
            parts=("metadata", "read", "write"),
            level="suggestion",
            title=f"{program_name(program)} uses {count(len(small))} files of {size(mean)} on average",
            evidence=(
                Evidence(counter="files under 1 MiB", value=len(small), unit="files"),
                Evidence(counter="mean bytes of these", value=mean, unit="bytes"),
            ),
            rule="The number of files makes metadata the bottleneck.",
            source="Cray's course on parallel I/O (2012); the number is ours",
            action="Write one file for each step, or one archive; or keep them in a burst buffer and "
            "stage out what is needed.",
            allocation_bytes=allocation_bytes(view, program),
            seconds=spent_s,
        )


def _is_of_one(program: Program, files: list[File]) -> bool:
    """Whether one file alone has half of the time in all of them: then it is not their number that costs."""
    tops = [top[1] for file in files if (top := metrics.top_layer(file))]
    spent = [metrics.layer_s(layer) or 0.0 for layer in tops]
    return 2 * max(spent, default=0.0) > sum(spent) > 0


def _read_by_many(program: Program, ranks_share: float) -> list[tuple[File, Layer]]:
    """Small files that many ranks open and read, without MPI-IO."""
    ranks = program.ranks or 1
    return [
        (file, layer)
        for file in program.files
        if (layer := file.layers.get("POSIX") or file.layers.get("STDIO")) is not None
        and "MPI-IO" not in file.layers
        and ranks > 1
        and (file.ranks or 0) >= ranks_share * ranks
        and (layer.opens or 0) >= ranks_share * ranks
        and (layer.read.calls or 0) > 0
        and not layer.write.bytes
        and (layer.read.bytes or 0) < thresholds.BYTES_PER_OPEN_MAX * (layer.opens or 1)
    ]


def _is_installed(path: str) -> bool:
    """Whether a file is a part of an installation, by its name."""
    name = PurePosixPath(path)
    is_there = {"lib", "lib64", "site-packages", "dist-packages"} & set(name.parts[:-1])
    return bool(is_there) or ".so" in name.suffixes or name.suffix in thresholds.IMPORT_SUFFIXES


def _imports(program: Program) -> list[tuple[File, Layer]]:
    """Files that many ranks read as they start; empty if they are few."""
    latest_s = thresholds.IMPORT_BEGIN_SHARE_MAX * (program.wall_s or 0.0)
    found = [
        (file, layer)
        for file, layer in _read_by_many(program, thresholds.IMPORT_RANKS_SHARE_MIN)
        if (layer.opened_s is None or layer.opened_s <= latest_s) and _is_installed(file.path)
    ]
    return found if len(found) >= thresholds.IMPORT_FILES_MIN else []


@job_rule
def import_storm(view: JobView) -> Iterator[Draft]:
    """Modules and shared libraries that every rank reads from the file system of all nodes."""
    for program in view.profile.programs:
        found = _imports(program)
        if not found:
            continue
        opens = sum(layer.opens or 0 for _, layer in found)
        folder = PurePosixPath(found[0][0].path).parent
        yield Draft(
            code="import-storm",
            parts=("metadata", "read"),
            level="problem",
            title=f"As they start, {count(program.ranks or 0)} ranks each read {count(len(found))} small "
            f"files: {count(opens)} opens",
            file=found[0][0].path,
            evidence=(
                evidence(view.profile.source, "opens", opens, "calls"),
                Evidence(counter="files", value=len(found), unit="files"),
                Evidence(counter="first in", value=str(folder)),
            ),
            rule="Modules and shared libraries come from the file system that all nodes share, once for each "
            "rank.",
            source="NERSC's advice on Python at scale; the limits are ours",
            action="Keep the installation near the nodes: in a container image, or packed into one file that "
            "is unpacked in the burst buffer before the program starts.",
            seconds=metrics.slowest_s_in(program, [file for file, _ in found]),
        )


@job_rule
def opened_by_all(view: JobView) -> Iterator[Draft]:
    """The same small files opened and read by every rank."""
    for program in view.profile.programs:
        found = [
            (file, layer)
            for file, layer in _read_by_many(program, 1.0)
            if (layer.opens or 0) >= thresholds.SHARED_OPENS_MIN
        ]
        if not found or _imports(program):
            continue
        opens = sum(layer.opens or 0 for _, layer in found)
        yield Draft(
            code="opened-by-all",
            parts=("metadata", "read"),
            level="suggestion",
            title=f"All {count(program.ranks or 0)} ranks open and read {count(len(found))} small file(s): "
            f"{count(opens)} opens",
            file=found[0][0].path,
            evidence=(evidence(view.profile.source, "opens", opens, "calls"),),
            rule="An open for each rank and file loads the metadata server; one rank could read and "
            "broadcast.",
            source="OLCF's talk on Summit's storage (2018); the limits are ours",
            action="Read small files on one rank and broadcast them (MPI_Bcast).",
            seconds=metrics.slowest_s_in(program, [file for file, _ in found]),
        )
