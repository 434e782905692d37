"""One process of a measurement, which runs the phases that lines of standard input name. Needs the standard
library only.

`python -m forebay.plan.measure_worker DIRECTORY NAME`. At the end of its input it removes its files, and the
directory if that is empty, so nothing stays when the caller is killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import sys
import time

#: Size of a small request, and how many there are.
SMALL_BYTES, SMALL_COUNT = 4096, 200
#: Of each end of a read, so many bytes are compared.
CHECKED_BYTES = 64
#: Files that are created and removed.
FILES = 100


class Worker:
    """The files of one process."""

    def __init__(self, directory: str, name: str) -> None:
        self.path = os.path.join(directory, f"{name}.data")
        self.directory, self.name = directory, name
        self.buffer = b""

    def write(self, total_bytes: int, request_bytes: int) -> None:
        """Writes the file from its start and syncs it."""
        handle = os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            for offset in range(0, total_bytes, request_bytes):
                wanted = min(request_bytes, total_bytes - offset)
                written = os.pwrite(handle, self.buffer[:wanted], offset)
                if written != wanted:
                    raise OSError(f"{self.path}: {written} of {wanted} bytes were written")
            os.fsync(handle)
        finally:
            os.close(handle)

    def forget(self, total_bytes: int) -> None:
        """Drops the file from this node's cache."""
        handle = os.open(self.path, os.O_RDONLY)
        try:
            os.posix_fadvise(handle, 0, total_bytes, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(handle)

    def read(self, total_bytes: int, request_bytes: int) -> None:
        """Reads the file in order into the same memory, and checks the ends of each request."""
        handle = os.open(self.path, os.O_RDONLY)
        room = bytearray(self.buffer)
        try:
            for offset in range(0, total_bytes, request_bytes):
                wanted = min(request_bytes, total_bytes - offset)
                got = os.preadv(handle, [memoryview(room)[:wanted]], offset)
                ends = room[:CHECKED_BYTES] + room[wanted - CHECKED_BYTES : wanted]
                if (
                    got != wanted
                    or ends != self.buffer[:CHECKED_BYTES] + self.buffer[wanted - CHECKED_BYTES : wanted]
                ):
                    raise OSError(f"{self.path}: other bytes are read at {offset} than were written")
        finally:
            os.close(handle)

    def small(self, total_bytes: int) -> None:
        """Reads single pages at random offsets."""
        handle = os.open(self.path, os.O_RDONLY)
        try:
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_RANDOM)
            pages = total_bytes // SMALL_BYTES
            for _ in range(SMALL_COUNT):
                os.pread(handle, SMALL_BYTES, random.randrange(pages) * SMALL_BYTES)
        finally:
            os.close(handle)

    def names(self) -> None:
        """Creates and removes empty files."""
        paths = [os.path.join(self.directory, f"{self.name}.{number}") for number in range(FILES)]
        for path in paths:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        for path in paths:
            os.unlink(path)

    def remove(self) -> None:
        """Removes what this process made."""
        for number in range(FILES):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(self.directory, f"{self.name}.{number}"))
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
        with contextlib.suppress(OSError):  # other processes still have files there
            os.rmdir(self.directory)

    def run_phase(self, asked: dict) -> float:
        """Seconds of one phase."""
        total, request = asked.get("bytes", 0), asked.get("request", 1)
        if asked["phase"] == "write" and len(self.buffer) != request:
            self.buffer = os.urandom(request)  # touched, and not to be compressed
        if asked["phase"] in ("read", "small"):
            self.forget(total)
        began = time.monotonic()
        if asked["phase"] == "write":
            self.write(total, request)
        elif asked["phase"] == "read":
            self.read(total, request)
        elif asked["phase"] == "small":
            self.small(total)
        else:
            self.names()
        return time.monotonic() - began


def main() -> None:
    """Ends with its input."""
    worker = Worker(sys.argv[1], sys.argv[2])
    try:
        print(json.dumps({"ready": os.uname().nodename}), flush=True)
        for line in sys.stdin:
            try:
                answer = {"seconds": worker.run_phase(json.loads(line))}
            except OSError as error:
                answer = {"error": str(error)}
            print(json.dumps(answer), flush=True)
    finally:
        worker.remove()


if __name__ == "__main__":
    main()
