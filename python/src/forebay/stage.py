"""Requests of a running program to its burst buffer: libdatawarp in Python (docs/reference/libdatawarp.md).

The burst-buffer path comes first, in both directions. Each function takes a file, a directory, or a list
of files. What is refused is an OSError with the number that docs/reference/libdatawarp.md explains.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import shutil
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Self

from forebay.errors import ForebayError

Name = str | bytes | os.PathLike[str]
#: Values of `enum dw_stage_type`.
WHEN = {"now": 0, "job-end": 1}
_REVOKE, _ACTIVATE = 2, 3
_LIBRARY = "libdatawarp.so"
#: The door of a job's burst buffer, as forebay-requests names it.
_SOCKET_VARIABLE = "FOREBAY_REQUESTS"
#: A path is no longer than this, in bytes.
_PATH_BYTES = 1 << 16


class Counts(NamedTuple):
    """Numbers of files in each state."""

    complete: int
    pending: int
    deferred: int
    failed: int


class Layout(NamedTuple):
    """How a file is striped: bytes of one stripe, over how many servers, beginning with which."""

    stripe_bytes: int
    width: int
    first: int


class Failure(NamedTuple):
    """A file of the burst buffer that could not be staged, and the number of the error, as in `errno`."""

    path: str
    errno: int


@cache
def _library() -> ctypes.CDLL:
    """Where the loader finds it, else where `forebay` is installed."""
    programs = [Path(found) for found in (shutil.which("forebay"), sys.executable) if found]
    beside = [(program.parent.parent / "lib" / _LIBRARY) for program in programs]
    # PREFIX/lib/forebay/python is where `make install` puts Forebay's own Python.
    beside.append(Path(sys.prefix).parents[1] / _LIBRARY)
    found = next((str(path) for path in beside if path.is_file()), _LIBRARY)
    try:
        return ctypes.CDLL(found, use_errno=True)
    except OSError as error:
        hint = "set LD_LIBRARY_PATH to the lib folder of where Forebay is installed"
        raise ImportError(f"{_LIBRARY} cannot be loaded ({error}); {hint}") from error


class NotInJobError(ForebayError, OSError):
    """The program does not run in a job with a burst buffer. `hint` says what to do."""

    def __init__(self, about: object) -> None:
        hint = "run it in a script with a #DW jobdw line with access_mode=striped: forebay run JOB.sh"
        OSError.__init__(self, errno.ENOENT, f"no burst buffer of a job; {hint}", str(about))
        self.hint = hint

    def __reduce__(self) -> tuple[type[Self], tuple[str]]:
        return type(self), (self.filename,)


def _failed(number: int, about: object) -> OSError:
    """The exception of an error number."""
    if not os.environ.get(_SOCKET_VARIABLE):
        return NotInJobError(about)
    return OSError(number, os.strerror(number), str(about))


def _call(name: str, *arguments: object, about: object) -> int:
    """Calls a function that returns 0 or more, or the negative number of an error."""
    result: int = getattr(_library(), name)(*arguments)
    if result < 0:
        raise _failed(-result, about)
    return result


def _kind(path: Name | Sequence[Name]) -> str:
    if not isinstance(path, (str, bytes, os.PathLike)):
        return "list"
    return "directory" if os.path.isdir(path) else "file"


def _bytes(path: Name) -> bytes:
    encoded = os.fsencode(path)
    if b"\0" in encoded:
        raise ValueError(f"embedded null byte in path {path!r}")
    return encoded


def _given(path: Name | Sequence[Name]) -> object:
    if isinstance(path, (str, bytes, os.PathLike)):
        return _bytes(path)
    names = [_bytes(name) for name in path]
    return (ctypes.c_char_p * (len(names) + 1))(*names, None)


def stage_in(path: Name, pfs: Name | Sequence[Name]) -> None:
    """Queues a copy of `pfs` to `path`: a file, what is in a directory, or a list into a directory."""
    _call(f"dw_stage_{_kind(pfs)}_in", _bytes(path), _given(pfs), about=path)


def stage_out(path: Name | Sequence[Name], pfs: Name, when: str = "now") -> None:
    """Queues a copy of `path` to `pfs`: `when` is "now" or "job-end". Of a list, `pfs` is a directory."""
    if when not in WHEN:
        raise ValueError(f"when is {when!r}; it can be 'now' or 'job-end'")
    _call(f"dw_stage_{_kind(path)}_out", _given(path), _bytes(pfs), WHEN[when], about=path)


def revoke(path: Name | Sequence[Name]) -> None:
    """Drops what was to be staged out at the job's end."""
    _call(f"dw_stage_{_kind(path)}_out", _given(path), None, _REVOKE, about=path)


