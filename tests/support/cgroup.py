"""A memory cgroup with a limit, and commands run in it."""

import contextlib
import os
import pathlib
import time
import uuid

import pytest


def parent() -> pathlib.Path:
    """The directory of this process's memory cgroup, of either version, if we may make groups in it."""
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        top = pathlib.Path("/sys/fs/cgroup/memory" if controllers == "memory" else "/sys/fs/cgroup")
        group = top / path[1:]
        delegated = controllers == "memory" or (not controllers and "memory" in _text(group / "cgroup.subtree_control"))
        if delegated and group.is_dir() and os.access(group, os.W_OK):
            return group
    pytest.skip("no memory cgroup in which we may make one")


def _text(path: pathlib.Path) -> str:
    return path.read_text() if path.exists() else ""


@contextlib.contextmanager
def limited(limit_bytes: int):
    """A group; `within(group, COMMAND)` is the command run in it."""
    group = parent() / f"forebay-{uuid.uuid4().hex}"
    group.mkdir()
    try:
        name = "memory.limit_in_bytes" if (group / "memory.limit_in_bytes").exists() else "memory.max"
        (group / name).write_text(str(limit_bytes))
        yield group
    finally:
        deadline = time.monotonic() + 30
        while True:
            try:
                group.rmdir()
                break
            except OSError:  # the last process has not quite left it
                assert time.monotonic() < deadline
                time.sleep(0.01)


def within(group: pathlib.Path, command: list) -> list[str]:
    return ["/bin/sh", "-c", f'echo $$ > "{group}/cgroup.procs" && exec "$@"', "sh", *map(str, command)]
