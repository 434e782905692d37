"""Reads files of records, which another user of the machine may have made: a fifo would never answer."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from forebay.profiles.errors import ProfileError

#: Larger than any file of a record.
BYTES_MAX = 1 << 30


def content(path: Path) -> bytes:
    """All of a regular file. ProfileError if it is none or too large; OSError if it cannot be read."""
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise ProfileError(f"{path}: not a regular file", "somebody put it there: remove it")
        if found.st_size > BYTES_MAX:
            raise ProfileError(
                f"{path}: {found.st_size} bytes, too large for a record", "is it a record of Forebay?"
            )
        return file.read()
