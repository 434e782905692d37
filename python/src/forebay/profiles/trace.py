"""Reader of the times of calls in traces (docs/reference/trace.md has the format).

It divides the time of each call as the time bar of a report does. System calls that the MPI makes within a
call of the program move data or lock. The remaining time of that call is exchange between ranks.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from forebay.profiles import regular_file
from forebay.profiles.errors import ProfileError

MAGIC, VERSION = b"FBTRACE\n", 1
BLOCK_HEAD_BYTES = 8
#: Of all ranks together so much is read: about 120,000 calls, which take a second or two.
BYTES_MAX = 1 << 20
#: Of more ranks some are read. Fewer than the second number only if there are no more: then not all of each.
RANKS_MAX, RANKS_MIN = 32, 8
NAME = "rank-{:06}.trace"

HEADER, TRAILER = 0x00, 0x0F
OPEN, CLOSE, SET_VIEW, SET_INFO, SEEK, SEEK_SHARED, SYNC, DELETE, COMPLETE = (
    0x10, 0x11, 0x12, 0x16, 0x18, 0x19, 0x1A, 0x1B, 0x1C,
)  # fmt: skip
SYSTEM, WITHIN, STREAM, STREAM_END, DATA, DATA_END = 0x20, 0x30, 0x40, 0x50, 0x80, 0xA4
KINDS, WAYS_APART, SPLIT_END = 6, 18, 5
SYSTEM_OPEN, SYSTEM_SYNC, SYSTEM_READ, SYSTEM_WRITE = 0, 4, 6, 7
#: Numbers of a call's own, where they are not one.
OWN = {CLOSE: 0, SET_VIEW: 5, SEEK: 2, SEEK_SHARED: 2}
OTHER_FILE, OTHER_ACCESS, SHORT = 0x08, 0x70, 0x80

Activity = Literal["write", "read", "rmw", "waiting", "metadata", "sync"]
ACTIVITIES: tuple[Activity, ...] = ("write", "read", "rmw", "waiting", "metadata", "sync")


class Span(NamedTuple):
    """A time in which a rank did one thing; seconds since the first of the traces began."""

    begin_s: float
    end_s: float
    activity: Activity


class RankCalls(msgspec.Struct, kw_only=True):
    """The calls of one rank, as far as they were read."""

    rank: int
    calls: int  # of the program
    spans: list[Span]  # in the order of their begin
    cut_s: float | None = None  # what comes later was not read
    damaged: bool = False  # it has no end, or cannot be read up to it


class Trace(msgspec.Struct, kw_only=True):
    """The calls of a program."""

    ranks: int  # that the program had
    read: list[RankCalls]
    length_s: float


class _Damaged(Exception):
    """The trace cannot be read beyond this place."""


class _Call(NamedTuple):
    tag: int
    start: int  # ticks
    end: int


def read(directory: Path) -> Trace:
    """The traces in a directory. ProfileError if none can be read, OSError if it cannot be listed."""
    sizes = {}
    for path in sorted(directory.glob("rank-*.trace")):
        if path.stem[5:].isdecimal() and path.name == NAME.format(int(path.stem[5:])):
            sizes[path] = path.stat().st_size
    chosen = _chosen(sizes)
    found = [one for path in chosen if (one := _rank(path, BYTES_MAX // len(chosen)))]
    if not found:
        raise ProfileError(f"{directory}: no trace in it can be read", "is the record complete?")
    begun_ns = min(begun for begun, _ in found)
    for begun, one in found:
        later_s = (begun - begun_ns) / 1e9
        one.spans = sorted(
            Span(begin + later_s, end + later_s, activity) for begin, end, activity in one.spans
        )
        one.cut_s = None if one.cut_s is None else one.cut_s + later_s
    length_s = max((span.end_s for _, one in found for span in one.spans), default=0.0)
    return Trace(ranks=len(sizes), read=[one for _, one in found], length_s=length_s)


def _chosen(sizes: dict[Path, int]) -> list[Path]:
    """Ranks at equal distances, the first among them: as many as may be read to their end."""
    paths = list(sizes)
    number = min(len(paths), RANKS_MAX)
    while True:
        chosen = [paths[at * len(paths) // number] for at in range(number)]
        if number <= RANKS_MIN or max(map(sizes.__getitem__, chosen)) * number <= BYTES_MAX:
            return chosen
        number = max(RANKS_MIN, number // 2)


def _rank(path: Path, bytes_max: int) -> tuple[int, RankCalls] | None:
    """Begin of the trace and its calls; None if it has no header that can be read."""
    with regular_file.open_file(path) as file:
        whole = os.fstat(file.fileno()).st_size
        data = file.read(bytes_max)
    blocks = _blocks(data, is_cut=whole > len(data))
    try:
        begun_ns, tick_s = _header(next(blocks))
    except (_Damaged, StopIteration, IndexError):
        return None
    one = RankCalls(rank=int(path.stem[5:]), calls=0, spans=[])
    maker = _SpanMaker(one.spans, tick_s)
    try:
        for call in _calls(blocks, whole > len(data)):
            one.calls += not WITHIN <= call.tag < STREAM
            maker.add(call)
    except _Damaged:
        one.damaged = True
    if whole > len(data) and not one.damaged:
        one.cut_s = maker.last * tick_s
    return begun_ns, one


def _blocks(data: bytes, is_cut: bool) -> Iterator[bytes]:
    """The records of each block. Of a file that is not read to its end the last block may not be whole."""
    if data[: len(MAGIC)] != MAGIC:
        raise _Damaged
    at = len(MAGIC)
    while at < len(data):
        head = data[at : at + BLOCK_HEAD_BYTES]
        length, checksum = (int.from_bytes(head[n : n + 4], "little") for n in (0, 4))
        at += BLOCK_HEAD_BYTES
        block = data[at : at + length]
        if len(head) < BLOCK_HEAD_BYTES or len(block) < length:
            if is_cut:
                return
            raise _Damaged
        if not length or _checksum(block) != checksum:
            raise _Damaged
        yield block
        at += length


def _checksum(data: bytes) -> int:
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return (value ^ value >> 32) & 0xFFFFFFFF


def _number(data: bytes, at: int) -> tuple[int, int]:
    """The number at a place, and the place behind it."""
    byte = data[at]
    if byte < 0x80:
        return byte, at + 1
    value, shift = byte & 0x7F, 7
    while True:
        at += 1
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at + 1
        shift += 7


def _signed(data: bytes, at: int) -> tuple[int, int]:
    value, at = _number(data, at)
    return (value >> 1) ^ -(value & 1), at


def _behind(data: bytes, at: int, numbers: int) -> int:
    """The place behind so many numbers."""
    while numbers:
        numbers -= data[at] < 0x80
        at += 1
    return at


def _header(block: bytes) -> tuple[int, float]:
    """Begin of the trace in nanoseconds since 1970, and seconds of a tick."""
    fields, at = [], 1
    for _ in range(7):
        value, at = _number(block, at)
        fields.append(value)
    if block[0] != HEADER or fields[0] != VERSION:
        raise _Damaged
    return fields[5], fields[6] / 1e9


def _calls(blocks: Iterator[bytes], is_cut: bool) -> Iterator[_Call]:
    """Each call. _Damaged if the blocks end without a trailer, unless not all of the file was read."""
    last = 0
    for block in blocks:
        at = 0
        try:
            while at < len(block):
                tag = block[at]
                if tag >= OPEN:
                    flags = block[at + 1]
                    at = _behind(block, at + 2, (flags & 0x07).bit_count())
                    distance, at = _signed(block, at)
                    duration, at = _number(block, at)
                    start = last + distance
                    last = start + duration
                    at = _behind(block, at, _own_numbers(block, at, tag, flags))
                    yield _Call(tag, start, last)
                elif tag == TRAILER:
                    return
                else:
                    length, at = _number(block, at + 1)
                    at += length
        except IndexError:
            raise _Damaged from None
        if at != len(block):
            raise _Damaged
    if not is_cut:
        raise _Damaged


def _own_numbers(block: bytes, at: int, tag: int, flags: int) -> int:
    """How many numbers follow the times of a call."""
    if tag == OPEN:
        return 6
    if tag == COMPLETE:
        return 1 + _number(block, at)[0]
    if tag == DELETE:
        return 2
    of_file = int(bool(flags & OTHER_FILE))
    if SYSTEM <= tag < STREAM_END:
        what = tag & 0x0F
        if what in (SYSTEM_READ, SYSTEM_WRITE):
            return of_file + (flags & (OTHER_ACCESS | SHORT)).bit_count()
        return of_file + (3 if what == SYSTEM_OPEN else 1)
    if DATA <= tag < DATA_END:
        is_end = (tag - DATA) % KINDS == SPLIT_END
        return of_file + (0 if is_end else (flags & OTHER_ACCESS).bit_count())
    if tag > COMPLETE:
        raise _Damaged
    return of_file + OWN.get(tag, 1)


class _SpanMaker:
    """Makes spans of calls; the system calls within a call come before it."""

    def __init__(self, spans: list[Span], tick_s: float) -> None:
        self.spans, self.tick_s = spans, tick_s
        self.within: list[_Call] = []
        self.last = 0

    def add(self, call: _Call) -> None:
        """The next call of the trace."""
        self.last = max(self.last, call.end)
        if WITHIN <= call.tag < STREAM:
            self.within.append(call)
            return
        if SYSTEM <= call.tag < STREAM_END:
            self._put(call.start, call.end, _of_system(call.tag))
            return
        inner = [one for one in self.within if one.start >= call.start and one.end <= call.end]
        for one in self.within:
            if one.start < call.start or one.end > call.end:  # of an operation that goes on by itself
                self._put(one.start, one.end, _of_system(one.tag))
        self.within = []
        self._add_program(call, sorted(inner, key=lambda one: one.start))

    def _add_program(self, call: _Call, inner: list[_Call]) -> None:
        is_data = call.tag >= DATA
        if not is_data and call.tag != COMPLETE:
            self._put(call.start, call.end, "sync" if call.tag == SYNC else "metadata")
            return
        writes = is_data and call.tag - DATA >= WAYS_APART
        at = call.start
        for one in inner:
            activity = _of_system(one.tag)
            self._put(at, one.start, "waiting")
            self._put(max(at, one.start), one.end, "rmw" if writes and activity == "read" else activity)
            at = max(at, one.end)
        self._put(at, call.end, "waiting")

    def _put(self, start: int, end: int, activity: Activity) -> None:
        if end > start:
            self.spans.append(Span(start * self.tick_s, end * self.tick_s, activity))


def _of_system(tag: int) -> Activity:
    what = tag & 0x0F
    if what == SYSTEM_READ:
        return "read"
    if what == SYSTEM_WRITE:
        return "write"
    return "sync" if what == SYSTEM_SYNC else "metadata"
