"""What `bench/engines.py` runs on each node: reads one request a line, does it, and answers with a line.

It needs the standard library only. Everything that is read is compared with what was written.
"""

import json
import os
import random
import sys

BLOCK = 1 << 20


class Pattern:
    """Blocks of a node's data; each begins with its number."""

    def __init__(self, node: int, size: int):
        self.block = bytearray(random.Random(node).randbytes(size))

    def at(self, number: int) -> bytearray:
        self.block[:8] = number.to_bytes(8, "little")
        return self.block


def write(path, node, blocks):
    pattern = Pattern(node, BLOCK)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for number in range(blocks):
        whole(os.pwrite(file, pattern.at(number), number * BLOCK), BLOCK)
    os.fsync(file)
    os.close(file)


def read(path, node, blocks):
    pattern = Pattern(node, BLOCK)
    file = os.open(path, os.O_RDONLY)
    for number in range(blocks):
        same(os.pread(file, BLOCK, number * BLOCK), pattern.at(number))
    os.close(file)


def write_records(path, node, nodes, records, record_bytes):
    """Record i of a node is at place i * nodes + node of the one file."""
    pattern = Pattern(node, record_bytes)
    file = os.open(path, os.O_WRONLY | os.O_CREAT)
    for number in range(records):
        place = (number * nodes + node) * record_bytes
        whole(os.pwrite(file, pattern.at(number), place), record_bytes)
    os.fsync(file)
    os.close(file)


def read_records(path, node, nodes, records, record_bytes):
    pattern = Pattern(node, record_bytes)
    file = os.open(path, os.O_RDONLY)
    for number in range(records):
        same(os.pread(file, record_bytes, (number * nodes + node) * record_bytes), pattern.at(number))
    os.close(file)


def create(directory, names, first=0):
    os.makedirs(directory, exist_ok=True)
    for number in range(first, first + names):
        os.close(os.open(f"{directory}/{number}", os.O_WRONLY | os.O_CREAT | os.O_EXCL))


def stat(directory, names, first=0):
    for number in range(first, first + names):
        os.stat(f"{directory}/{number}")


def unlink(directory, names, first=0):
    for number in range(first, first + names):
        os.unlink(f"{directory}/{number}")


def whole(written, size):
    if written != size:
        raise OSError(f"a write of {size} bytes wrote {written}")


def same(found, expected):
    if found != expected:
        raise OSError("what was read is not what was written")


CALLS = {call.__name__: call for call in (write, read, write_records, read_records, create, stat, unlink)}

for line in sys.stdin:
    name, *arguments = json.loads(line)
    try:
        CALLS[name](*arguments)
        answer = "done"
    except OSError as error:
        answer = f"{name}: {error}"
    print(answer, flush=True)
