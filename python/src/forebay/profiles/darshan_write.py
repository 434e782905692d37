"""Writer of Darshan logs, through the library that comes with the package `darshan`.

The structures of the records are the package's own definitions, and the library puts in the versions of the
modules; so what is written is what that release of Darshan reads. `darshan_hints` lists what the metadata
hold in addition to Darshan's `lib_ver`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from darshan.backend import cffi_backend as darshan
from darshan.discover_darshan import find_utils

from forebay.profiles import darshan_hints
from forebay.profiles.darshan_counters import MODULES, counters, rank, unknown
from forebay.profiles.darshan_ids import record_id
from forebay.profiles.errors import ProfileError
from forebay.profiles.model import File, Heat, Hints, Job, LayerName, Program

#: What the package does not declare: the writing half of the library, the record of a name as it is in the
#: log, and uthash's handle, of whose members only the next one of the list is looked at.
DECLARATIONS = """
    struct UT_hash_handle { void *table, *before, *next, *chained[2], *key; unsigned length, hash; };
    struct logged_name { uint64_t id; char name[]; };
    struct darshan_name_record_ref { struct logged_name *record; struct UT_hash_handle link; };
    struct darshan_mod_logutil_funcs { int (*get)(void *, void **); int (*put)(void *, void *); };
    extern struct darshan_mod_logutil_funcs posix_logutils, mpiio_logutils, stdio_logutils, heatmap_logutils;
    void *darshan_log_create(const char *, int, int);
    int darshan_log_put_job(void *, struct darshan_job *);
    int darshan_log_put_exe(void *, char *);
    int darshan_log_put_mounts(void *, struct darshan_mnt_info *, int);
    int darshan_log_put_namehash(void *, struct darshan_name_record_ref *);
"""
COMPRESSED_WITH_ZLIB, NOT_PARTIAL = 0, 0
#: In the order in which the library wants the modules. Layer -> structure of its records, and their writer.
RECORDS: dict[LayerName, tuple[str, str]] = {
    "POSIX": ("struct darshan_posix_file", "posix_logutils"),
    "MPI-IO": ("struct darshan_mpiio_file", "mpiio_logutils"),
    "STDIO": ("struct darshan_stdio_file", "stdio_logutils"),
}
#: Of the command line and the mounts together the log keeps so many bytes; for the mounts at least a third.
MOUNTS_SHARE = 3
#: Of a reason, as it is in the metadata.
UNREAD_CHARACTERS_MAX = 200

ffi = darshan.ffi.__class__()
ffi.include(darshan.ffi)
ffi.cdef(DECLARATIONS)
library = find_utils(ffi, None)

Mounts = list[tuple[str, str]]


def write(
    program: Program, job: Job, uid: int, mounts: Mounts, target: Path, unread: Sequence[str] = ()
) -> None:
    """Writes the log of one program to `target`, whole or not at all; what was there is replaced.

    `mounts` are (path, type); the root's is needed. `unread` as in a profile. Raises ProfileError if the log
    cannot be written.
    """
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        log = library.darshan_log_create(os.fsencode(part), COMPRESSED_WITH_ZLIB, NOT_PARTIAL)
        if log == ffi.NULL:
            raise _unwritable(target)
        try:
            _put(log, program, _job(program, job, uid, unread), mounts, target)
        finally:
            darshan.libdutil.darshan_log_close(log)
        _check(part, program, target)
        part.replace(target)
    except OSError as error:
        raise ProfileError(
            f"{target}: cannot be written: {error.strerror}", "--output names a file"
        ) from None
    finally:
        with suppress(FileNotFoundError):
            part.unlink()


def _unwritable(target: Path) -> ProfileError:
    return ProfileError(
        f"{target}: Darshan's library cannot write it; its reason stands above",
        "is there room, and may you write there? --output names another file",
    )


def _check(part: Path, program: Program, target: Path) -> None:
    """Closing tells no failure, so the log is opened again."""
    log = darshan.libdutil.darshan_log_open(os.fsencode(part)) if part.exists() else ffi.NULL
    if log == ffi.NULL:
        raise _unwritable(target)
    found = darshan.log_get_modules({"handle": log, "modules": None})
    darshan.libdutil.darshan_log_close(log)
    wanted = {MODULES[layer][0] for file in program.files for layer in file.layers}
    if not wanted <= set(found):
        raise _unwritable(target)


def _put(log, program: Program, job_record, mounts: Mounts, target: Path) -> None:
    names = {record_id(file.path): file.path for file in program.files}
    heats = [heat for heat in program.heat if heat.ranks_per_row == 1 and heat.write]
    names |= {record_id(_heat_name(heat)): _heat_name(heat) for heat in heats}
    first_name, alive = _name_list(names)
    done = (
        library.darshan_log_put_job(log, job_record) >= 0
        and _put_command(log, program, _of_files(program, mounts)) >= 0
        and library.darshan_log_put_namehash(log, first_name) >= 0
        and all(_put_layer(log, program, layer) for layer in RECORDS)
        and all(_put_heat(log, heat) for heat in heats)
    )
    alive.clear()  # the list had to live until here
    if not done:
        raise _unwritable(target)


def _job(program: Program, job: Job, uid: int, unread: Sequence[str]):
    start_s = program.started_unix_s or job.started_unix_s or 0.0
    end_s = start_s + (program.wall_s or 0.0)
    record = ffi.new("struct darshan_job *")
    record.uid = uid
    record.start_time_nsec, record.start_time_sec = _split(start_s)
    record.end_time_nsec, record.end_time_sec = _split(end_s)
    record.nprocs = program.ranks or 1
    record.jobid = job_number(job)
    head = {"lib_ver": darshan.get_lib_version(), "forebay": version("forebay")}
    if job.id is not None:
        head["forebay_job"] = darshan_hints.plain(job.id)
    if program.mpi is not None:
        head["mpi"] = darshan_hints.plain(program.mpi.splitlines()[0])
    times_s = {
        "job_s": job.wall_s,
        "io_s": program.io_s,
        "io_slowest_rank_s": program.io_slowest_rank_s,
    }
    head |= {key: f"{value:.9g}" for key, value in times_s.items() if value is not None}
    if unread:
        head["unread"] = darshan_hints.plain(unread[0])[:UNREAD_CHARACTERS_MAX]
    record.metadata = darshan_hints.metadata(head, _hints(program)).encode()
    return record


def _split(moment_s: float) -> tuple[int, int]:
    """Nanoseconds, seconds."""
    part, whole = math.modf(moment_s)
    return int(part * 1e9), int(whole)


def job_number(job: Job) -> int:
    """The number that the scheduler's id begins with; 0 without a scheduler."""
    digits = (job.scheduler_id or "").split(".")[0].split("_")[0].split("[")[0]
    return int(digits) if digits.isdecimal() and int(digits) < 1 << 63 else 0


