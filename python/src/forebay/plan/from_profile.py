"""Patterns from a profile: what each file of a recorded job was used for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

import msgspec

from forebay.plan.errors import PlanError
from forebay.plan.pattern import Access, Calls, Direction, Pattern
from forebay.profiles.model import LAYERS, OTHER_FILES, STREAMS, File, Layer, Profile, Program, Traffic
from forebay.quantities import counted, printable

#: Patterns of more files do not change a plan; the rest is named in a note.
PATTERNS_MAX = 8
#: Files with less of all data are left out.
SHARE_MIN = 0.005
#: If fewer requests begin where the rank's last one ended, ranks interleave, or offsets are random.
CONSECUTIVE_MIN = 0.5
_DIGITS = re.compile(r"\d+")


class JobIo(msgspec.Struct, frozen=True, kw_only=True):
    """What a profile says of the job's I/O."""

    patterns: tuple[Pattern, ...]
    notes: tuple[str, ...]
    compute_s: float | None  # run time without I/O; None: not known
    ranks: int
    nodes: int | None  # None: nobody says it, and the patterns are of one node


def read(profile: Profile, nodes: int | None = None, ranks: int | None = None) -> JobIo:
    """The patterns of the program that moved most data, for a job of that size.

    Without `nodes` and `ranks`, those of the profile. Raises PlanError for a profile without I/O.
    """
    program = max(profile.programs, key=_moved, default=None)
    if program is None or not _moved(program):
        raise PlanError(
            f"{printable(profile.path)}: no program of this profile reads or writes a file",
            "record a run with `forebay run` or Darshan, or describe the pattern with --access and --size",
        )
    measured = program.ranks or 1
    of_nodes = nodes or program.hosts or profile.job.nodes
    notes = [f"profile {printable(profile.path)}: {note}" for note in profile.notes]
    if ranks and ranks != measured:
        notes.append(
            f"the profile has {counted(measured, 'rank')} and the job {ranks}: "
            "each rank is taken to do the same"
        )
    if len(profile.programs) > 1:
        notes.append(
            f"of {len(profile.programs)} programs, the plan is for {printable(program.name or 'one')}"
        )
    factor = (ranks or measured) / measured
    found = list(_patterns(program, of_nodes or 1, factor))
    if not any(file.layers.get("MPI-IO") for file in program.files):
        notes.append("the profile has no MPI-IO: aggregators and MPI-IO hints would have no effect")
    kept, left = _largest(found)
    if left:
        notes.append(f"{counted(left, 'smaller file')} {'is' if left == 1 else 'are'} left out")
    wall_s = program.wall_s or profile.job.wall_s
    io_s = program.io_slowest_rank_s
    return JobIo(
        patterns=tuple(kept),
        notes=tuple(notes),
        compute_s=max(0.0, wall_s - io_s) if wall_s is not None and io_s is not None else None,
        ranks=ranks or measured,
        nodes=of_nodes,
    )


def _moved(program: Program) -> int:
    return sum(sum(_bytes(file)) for file in program.files)


def _bytes(file: File) -> tuple[int, int]:
    """(read, written) at the file's highest layer that has bytes."""
    layers = (_layer(file, "read"), _layer(file, "write"))
    return (layers[0].read.bytes or 0 if layers[0] else 0, layers[1].write.bytes or 0 if layers[1] else 0)


def _largest(found: list[Pattern]) -> tuple[list[Pattern], int]:
    total = sum(one.total_bytes for one in found)
    ordered = sorted(found, key=lambda one: one.total_bytes, reverse=True)
    kept = [one for one in ordered[:PATTERNS_MAX] if one.total_bytes >= SHARE_MIN * total]
    return kept, len(found) - len(kept)


