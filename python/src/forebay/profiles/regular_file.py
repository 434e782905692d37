"""Reads files of records, which another user of the machine may have made: a fifo would never answer."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import IO

from forebay.profiles.errors import ProfileError

#: Larger than any file of a record.
BYTES_MAX = 1 << 30


def open_file(path: Path, mode: str = "rb", flags: int = os.O_RDONLY) -> IO[bytes]:
    """A regular file; a fifo is not waited for. ProfileError if it is none, OSError as of open(2)."""
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ProfileError(f"{path}: not a regular file", "somebody put it there: remove it")
    return os.fdopen(descriptor, mode)


def read_bytes(path: Path) -> bytes:
    """All of a regular file. ProfileError if it is none or too large; OSError if it cannot be read."""
    with open_file(path) as file:
        found = os.fstat(file.fileno())
        if found.st_size > BYTES_MAX:
            raise ProfileError(
                f"{path}: {found.st_size} bytes, too large for a record", "is it a record of Forebay?"
            )
        return file.read()