def _hints(program: Program) -> dict[int, Hints]:
    """Of each file that has any, the file with most bytes first."""

    def moved_bytes(file: File) -> int:
        return max((layer.read.bytes or 0) + (layer.write.bytes or 0) for layer in file.layers.values())

    files = sorted((file for file in program.files if file.hints is not None), key=moved_bytes, reverse=True)
    return {record_id(file.path): file.hints for file in files}


def _of_files(program: Program, mounts: Mounts) -> Mounts:
    """The `mounts` that hold the files, and the root's."""
    deepest = sorted(mounts, key=lambda mount: -len(mount[0]))
    used = {"/"} | {path for file in program.files if (path := _mount_of(file.path, deepest)) is not None}
    return [mount for mount in deepest if mount[0] in used]


def _mount_of(path: str, deepest: Mounts) -> str | None:
    return next((mount for mount, _ in deepest if path.startswith(mount.rstrip("/") + "/")), None)


def _put_command(log, program: Program, mounts: Mounts) -> int:
    room = ffi.sizeof(ffi.typeof("struct darshan_mnt_info").fields[0][1].type)
    kept, mounts_room = [], room // MOUNTS_SHARE
    for path, kind in [*mounts[-1:], *mounts[:-1]]:  # the root's first: Darshan's readers need one
        size = len(os.fsencode(path)) + len(kind) + 2
        if size < mounts_room:
            kept.append((path, kind))
            mounts_room -= size
    words = " ".join([program.name or "unknown", *program.arguments])
    command = os.fsencode(" ".join(words.splitlines()))
    if library.darshan_log_put_exe(log, ffi.new("char[]", command[: room - room // MOUNTS_SHARE])) < 0:
        return -1
    table = ffi.new("struct darshan_mnt_info[]", len(kept))
    for row, (path, kind) in zip(table, kept, strict=True):
        row.mnt_path, row.mnt_type = os.fsencode(path), kind.encode()
    return library.darshan_log_put_mounts(log, table, len(kept))


def _name_list(names: dict[int, str]):
    """The names as the list that the library walks: the first element, and all that keeps it alive."""
    alive: list = []
    first = ffi.NULL
    for file_id, name in reversed(names.items()):
        text = name.encode(errors="surrogateescape").replace(b"\0", b"") + b"\0"
        record = ffi.new("struct logged_name *", {"id": file_id, "name": text})
        element = ffi.new("struct darshan_name_record_ref *", {"record": record})
        element.link.next = first
        alive += [record, element]
        first = element
    return first, alive


def _put_layer(log, program: Program, layer: LayerName) -> bool:
    kind, writer = RECORDS[layer]
    module, prefix = MODULES[layer]
    put = getattr(library, writer).put
    names, time_names = darshan.counter_names(module), darshan.fcounter_names(module)
    record = ffi.new(f"{kind} *")
    for file in program.files:
        if layer not in file.layers:
            continue
        known = {f"{prefix}_{name}": value for name, value in counters(file, layer).items()}
        known = {name: value for name, value in known.items() if value is not None}
        record.base_rec.id, record.base_rec.rank = record_id(file.path), rank(file, program.ranks or 1)
        record.counters = [known.pop(name, unknown(name)) for name in names]
        record.fcounters = [known.pop(name, unknown(name)) for name in time_names]
        assert not known, f"no counters of Darshan's module {module}: {sorted(known)}"
        if put(log, record) < 0:
            return False
    return True


def _heat_name(heat: Heat) -> str:
    return "heatmap:MPIIO" if heat.layer == "MPI-IO" else f"heatmap:{heat.layer}"


def _put_heat(log, heat: Heat) -> bool:
    """A record for each rank; its bins lie behind it in one piece, first those of writing."""
    bins = len(heat.write[0])
    size = ffi.sizeof("struct darshan_heatmap_record")
    whole = ffi.new("char[]", size + 2 * bins * ffi.sizeof("int64_t"))
    record = ffi.cast("struct darshan_heatmap_record *", whole)
    cells = ffi.cast("int64_t *", whole + size)
    record.base_rec.id, record.bin_width_seconds, record.nbins = record_id(_heat_name(heat)), heat.bin_s, bins
    record.write_bins, record.read_bins = cells, cells + bins
    for row, (read, write) in enumerate(zip(heat.read, heat.write, strict=True)):
        record.base_rec.rank = row
        cells[0 : 2 * bins] = write + read
        if library.heatmap_logutils.put(log, record) < 0:
            return False
    return True
