"""Cgroups: a memory cgroup with a limit, and commands run in it; a group of version 2 for a daemon."""

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
        remove(group)


def remove(group: pathlib.Path) -> None:
    """Waits until its processes have left it."""
    deadline = time.monotonic() + 30
    while True:
        try:
            group.rmdir()
            return
        except OSError:  # the last process has not quite left it
            assert time.monotonic() < deadline
            time.sleep(0.01)


def made_of_version_2(name: str) -> pathlib.Path | None:
    """A new group in the hierarchy of version 2; None where we may make none that can be killed as a whole."""
    mounts = (line.split() for line in pathlib.Path("/proc/mounts").read_text().splitlines())
    top = next((pathlib.Path(words[1]) for words in mounts if words[2] == "cgroup2"), None)
    if top is None:
        return None
    group = top / name
    try:
        group.mkdir()
    except OSError:
        return None
    if (group / "cgroup.kill").exists():
        return group
    remove(group)
    return None


def of_process(pid: int) -> pathlib.PurePath:
    """The path of its group of version 2 in the hierarchy."""
    lines = pathlib.Path(f"/proc/{pid}/cgroup").read_text().splitlines()
    return pathlib.PurePath(next(line for line in lines if line.startswith("0::")).removeprefix("0::"))


def remove_tree(group: pathlib.Path) -> None:
    """The group, and those below it."""
    for below in sorted(group.glob("**/"), reverse=True):
        remove(below)


def within(group: pathlib.Path, command: list) -> list[str]:
    return ["/bin/sh", "-c", f'echo $$ > "{group}/cgroup.procs" && exec "$@"', "sh", *map(str, command)]
