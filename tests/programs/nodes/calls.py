"""Calls on files, also those for lazy I/O: one call a line of standard input, one answer a line."""

import errno
import fcntl
import json
import mmap
import os
import sys

#: mpi/include/lazy_ioctl.h
BEGIN, SYNC, END = 0x5000FB01, 0xFB02, 0xFB03
PATH_BYTES = 4096


def begin(file, path=None):
    path = os.readlink(f"/proc/self/fd/{file}") if path is None else path
    return fcntl.ioctl(file, BEGIN, bytearray(path.encode().ljust(PATH_BYTES, b"\0")))


def locked_count(file, times):
    """Adds to the number in the file, under a lock each time."""
    for _ in range(times):
        fcntl.lockf(file, fcntl.LOCK_EX, 64)
        number = int(os.pread(file, 16, 0) or b"0")
        os.pwrite(file, b"%016d" % (number + 1), 0)
        fcntl.lockf(file, fcntl.LOCK_UN, 64)


def records(file, count, length, distance):
    """The first bytes of records, and whether each has so many of its own."""
    found = [os.pread(file, length, number * distance) for number in range(count)]
    return "".join(one[:1].decode() for one in found), all(one == one[:1] * length for one in found)


CALLS = {
    "open": lambda path, flags="O_RDWR": os.open(path, sum(getattr(os, name) for name in flags.split("|"))),
    "close": os.close,
    "begin": begin,
    "sync": lambda file: fcntl.ioctl(file, SYNC),
    "end": lambda file: fcntl.ioctl(file, END),
    "fsync": os.fsync,
    "write": lambda file, offset, text: os.pwrite(file, text.encode(), offset),
    "fill": lambda file, offset, text, count: os.pwrite(file, text.encode() * count, offset),
    "read": lambda file, offset, count: os.pread(file, count, offset).decode(),
    "records": records,
    "size": lambda file: os.fstat(file).st_size,
    "cut": os.ftruncate,
    "mapped": lambda file, count: mmap.mmap(file, count)[:].decode(),
    "count": locked_count,
}

for line in sys.stdin:
    name, *arguments = json.loads(line)
    try:
        answer = CALLS[name](*arguments)
    except OSError as error:
        answer = errno.errorcode[error.errno]
    print(json.dumps(answer), flush=True)
