"""What `bench/engines.py` runs on each node: reads one request a line, does it, and answers with a line.

It needs the standard library only. Everything that is read is compared with what was written. With the configuration,
keyring, name and root of a mount of CephFS as arguments it does the same by libcephfs, and paths are those below the root.
"""

import json
import os
import random
import sys

BLOCK = 1 << 20
FILES, FAILURES = os, (OSError,)
if len(sys.argv) > 1:
    import engine_library

    FILES, FAILURES = engine_library.Library(*sys.argv[1:]), (OSError, engine_library.FAILURE)


class Pattern:
    """Blocks of a node's data; each begins with its number."""

    def __init__(self, node: int, size: int):
        self.block = bytearray(random.Random(node).randbytes(size))

    def at(self, number: int) -> bytearray:
        self.block[:8] = number.to_bytes(8, "little")
        return self.block


def write(path, node, blocks):
    pattern = Pattern(node, BLOCK)
    file = FILES.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for number in range(blocks):
        whole(FILES.pwrite(file, pattern.at(number), number * BLOCK), BLOCK)
    FILES.fsync(file)
    FILES.close(file)


def read(path, node, blocks):
    pattern = Pattern(node, BLOCK)
    file = FILES.open(path, os.O_RDONLY)
    for number in range(blocks):
        same(FILES.pread(file, BLOCK, number * BLOCK), pattern.at(number))
    FILES.close(file)


def write_records(path, node, nodes, records, record_bytes):
    """Record i of a node is at place i * nodes + node of the one file."""
    pattern = Pattern(node, record_bytes)
    file = FILES.open(path, os.O_WRONLY | os.O_CREAT)
    for number in range(records):
        place = (number * nodes + node) * record_bytes
        whole(FILES.pwrite(file, pattern.at(number), place), record_bytes)
    FILES.fsync(file)
    FILES.close(file)


def read_records(path, node, nodes, records, record_bytes):
    pattern = Pattern(node, record_bytes)
    file = FILES.open(path, os.O_RDONLY)
    for number in range(records):
        same(FILES.pread(file, record_bytes, (number * nodes + node) * record_bytes), pattern.at(number))
    FILES.close(file)


def make(*directories):
    for directory in directories:
        FILES.mkdir(directory.rstrip("/"))


def create(directory, names, first=0):
    for number in range(first, first + names):
        FILES.close(FILES.open(f"{directory}/{number}", os.O_WRONLY | os.O_CREAT | os.O_EXCL))


def stat(directory, names, first=0):
    for number in range(first, first + names):
        FILES.stat(f"{directory}/{number}")


def unlink(directory, names, first=0):
    for number in range(first, first + names):
        FILES.unlink(f"{directory}/{number}")


def remove(*paths):
    """A directory, which is empty, ends with a slash."""
    for path in paths:
        if path.endswith("/"):
            FILES.rmdir(path.rstrip("/"))
        else:
            FILES.unlink(path)


def whole(written, size):
    if written != size:
        raise OSError(f"a write of {size} bytes wrote {written}")


def same(found, expected):
    if found != expected:
        raise OSError("what was read is not what was written")


CALLS = {call.__name__: call for call in (write, read, write_records, read_records, make, create, stat, unlink, remove)}

for line in sys.stdin:
    name, *arguments = json.loads(line)
    try:
        CALLS[name](*arguments)
        answer = "done"
    except FAILURES as error:
        answer = f"{name}: {error}"
    print(answer, flush=True)
