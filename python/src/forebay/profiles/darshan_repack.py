"""Packs Darshan logs with zlib: the library of Darshan's package has no bzip2, and crashes on large modules
that are not packed.

A log is a header, then the job, the names of files and the modules, each packed for itself. The header has
the place and the length of each but the job, which is between the header and the names.
"""

from __future__ import annotations

import bz2
import os
import struct
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

MAGIC = struct.pack("<q", 6567223)
MAGIC_AT, PACKED_WITH_AT = 8, 16
ZLIB, BZIP2, NOT_PACKED = range(3)
#: (number of modules, where the places begin) since format 3.41, and before.
HEADER_SINCE, HEADER, HEADER_BEFORE = b"3.41", (64, 32), (16, 24)
PIECE_BYTES = 1 << 20
#: zlib packs no more bytes into one, and the reader's limits are for that.
BYTES_PER_BYTE_MAX = 1032


def byte_order(header: bytes) -> str | None:
    """`<` or `>`, as `struct` has it; None if the log has no magic number."""
    magic = header[MAGIC_AT : MAGIC_AT + len(MAGIC)]
    return "<" if magic == MAGIC else ">" if magic == MAGIC[::-1] else None


@contextmanager
def readable(path: str) -> Iterator[str]:
    """The log, or a temporary copy that is packed with zlib, as the path of a file that the library can open.

    OSError, EOFError or ValueError if the log is damaged.
    """
    with open(path, "rb") as log:
        head = log.read(PACKED_WITH_AT + 1)
        order, packed_with = byte_order(head), head[PACKED_WITH_AT] if len(head) > PACKED_WITH_AT else ZLIB
        if order is None or packed_with not in (BZIP2, NOT_PACKED):
            yield path
            return
        with tempfile.TemporaryFile() as copy:
            _repack(log, copy, order, packed_with)
            yield f"/proc/self/fd/{copy.fileno()}"


def _repack(log: IO[bytes], copy: IO[bytes], order: str, packed_with: int) -> None:
    log.seek(0)
    modules, places_at = HEADER if log.read(MAGIC_AT) >= HEADER_SINCE else HEADER_BEFORE
    places = struct.Struct(f"{order}{2 * (1 + modules)}Q")
    log.seek(0)
    header = bytearray(log.read(places_at + places.size + 4 * modules))
    if len(header) < places_at + places.size + 4 * modules:
        raise EOFError("its header is cut")
    found = places.unpack_from(header, places_at)
    parts = [(len(header), max(0, found[0] - len(header))), *zip(found[::2], found[1::2], strict=True)]
    log_bytes = os.fstat(log.fileno()).st_size
    if any(at + length > log_bytes for at, length in parts):
        raise EOFError("it ends before its last part")
    room = BYTES_PER_BYTE_MAX * log_bytes
    moved: list[int] = []
    copy.seek(len(header))
    for at, length in parts:
        begin = copy.tell()
        room -= _pack(_pieces(log, at, length, packed_with), copy, room) if length else 0
        moved += [begin, copy.tell() - begin] if length else [0, 0]
    places.pack_into(header, places_at, *moved[2:])
    header[PACKED_WITH_AT] = ZLIB
    copy.seek(0)
    copy.write(header)
    copy.flush()


def _pack(pieces: Iterator[bytes], copy: IO[bytes], room: int) -> int:
    """Number of bytes that were packed; ValueError if they are more than `room`."""
    packer, packed_bytes = zlib.compressobj(1), 0
    for piece in pieces:
        packed_bytes += len(piece)
        if packed_bytes > room:
            raise ValueError("it unpacks to more than a log of this size holds")
        copy.write(packer.compress(piece))
    copy.write(packer.flush())
    return packed_bytes


def _pieces(log: IO[bytes], at: int, length: int, packed_with: int) -> Iterator[bytes]:
    """A part of the log, unpacked."""
    log.seek(at)
    unpacker = None
    while length:
        piece = log.read(min(length, PIECE_BYTES))
        if not piece:
            raise EOFError("somebody has cut it")
        length -= len(piece)
        if packed_with == NOT_PACKED:
            yield piece
            continue
        while piece or (unpacker and not unpacker.needs_input):
            unpacker = unpacker or bz2.BZ2Decompressor()
            yield unpacker.decompress(piece, PIECE_BYTES)
            piece = b""
            if unpacker.eof:
                piece, unpacker = unpacker.unused_data, None
    if unpacker is not None:
        raise EOFError("a part of it is cut")
