"""Copies of directories: what there is to copy, and one entry after the other."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path, PurePath

#: ioctl_ficlone(2): the copy shares its blocks with the original, where the file system can do that.
_CLONE = 0x40049409

#: Paths from the directory on -> what lstat said. Directories come before what is in them; "" is the first.
Entries = dict[str, os.stat_result]


def is_directory(found: os.stat_result) -> bool:
    """Not a link to one."""
    return stat.S_ISDIR(found.st_mode)


def entries(directory: Path, is_left_out: Callable[[str], bool]) -> Iterator[tuple[str, os.stat_result]]:
    """Entries to copy: directories, files and symbolic links for which `is_left_out` is false.

    A link to what the job may write outside of the directory stands for a copy of that.
    """
    yield "", directory.stat()
    below = [""]
    while below:
        parent = below.pop()
        with os.scandir(directory / parent) as scanned:
            names = sorted(os.path.join(parent, entry.name) for entry in scanned)
        for name in names:
            if is_left_out(name):
                continue
            found = _found(directory, name)
            if found is None or not (is_directory(found) or _has_content(found)):
                continue
            if is_directory(found):
                below.append(name)
            yield name, found


def _found(directory: Path, name: str) -> os.stat_result | None:
    """What to copy. None: a link to what does not exist yet, outside of the directory: the job makes it."""
    path = directory / name
    found = os.lstat(path)
    if not stat.S_ISLNK(found.st_mode) or _target_within(directory, name) is not None:
        return found
    led = os.path.realpath(path)
    if not os.path.lexists(led):
        return None if os.access(os.path.dirname(led), os.W_OK) else found
    is_copied = os.access(led, os.W_OK) and (os.path.isdir(led) or os.path.isfile(led))
    return os.stat(path) if is_copied and not _is_within(str(directory), led) else found


def links_out(directory: Path, found: Entries) -> list[str]:
    """Entries that are links out of the directory, and are copied as what they lead to."""
    return [
        name
        for name, one in found.items()
        if name and not stat.S_ISLNK(one.st_mode) and os.path.islink(directory / name)
    ]


def _has_content(found: os.stat_result) -> bool:
    return stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode)


def bytes_of(found: Entries) -> int:
    """A file of several names counts once."""
    files = {(one.st_dev, one.st_ino): one.st_size for one in found.values() if stat.S_ISREG(one.st_mode)}
    return sum(files.values())


def groups_of(found: Entries) -> dict[str, list[str]]:
    """Name -> all names of its file, for files that have several."""
    by_file: dict[tuple[int, int], list[str]] = {}
    for name, one in found.items():
        if stat.S_ISREG(one.st_mode) and one.st_nlink > 1:
            by_file.setdefault((one.st_dev, one.st_ino), []).append(name)
    return {name: names for names in by_file.values() for name in names}


def copy_entry(name: str, found: os.stat_result, source: Path, target: Path, linked: str | None) -> None:
    """Copies one entry, which is not there yet. `linked`: another name of its file, copied before.

    A directory is made empty and open to its owner; `finish_directory` gives it its mode when all is in it.
    """
    path = target / name
    if is_directory(found):
        path.mkdir(mode=0o700, exist_ok=True)
    elif stat.S_ISLNK(found.st_mode):
        os.symlink(_link_target(source, name), path)
        times = (found.st_atime_ns, found.st_mtime_ns)
        os.utime(path, ns=times, follow_symlinks=False)
    elif linked is not None:
        os.link(target / linked, path)
    else:
        _copy_file(source / name, path)


def finish_directory(path: Path, found: os.stat_result) -> None:
    """Mode and times of the original."""
    os.chmod(path, stat.S_IMODE(found.st_mode))
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


def _copy_file(source: Path, target: Path) -> None:
    with open(source, "rb") as original, open(target, "xb") as copy:
        try:
            fcntl.ioctl(copy, _CLONE, original.fileno())
        except OSError:  # not within one file system that can
            shutil.copyfileobj(original, copy, 1 << 20)
    shutil.copystat(source, target)


def _link_target(source: Path, name: str) -> str:
    """A link into the directory leads into its copy; one out of it leads where it did."""
    led = os.path.join(os.path.realpath(source / os.path.dirname(name)), os.readlink(source / name))
    return _target_within(source, name) or os.path.normpath(led)


def _target_within(source: Path, name: str) -> str | None:
    """What the link is in the copy; None: it leads out of what is copied."""
    written, place = os.readlink(source / name), os.path.dirname(name)
    # The link out, copied as a directory, in which it is.
    tree = next((str(one) for one in PurePath(name).parents if os.path.islink(source / one)), "")
    led = os.path.normpath(os.path.join(os.path.realpath(source / place), written))
    for there in (led, os.path.realpath(source / name)):
        for below in (tree, ""):
            root = os.path.realpath(source / below)
            if not _is_within(there, root):
                continue
            if there == led and below == tree and not os.path.isabs(written):
                return written
            return os.path.relpath(os.path.join(below, os.path.relpath(there, root)), place or ".")
    return None


def _is_within(path: str, directory: str) -> bool:
    return path == directory or path.startswith(f"{directory.rstrip('/')}/")


def remove(path: Path) -> None:
    """Whatever it is, and whatever modes the directories in it have."""
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    os.chmod(path, 0o700)
    for directory, names, _ in os.walk(path):
        for name in names:
            if not os.path.islink(below := os.path.join(directory, name)):
                os.chmod(below, 0o700)
    shutil.rmtree(path)