def _patterns(program: Program, nodes: int, factor: float) -> Iterator[Pattern]:
    """Of shared files one each; files of single ranks that are named alike together."""
    groups: dict[tuple[str, Direction], list[tuple[File, Layer, Traffic]]] = {}
    for file in program.files:
        if file.path in STREAMS or file.path == OTHER_FILES:
            continue
        for direction in ("write", "read"):
            layer = _layer(file, direction)
            if layer is None:
                continue
            traffic = layer.read if direction == "read" else layer.write
            alone = (program.ranks or 1) > 1 and 1 in (file.ranks, traffic.ranks)
            name = _DIGITS.sub("*", file.path) if alone else file.path
            groups.setdefault((name, direction), []).append((file, layer, traffic))
    for (name, direction), members in groups.items():
        yield _pattern(name, direction, members, program.ranks or 1, nodes, factor)


def _layer(file: File, direction: Direction) -> Layer | None:
    """The highest layer that moved bytes in this direction: MPI-IO before POSIX."""
    for name in LAYERS:
        layer = file.layers.get(name)
        if layer and (layer.read if direction == "read" else layer.write).bytes:
            return layer
    return None


def _pattern(
    name: str,
    direction: Direction,
    members: list[tuple[File, Layer, Traffic]],
    ranks: int,
    nodes: int,
    factor: float,
) -> Pattern:
    paths, writers = len({file.path for file, _, _ in members}), _rank_count(members, direction)
    total = factor * sum(traffic.bytes or 0 for _, _, traffic in members)
    calls = factor * sum(traffic.calls or 0 for _, _, traffic in members) or 1
    access = _access(members, ranks, paths, writers)
    transfer = min(total, max(1.0, total / calls))
    wanted = max(1, round(ranks * factor))
    if access == "file-per-process" and writers is not None:
        wanted = max(1, round(writers * factor))
    collective: tuple[Calls, ...] = ()
    if access == "collective":
        per_rank = max(1, round(calls / wanted))
        collective = (Calls(count=per_rank, total_bytes=total / per_rank),)
    return Pattern(
        name=printable(PurePosixPath(name).name or name),
        direction=direction,
        access=access,
        ranks=wanted if access != "serial" else 1,
        nodes=min(nodes, wanted) if access != "serial" else 1,
        total_bytes=total,
        transfer_bytes=transfer,
        calls=collective,
        segment_bytes=_segment(members, transfer) if access == "collective" else None,
        is_interleaved=access == "independent" and not _is_consecutive(members, direction),
        files=max(1, round(paths * factor)) if access == "file-per-process" else 1,
    )


def _rank_count(members: list[tuple[File, Layer, Traffic]], direction: Direction) -> int | None:
    """Number of ranks that moved these files' data; None: it is not known of each file."""
    ranks: set[int] = set()
    for file, _, _ in members:
        if file.rank is not None:
            ranks.add(file.rank)
        elif direction == "write" and file.writers:
            ranks |= {writer.rank for writer in file.writers}
        else:
            return None
    return len(ranks)


def _access(
    members: list[tuple[File, Layer, Traffic]], ranks: int, paths: int, writers: int | None
) -> Access:
    file, _, traffic = members[0]
    if traffic.collective:
        return "collective"
    if paths > 1 and writers != 1:
        return "file-per-process"
    return "serial" if ranks == 1 or (file.ranks or 1) == 1 or traffic.ranks == 1 else "independent"


def _segment(members: list[tuple[File, Layer, Traffic]], transfer: float) -> float:
    """The commonest access of the program, if the source has it: a rank's call may hold many pieces."""
    sizes = [pair for _, _, traffic in members for pair in traffic.common_sizes]
    size = max(sizes, key=lambda pair: pair[1])[0] if sizes else transfer
    return max(1.0, min(float(size), transfer))


def _is_consecutive(members: list[tuple[File, Layer, Traffic]], direction: Direction) -> bool:
    """Whether most system calls continue where the rank's last one ended; so if it is not known."""
    posix = [file.layers["POSIX"] for file, _, _ in members if "POSIX" in file.layers]
    traffics = [layer.read if direction == "read" else layer.write for layer in posix]
    known = [(one.consecutive, one.calls) for one in traffics if one.consecutive is not None and one.calls]
    if not known:
        return True
    return sum(pair[0] for pair in known) >= CONSECUTIVE_MIN * sum(pair[1] for pair in known)
