"""How much a run may write, and what that leaves to each rank.

Time ends the phases that write. On a fast file system that is more than a user expects, so each has a limit.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from forebay import quantities
from forebay.bench.errors import BenchError
from forebay.bench.phases import EASY_TRANSFER_BYTES, HARD_TRANSFER_BYTES, ITEM_BYTES

#: File systems whose files take memory.
_IN_MEMORY = ("tmpfs", "ramfs")
#: Parts of the data, in sixteenths, by folder. All are there at the same time, until the end.
_SIXTEENTHS = {"ior-easy": 8, "ior-hard": 4, "mdtest-easy": 1, "mdtest-hard": 3}
#: The largest numbers of operations of each rank in IO500's own configuration (9920000m / 2m for ior-easy).
_OPERATIONS_MAX = {
    "ior-easy": 4_960_000,
    "ior-hard": 10_000_000,
    "mdtest-easy": 1_000_000,
    "mdtest-hard": 1_000_000,
}
#: What a name takes, with its inode.
_NAME_BYTES = 4096


class Space(msgspec.Struct, frozen=True):
    """What a file system has left for this user. A quota is not seen."""

    kind: str | None  # its type, such as ext4
    free_bytes: int
    free_names: int | None  # None: without a limit
    block_bytes: int
    in_memory: bool


class Limits(msgspec.Struct, frozen=True):
    """The most that a run writes."""

    data_bytes: int
    operations: dict[str, int]  # of each rank, by folder


def space_of(directory: Path) -> Space:
    """The file system of a directory. Raises OSError."""
    found = os.statvfs(directory)
    kind = _kind_of(directory)
    free_bytes = found.f_bavail * found.f_frsize
    in_memory = kind in _IN_MEMORY
    if in_memory:
        free_bytes = min(free_bytes, _free_memory_bytes())
    names = found.f_favail if found.f_files else None
    return Space(kind, free_bytes, names, found.f_frsize, in_memory)


def _kind_of(directory: Path) -> str | None:
    device = os.stat(directory).st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    for line in Path("/proc/self/mountinfo").read_text(errors="replace").splitlines():
        before, _, after = line.partition(" - ")
        if before.split()[2] == number:
            return after.split()[0]
    return None  # btrfs and the like: the device of a file is none of a mount


def _free_memory_bytes() -> int:
    """Memory that is left to this process: of the machine, and of its cgroup and those above it."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    known = dict(line.split(":", 1) for line in lines)
    left = [int(known["MemAvailable"].split()[0]) * 1024]
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            left += _left_in(Path("/sys/fs/cgroup"), path, "memory.max", "memory.current")
        elif "memory" in controllers.split(","):
            names = "memory.limit_in_bytes", "memory.usage_in_bytes"
            left += _left_in(Path("/sys/fs/cgroup/memory"), path, *names)
    return max(0, min(left))


def _left_in(root: Path, path: str, limit: str, used: str) -> list[int]:
    found = []
    group = root / path.lstrip("/")
    for folder in (group, *group.parents):
        if not folder.is_relative_to(root):
            break
        try:
            text = (folder / limit).read_text().strip()
            if text != "max":
                found.append(int(text) - int((folder / used).read_text()))
        except OSError:
            continue  # the root has no limit, and a container may not see those above it
    return found


def default_data_bytes(space: Space) -> int:
    """Half of what is free."""
    return space.free_bytes // 2


def limits(data_bytes: int, ranks: int, space: Space) -> Limits:
    """What each rank may write so that all ranks together stay within `data_bytes`.

    BenchError if that is more than is free, or too little for one operation of each rank in each phase.
    """
    if data_bytes > space.free_bytes:
        free, wanted = quantities.exact_size(space.free_bytes), quantities.exact_size(data_bytes)
        where = "memory" if space.in_memory else "space"
        raise BenchError(
            f"--data {wanted} is more than the free {where}, {free}", "give less, or another directory"
        )
    item_blocks = -(-ITEM_BYTES // space.block_bytes) * space.block_bytes
    each_bytes = {
        "ior-easy": EASY_TRANSFER_BYTES,
        "ior-hard": HARD_TRANSFER_BYTES,
        "mdtest-easy": _NAME_BYTES,
        "mdtest-hard": _NAME_BYTES + item_blocks,
    }
    operations = {}
    for folder, each in each_bytes.items():
        most = data_bytes * _SIXTEENTHS[folder] // 16 // ranks // each
        if folder.startswith("mdtest") and space.free_names is not None:
            most = min(most, space.free_names // 4 // ranks)
        operations[folder] = min(most, _OPERATIONS_MAX[folder])
    if min(operations.values()) < 1:
        least = max(-(-each * 16 // _SIXTEENTHS[folder]) for folder, each in each_bytes.items()) * ranks
        raise BenchError(
            f"{quantities.exact_size(data_bytes)} and {_names(space)} are too little for {ranks} ranks",
            f"give at least --data {-(-least // (1 << 20))}MiB, fewer ranks, or another directory",
        )
    written = sum(each * operations[folder] * ranks for folder, each in each_bytes.items())
    return Limits(written, operations)


def _names(space: Space) -> str:
    return (
        "any number of files"
        if space.free_names is None
        else f"{quantities.count(space.free_names)} free inodes"
    )
