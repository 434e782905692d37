"""The directory of one run: made new, and removed with exactly what the run made in it.

Everything of a run is below one new directory with a random name, which only its user can enter. A directory
that another user could exchange for a link is refused. The removal follows no link, and knows the names that
the programs make: what has another name stays, and is named.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

from forebay.bench.errors import BenchError
from forebay.bench.phases import FOLDERS, TIMESTAMP_FILE

PREFIX = "forebay-io500-"
#: Holds the token of the run; without it nothing is removed.
MARKER = ".forebay-io500"
#: Below the directory of a run, by relative path.
_FILES = re.compile(
    rf"{re.escape(MARKER)}|{TIMESTAMP_FILE}|[\w-]+\.(stonewall|json)"
    r"|ior-easy/ior_file_easy\.\d{8}|ior-hard/file"
    r"|mdtest-(easy|hard)/test-dir\.\d+-\d+/(mdtest_tree(\.\d+)+/)+file\.mdtest\.\d+\.\d+"
)
_FOLDERS = re.compile(r"ior-(easy|hard)|mdtest-(easy|hard)(/test-dir\.\d+-\d+(/mdtest_tree(\.\d+)+)*)?")
#: NFS keeps a removed file under such a name while a process has it open.
_KEPT_BY_NFS = re.compile(r"\.nfs[0-9a-f]+")
#: Removal waits for the file system, not for the processor.
_THREADS = 8
#: A rank that is being ended may still make a file: then the removal begins again.
_ATTEMPTS_MAX = 50
_PAUSE_S = 0.2


class RunDirectory:
    """A new directory with the folders of the phases. `token` identifies the processes of the run."""

    def __init__(self, parent: Path) -> None:
        self.parent = _checked(parent)
        self.token = secrets.token_hex(16)
        moment = datetime.now().strftime("%Y.%m.%d-%H.%M.%S")
        self.path = self.parent / f"{PREFIX}{moment}-{self.token[:8]}"

    def make(self) -> None:
        """Makes it. BenchError if that fails; then nothing is left."""
        try:
            self.path.mkdir(mode=0o700)
            (self.path / MARKER).write_text(self.token)
            for name in FOLDERS:
                (self.path / name).mkdir(mode=0o700)
        except OSError as error:
            with contextlib.suppress(OSError):
                purge(self.path, self.token)
            raise BenchError(f"cannot write in {self.parent}: {error.strerror}", _hint(error)) from error

    def leftovers(self) -> list[Path]:
        """Directories of earlier runs, which something ended that could not be noticed."""
        return sorted(path for path in self.parent.glob(f"{PREFIX}*") if path != self.path)


def _hint(error: OSError) -> str:
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return "make room, or raise the quota" if full else "choose a directory in which you may write"


def _checked(parent: Path) -> Path:
    """The directory without links. Raises BenchError."""
    try:
        found = parent.resolve(strict=True)
        status = found.stat()
    except (OSError, RuntimeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise BenchError(f"{parent}: {why}", "give a directory that exists") from error
    if not stat.S_ISDIR(status.st_mode):
        raise BenchError(f"{parent} is not a directory", "give a directory that exists")
    if status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX:
        raise BenchError(
            f"{found}: every user may rename what is in it, and exchange the files of the benchmark",
            "make a directory of your own there",
        )
    return found


def purge(path: Path, token: str) -> list[str]:
    """Removes the directory of the run with this token. Returns what stays because the run did not make it.

    Does nothing if the directory is missing or another run's. Raises OSError if something cannot be removed.
    """
    for _ in range(_ATTEMPTS_MAX):
        try:
            top = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return []
        try:
            if not _is_of_run(top, token):
                return []
            foreign = _empty(top, "")
            if foreign:
                return [str(path / name) for name in foreign]
            os.unlink(MARKER, dir_fd=top)
            os.rmdir(path)
            return []
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            _mark(top, token)
            time.sleep(_PAUSE_S)
        finally:
            os.close(top)
    raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), str(path))


def _is_of_run(top: int, token: str) -> bool:
    """Whether the marker has the token. A directory that was being made has no marker, and is empty."""
    try:
        marker = os.open(MARKER, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=top)
    except FileNotFoundError:
        return _mark(top, token) if not os.listdir(top) else False
    with os.fdopen(marker) as file:
        return file.read(100) in (token, "")


def _mark(top: int, token: str) -> bool:
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(MARKER, flags, 0o600, dir_fd=top), "w") as file:
        file.write(token)
    return True


def _empty(folder: int, below: str) -> list[str]:
    """Empties a directory but for the marker of the run. Returns the relative paths of what stays."""
    foreign, files = [], []
    with os.scandir(folder) as entries:
        for entry in entries:
            name = below + entry.name
            if entry.is_dir(follow_symlinks=False) and _FOLDERS.fullmatch(name):
                foreign += _remove_folder(folder, entry.name, name)
            elif entry.is_file(follow_symlinks=False) and _FILES.fullmatch(name):
                files.append(entry.name)
            elif not _KEPT_BY_NFS.fullmatch(entry.name):
                foreign.append(name)
    if below == "":
        files.remove(MARKER)
    with ThreadPoolExecutor(_THREADS) as threads:
        for _ in threads.map(lambda name: _unlink(folder, name), files):
            pass
    return foreign


def _remove_folder(parent: int, name: str, relative: str) -> list[str]:
    folder = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        foreign = _empty(folder, f"{relative}/")
    finally:
        os.close(folder)
    if not foreign:
        os.rmdir(name, dir_fd=parent)
    return foreign


def _unlink(folder: int, name: str) -> None:
    with contextlib.suppress(FileNotFoundError):  # a rank may delete it at the same moment
        os.unlink(name, dir_fd=folder)
