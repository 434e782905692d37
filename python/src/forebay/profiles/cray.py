"""Reader of the statistics that MPI libraries print into the output of a job.

These are the boxes of MPICH_MPIIO_STATS=1, the tables of MPICH_MPIIO_TIMERS=1 and the lists of
MPICH_MPIIO_HINTS_DISPLAY=1, by Cray's MPI or by `libforebay_mpi.so`. Other output may stand between the
lines; lines may lack, or have, the box's bar and the rank in front. What is not there stays None.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TextIO

import msgspec

from forebay.profiles.errors import ProfileError
from forebay.profiles.merge import by_path, known_sum, positive
from forebay.profiles.model import Collective, Direction, File, Hints, Job, Layer, Profile, Program, Traffic

MIB = 1 << 20

# `0: `, `[0] `, `[1,0]<stderr>: ` of launchers that label lines; then the side of the box.
_LABEL = re.compile(r"^\s*(?:\[\d+(?:,\d+)?\](?:<\w+>)?:?|\d+:)\s?")
_SIDE = re.compile(r"^\s*\|\s?")
_PATTERNS = re.compile(r"^\s*MPIIO (read|write) access patterns for (.+)$")
_PHASES = re.compile(r"^\s*MPIIO (read|write) by phases, (all ranks|writers only|readers only), for (.+)$")
_HINTS = re.compile(r"^\s*PE \d+: MPIIO hints for (.+):$")
_HINT = re.compile(r"^\s+([A-Za-z]\w*)\s*=\s*(.*)$")
_INTEGERS = re.compile(r"-?\d+")
_PERCENT = re.compile(r"(?<!\d)(\d{1,3})%")
_FIRST_NUMBER = re.compile(r"(\d{1,18})(?!\d)(?:\.\d{0,18})?")

ACTORS: dict[Direction, str] = {"read": "reader", "write": "writer"}
#: Lines of a box of one direction; `{}` is `write` or `read`.
_ALWAYS = (
    "independent {}s", "collective {}s", "independent {actor}s", "aggregators", "stripe count", "stripe size",
    "system {}s", "stripe sized {}s", "total bytes for {}s", "ave system {} size", "number of {} gaps",
    "ave {} gap size",
)  # fmt: skip
_OF_WRITES = ("aggregators active", "read-modify-write count", "read-modify-write bytes")
#: Phases in which ranks exchange data or wait for each other.
_EXCHANGE = (
    "imbalance",
    "wait for coll",
    "collective",
    "exchange/write",
    "read/exchange",
    "data send",
    "data receive",
)
#: Of a line with the longest path (4096 bytes).
LINE_CHARACTERS_MAX = 8192
#: Of a number; a longer one is no figure of this world, but damage.
DIGITS_MAX = 18


class _Box(msgspec.Struct):
    """One box: the numbers of its lines by name; None where it says NA."""

    path: str
    direction: Direction
    lines: dict[str, int | None] = {}
    active: list[int] | None = None


class _Phases(msgspec.Struct):
    """One table of phases over all ranks."""

    path: str
    direction: Direction
    percent: dict[str, int] = {}
    ranks: dict[str, int] = {}
    net_bytes_per_s: float | None = None


class _Statistics(msgspec.Struct):
    boxes: list[_Box] = []
    phases: list[_Phases] = []
    hints: dict[str, dict[str, str]] = {}


def read(path: Path) -> Profile:
    """The profile in a text. ProfileError if it has no box, table or list of hints."""
    with path.open(encoding="utf-8", errors="replace") as text:
        found = _parsed(_lines(text))
    if not (found.boxes or found.phases or found.hints):
        raise ProfileError(
            f"{path}: no log that is known here, and no statistics of MPI-IO in its text",
            "give a Darshan log, a record of Forebay, or the output of a job run with MPICH_MPIIO_STATS=1",
        )
    notes = _shortcomings(found)
    files = by_path(_file(box) for box in found.boxes)
    ranks = _apply_phases(files, found, notes)
    _apply_hints(files, found.hints)
    notes.append("MPI-IO statistics tell nothing of files opened without MPI-IO, nor how long the job ran.")
    program = Program(files=files, uses_mpi=True, ranks=ranks)
    return Profile(source="cray", path=str(path), job=Job(), programs=[program], notes=notes)


def _lines(text: TextIO) -> Iterator[str]:
    """The lines of the text. A longer one than the statistics have is of something else: it is left out."""
    is_begin = True
    while line := text.readline(LINE_CHARACTERS_MAX):
        is_whole = line.endswith("\n")
        if is_begin and (is_whole or len(line) < LINE_CHARACTERS_MAX):
            yield line
        is_begin = is_whole


def _parsed(text: Iterable[str]) -> _Statistics:
    found = _Statistics()
    current: _Box | _Phases | dict[str, str] | None = None
    for raw in text:
        if current is None and "MPIIO" not in raw:
            continue  # most lines of a job's output
        line = _SIDE.sub("", _LABEL.sub("", raw.rstrip(), count=1), count=1)
        head = _begins(line, found)
        if head is not None:
            current = head[0]
        elif isinstance(current, _Box):
            _take_box_line(current, line)
        elif isinstance(current, _Phases):
            _take_phase_line(current, line)
        elif current is not None:
            hint = _HINT.match(line)
            if hint:
                current[hint[1]] = hint[2]
            else:
                current = None
    return found


def _begins(line: str, found: _Statistics) -> tuple[_Box | _Phases | dict[str, str] | None] | None:
    """The block that a line begins, in brackets; None: it begins none."""
    if "MPIIO" not in line:
        return None
    if match := _PATTERNS.match(line):
        found.boxes.append(_Box(path=match[2], direction=match[1]))
        return (found.boxes[-1],)
    if match := _PHASES.match(line):
        if match[2] != "all ranks":
            return (None,)  # the same phases for the writers alone
        found.phases.append(_Phases(path=match[3], direction=match[1]))
        return (found.phases[-1],)
    if match := _HINTS.match(line):
        return (found.hints.setdefault(match[1], {}),)
    return None


def _names(direction: Direction) -> list[str]:
    return [name.format(direction, actor=ACTORS[direction]) for name in _ALWAYS] + (
        list(_OF_WRITES) if direction == "write" else []
    )


def _name_and_value(line: str) -> tuple[str, str]:
    """Both empty if the line has no equals sign."""
    name, equals, value = line.partition("=")
    return (name.strip(), value.strip()) if equals else ("", "")


def _take_box_line(box: _Box, line: str) -> None:
    """Takes a line that is the box's; others are the application's. The first account of a name counts."""
    name, value = _name_and_value(line)
    if name not in _names(box.direction) or name in box.lines:
        return
    numbers = _INTEGERS.findall(value)
    if name == "aggregators active":
        is_told = len(numbers) >= 4 and max(map(len, numbers[:4])) <= DIGITS_MAX
        box.active = [int(number) for number in numbers[:4]] if is_told else None
    known = numbers and not value.startswith("NA") and len(numbers[0]) <= DIGITS_MAX
    box.lines[name] = int(numbers[0]) if known else None


def _take_phase_line(phases: _Phases, line: str) -> None:
    name, value = _name_and_value(line)
    name = name.replace(" (*)", "").strip()
    number = _FIRST_NUMBER.match(value)
    percent = _PERCENT.search(value)
    if percent:
        phases.percent.setdefault(name, int(percent[1]))
    elif name.startswith("number of ranks") and number:
        phases.ranks[name] = int(number[1])
    elif name.startswith(f"net {phases.direction} BW") and number:
        phases.net_bytes_per_s = float(number[0]) * MIB


def _shortcomings(found: _Statistics) -> list[str]:
    notes = []
    for box in found.boxes:
        missing = [name for name in _names(box.direction) if name not in box.lines]
        if missing:
            notes.append(f"{box.path}: the box of {box.direction}s has no line for: {', '.join(missing)}.")
    return list(dict.fromkeys(notes))


def _file(box: _Box) -> File:
    direction = box.direction
    line = box.lines.get
    gaps, gap_bytes = line(f"number of {direction} gaps"), line(f"ave {direction} gap size")
    independent, collective = line(f"independent {direction}s"), line(f"collective {direction}s")
    called = Traffic(
        calls=known_sum((independent, collective)),
        independent=independent,
        collective=collective,
        ranks=line(f"independent {ACTORS[direction]}s") if not collective else None,
    )
    system = Traffic(
        calls=line(f"system {direction}s"),
        bytes=line(f"total bytes for {direction}s"),
        gaps=gaps,
        gap_bytes=gaps * gap_bytes
        if gaps is not None and gap_bytes is not None
        else (0 if gaps == 0 else None),
        stripe_sized=line(f"stripe sized {direction}s"),
    )
    other: Direction = "write" if direction == "read" else "read"
    aggregators = line("aggregators")
    return File(
        path=box.path,
        layers={
            "MPI-IO": Layer(**{direction: called, other: Traffic()}),
            "POSIX": Layer(**{direction: system, other: Traffic()}),
        },
        stripe_count=positive(line("stripe count")),
        stripe_bytes=positive(line("stripe size")),
        collective=Collective(
            aggregators_write=aggregators if direction == "write" else None,
            aggregators_read=aggregators if direction == "read" else None,
            active=box.active,
            rmw_calls=line("read-modify-write count"),
            rmw_bytes=line("read-modify-write bytes"),
        ),
    )


def _apply_phases(files: list[File], found: _Statistics, notes: list[str]) -> int | None:
    """Tells each file its times; returns the number of ranks, if a table says it.

    A table has percentages, clock ticks of unknown length, and bandwidths. The time comes from the bytes of
    the box and the net bandwidth, which are those of the same closing of the file.
    """
    by_name = {file.path: file for file in files}
    boxes: dict[tuple[str, Direction], list[_Box]] = defaultdict(list)
    for box in found.boxes:
        boxes[box.path, box.direction].append(box)
    tables: dict[tuple[str, Direction], list[_Phases]] = defaultdict(list)
    for table in found.phases:
        tables[table.path, table.direction].append(table)
    for key, of_file in tables.items():
        if len(boxes[key]) != len(of_file):
            notes.append(
                f"{key[0]}: {len(of_file)} table(s) of phases for {len(boxes[key])} box(es): no times."
            )
            continue
        for box, table in zip(boxes[key], of_file, strict=True):
            _add_times(by_name[key[0]], box, table)
    return max((sum(table.ranks.values()) for table in found.phases if table.ranks), default=None)


def _add_times(file: File, box: _Box, table: _Phases) -> None:
    moved_bytes = box.lines.get(f"total bytes for {box.direction}s")
    ranks = sum(table.ranks.values())
    if not moved_bytes or not table.net_bytes_per_s or not ranks:
        return
    file.ranks = max(file.ranks or 0, ranks)
    elapsed_s = moved_bytes / table.net_bytes_per_s
    data = table.percent.get(f"file {box.direction}", 0)
    exchange = min(100 - data, sum(table.percent.get(name, 0) for name in _EXCHANGE))
    traffic: Traffic = getattr(file.layers["MPI-IO"], box.direction)
    traffic.seconds = (traffic.seconds or 0.0) + elapsed_s * ranks
    traffic.slowest_rank_s = (traffic.slowest_rank_s or 0.0) + elapsed_s
    traffic.data_s = (traffic.data_s or 0.0) + elapsed_s * ranks * data / 100
    traffic.rest_s = (traffic.rest_s or 0.0) + elapsed_s * ranks * exchange / 100


def _apply_hints(files: list[File], hints: dict[str, dict[str, str]]) -> None:
    """A file of which nothing but its hints was printed is a file too."""
    by_name = {file.path: file for file in files}
    for path, in_force in hints.items():
        if path not in by_name:
            by_name[path] = File(path=path, layers={"MPI-IO": Layer(read=Traffic(), write=Traffic())})
            files.append(by_name[path])
        by_name[path].hints = Hints(in_force=in_force or None)