def activate(path: Name | Sequence[Name]) -> None:
    """Stages out now what was to be staged out at the job's end."""
    _call(f"dw_stage_{_kind(path)}_out", _given(path), None, _ACTIVATE, about=path)


def query(path: Name | Sequence[Name]) -> Counts:
    """How far it is."""
    counts = [ctypes.c_int() for _ in range(4)]
    _call(f"dw_query_{_kind(path)}_stage", _given(path), *map(ctypes.byref, counts), about=path)
    return Counts(*(count.value for count in counts))


def wait(path: Name | Sequence[Name]) -> None:
    """Returns when nothing of it is in progress, whether it arrived or failed: `query` tells."""
    _call(f"dw_wait_{_kind(path)}_stage", _given(path), about=path)


def terminate(path: Name | Sequence[Name]) -> None:
    """Ends it and forgets it; no part of a file is left."""
    _call(f"dw_terminate_{_kind(path)}_stage", _given(path), about=path)


def failures(instance: Name) -> list[Failure]:
    """The files below a directory of the burst buffer that could not be staged."""
    handle, number = ctypes.c_void_p(), ctypes.c_int()
    buffer = ctypes.create_string_buffer(_PATH_BYTES)
    found = []
    _call("dw_open_failed_stage", _bytes(instance), ctypes.byref(handle), about=instance)
    try:
        while _call(
            "dw_read_failed_stage", handle, buffer, _PATH_BYTES, ctypes.byref(number), about=instance
        ):
            found.append(Failure(os.fsdecode(buffer.value), number.value))
    finally:
        _call("dw_close_failed_stage", handle, about=instance)
    return found


def layout(fd: int) -> Layout:
    """How an open file or directory is striped."""
    found = [ctypes.c_int() for _ in range(3)]
    _call("dw_get_stripe_configuration", fd, *map(ctypes.byref, found), about=fd)
    return Layout(*(number.value for number in found))


def set_layout(fd: int, stripe_bytes: int, width: int) -> None:
    """Stripes an open empty file, or what will be made in an open directory. On one node: as it is anyhow."""
    _call("dw_set_stripe_configuration", fd, stripe_bytes, width, about=fd)


def mds_path(root: Name, key: int) -> Path:
    """The directory to build paths on that go to the metadata server of this key."""
    function = _library().dw_get_mds_path
    function.restype = ctypes.c_void_p
    ctypes.set_errno(0)
    found = function(_bytes(root), ctypes.c_uint64(key))
    if not found:
        number = ctypes.get_errno()
        raise _failed(number, root)
    return Path(os.fsdecode(_taken(found)))


def set_concurrency(instance: Name, most: int) -> None:
    """So many requests of the job are copied at the same time."""
    _call("dw_set_stage_concurrency", _bytes(instance), max(0, most), about=instance)


def account(instance: Name) -> dict[str, Any]:
    """What was stored and moved, as docs/reference/libdatawarp.md describes it."""
    function = _library().dw_get_accounting_data_json
    function.restype = ctypes.c_void_p
    number = ctypes.c_int()
    found = function(_bytes(instance), ctypes.byref(number))
    if not found:
        raise _failed(-number.value, instance)
    members: dict[str, Any] = json.loads(_taken(found))
    return members


def wait_sync(fd: int) -> None:
    """Waits for an open file of a cache; there are none, so this is refused."""
    _call("dw_wait_sync_complete", fd, about=fd)


def _taken(found: int) -> bytes:
    """A string of the library's, which is freed."""
    try:
        return ctypes.string_at(found)
    finally:
        free = ctypes.CDLL(None).free
        free.argtypes = [ctypes.c_void_p]
        free(found)
