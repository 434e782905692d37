"""Reads a Darshan log with Darshan's library and writes it to standard output as `darshan_messages.Log`.

    python -m forebay.profiles.darshan_worker LOG

A process of its own, for on some damaged logs the library ends its process, or crashes. Its messages go to
standard error, which has to be a file: what it says about a module is read back from there. Memory and
processor time are limited by the size of the log: a damaged number must not take those of the machine.
"""

from __future__ import annotations

import importlib
import os
import resource
import struct
import sys
import types
from collections.abc import Iterator

import msgspec
import numpy

from forebay.profiles import darshan_messages as raw
from forebay.profiles import darshan_repack


def _darshan() -> types.ModuleType:
    """Darshan's library. Its package imports pandas, which takes half of the time of a short report and which
    it uses for tables only."""
    name = "darshan.backend.cffi_backend"
    sys.modules["pandas"] = types.ModuleType("pandas")
    try:
        return importlib.import_module(name)
    except AttributeError:  # a version that uses it at once
        for module in [module for module in sys.modules if module.split(".")[0] in ("darshan", "pandas")]:
            del sys.modules[module]
        return importlib.import_module(name)


darshan = _darshan()
ffi, library = darshan.ffi, darshan.libdutil

#: Modules whose records are a list of counters, each with the structure of its records.
COUNTING = {
    "POSIX": "struct darshan_posix_file *",
    "MPI-IO": "struct darshan_mpiio_file *",
    "STDIO": "struct darshan_stdio_file *",
    "DFS": "struct darshan_dfs_file *",
    "DAOS": "struct darshan_daos_object *",
    "H5F": "struct darshan_hdf5_file *",
    "H5D": "struct darshan_hdf5_dataset *",
    "PNETCDF_FILE": "struct darshan_pnetcdf_file *",
    "PNETCDF_VAR": "struct darshan_pnetcdf_var *",
}
#: Counters since version 4 of POSIX records. In logs of the other byte order with earlier records, release
#: 3.5 of the library does not swap the times that have the numbers of these counters.
RENAMES, RENAMES_SINCE = ("RENAME_SOURCES", "RENAME_TARGETS", "RENAMED_FROM"), 4
#: Bins of the heat that is made of a trace.
TRACE_BINS = 128
VERSION_BYTES, HEAD_BYTES = 8, 16
#: Address space and processor time of this process: so much for any log, and more for each byte of it. zlib
#: packs at most 1,032 bytes into one, and a counter of 8 bytes takes 40 in Python.
MEMORY_BYTES = 1 << 30
MEMORY_PER_BYTE = 4096
CPU_S, CPU_S_PER_MIB = 20, 60
SEGMENT = numpy.dtype([("offset", "<i8"), ("length", "<i8"), ("start_s", "<f8"), ("end_s", "<f8")])


class Unreadable(Exception):
    """The library could not read a part of the log."""


def _text(chars) -> str:
    return ffi.string(chars).decode(errors="backslashreplace")


def _output_since(position: int) -> str:
    said = os.pread(2, 4096, position).decode(errors="replace")
    return " ".join(said.split())


def _records(log, index: int) -> Iterator:
    """Each record of a module, as a pointer that is freed at the next step."""
    holder = ffi.new("void **")
    while (got := library.darshan_log_get_record(log, index, holder)) > 0:
        yield holder[0]
        library.darshan_free(holder[0])
        holder[0] = ffi.NULL
    if got < 0:
        raise Unreadable


def _counting(log, index: int, name: str, is_swapped: bool, module: raw.Module) -> None:
    module.counter_names = darshan.counter_names(name)
    module.time_names = darshan.fcounter_names(name)
    has_left_out = is_swapped and name == "POSIX" and module.version < RENAMES_SINCE
    left_out = [module.counter_names.index(f"POSIX_{one}") for one in RENAMES] if has_left_out else []
    for pointer in _records(log, index):
        record = ffi.cast(COUNTING[name], pointer)
        times = list(record.fcounters)
        for at in left_out:
            times[at] = struct.unpack("<d", struct.pack(">d", times[at]))[0]
        module.records.append(
            raw.Record(record.base_rec.id, record.base_rec.rank, list(record.counters), times)
        )


def _lustre(log, index: int, module: raw.Module) -> None:
    names = darshan.counter_names("LUSTRE_COMP")
    count, size = names.index("LUSTRE_COMP_STRIPE_COUNT"), names.index("LUSTRE_COMP_STRIPE_SIZE")
    for pointer in _records(log, index):
        record = ffi.cast("struct darshan_lustre_record *", pointer)
        components = [record.comps[number].counters for number in range(record.num_comps)]
        stripes = [(counters[count], counters[size]) for counters in components]
        targets = [record.ost_ids[number] for number in range(record.num_stripes)]
        module.stripes.append(raw.Stripes(record.base_rec.id, stripes, targets))


def _heatmap(log, index: int, names: dict[int, str], module: raw.Module) -> None:
    for pointer in _records(log, index):
        record = ffi.cast("struct darshan_heatmap_record *", pointer)
        read, write = (list(ffi.unpack(bins, record.nbins)) for bins in (record.read_bins, record.write_bins))
        layer = names.get(record.base_rec.id, "").removeprefix("heatmap:")
        module.binned.append(raw.Binned(layer, record.base_rec.rank, record.bin_width_seconds, read, write))


def _moved(segments: numpy.ndarray) -> raw.Moved:
    if not len(segments):
        return raw.Moved(0, 0, 0.0, None, None)
    seconds = float((segments["end_s"] - segments["start_s"]).sum())
    first_s, last_s = float(segments["start_s"].min()), float(segments["end_s"].max())
    return raw.Moved(len(segments), int(segments["length"].sum()), seconds, first_s, last_s)


def _bytes_until(segments: numpy.ndarray, edges_s: numpy.ndarray) -> numpy.ndarray:
    """Bytes moved until each edge; those of a call are spread evenly over its time."""
    start_s, length = segments["start_s"], segments["length"].astype("f8")
    lasts_s = numpy.maximum(segments["end_s"] - start_s, 1e-9)
    return numpy.array(
        [(numpy.clip((edge_s - start_s) / lasts_s, 0, 1) * length).sum() for edge_s in edges_s]
    )


def _bins(parts: list[numpy.ndarray], wall_s: float) -> list[int]:
    """Bytes in each of TRACE_BINS equal spans of the run; what comes after its end is in the last."""
    if not parts:
        return [0] * TRACE_BINS
    segments = numpy.concatenate(parts)
    until = _bytes_until(segments, numpy.linspace(0, wall_s, TRACE_BINS + 1))
    until[0], until[-1] = 0, segments["length"].sum()
    return numpy.diff(numpy.rint(until).astype("i8")).tolist()


def _trace(log, index: int, name: str, wall_s: float, module: raw.Module) -> None:
    of_ranks: dict[int, tuple[list[numpy.ndarray], list[numpy.ndarray]]] = {}
    for pointer in _records(log, index):
        record = ffi.cast("struct dxt_file_record *", pointer)
        begin = ffi.cast("char *", pointer) + ffi.sizeof("struct dxt_file_record")
        count = record.write_count + record.read_count
        segments = numpy.frombuffer(ffi.buffer(begin, count * SEGMENT.itemsize), SEGMENT)
        write, read = segments[: record.write_count], segments[record.write_count :]
        base = record.base_rec
        module.traced.append(
            raw.Traced(base.id, base.rank, _text(record.hostname), _moved(read), _moved(write))
        )
        kept = of_ranks.setdefault(base.rank, ([], []))
        for segments_of_rank, found in zip(kept, (read, write), strict=True):
            if len(found):
                segments_of_rank.append(found.copy())  # the library frees its own
    layer = name.removeprefix("DXT_")
    bin_s = wall_s / TRACE_BINS
    if wall_s > 0:
        module.binned = [
            raw.Binned(layer, rank, bin_s, _bins(read, wall_s), _bins(write, wall_s))
            for rank, (read, write) in of_ranks.items()
        ]


def _module(log, info, name: str, names: dict[int, str], wall_s: float, is_swapped: bool) -> raw.Module:
    module = raw.Module(info.ver, bool(info.partial_flag))
    position = os.lseek(2, 0, os.SEEK_END)
    try:
        if name in COUNTING:
            _counting(log, info.idx, name, is_swapped, module)
        elif name == "LUSTRE":
            _lustre(log, info.idx, module)
        elif name == "HEATMAP":
            _heatmap(log, info.idx, names, module)
        elif name in ("DXT_POSIX", "DXT_MPIIO"):
            _trace(log, info.idx, name, wall_s, module)
    except Unreadable:
        module.lost = _output_since(position) or "no reason given"
    return module


def _modules(log, names: dict[int, str], wall_s: float, is_swapped: bool) -> dict[str, raw.Module]:
    """By name; a module that came after the library has none, and goes by its number."""
    found, count = ffi.new("struct darshan_mod_info **"), ffi.new("int *")
    library.darshan_log_get_modules(log, found, count)
    modules = {}
    for info in (found[0][number] for number in range(count[0])):
        name = f"number {info.idx}" if info.name == ffi.NULL else _text(info.name)
        modules[name] = _module(log, info, name, names, wall_s, is_swapped)
    return modules


def _names(log) -> dict[int, str]:
    found, count = ffi.new("struct darshan_name_record **"), ffi.new("int *")
    position = os.lseek(2, 0, os.SEEK_END)
    library.darshan_log_get_name_records(log, found, count)  # which tells a failure in words only
    if _output_since(position):
        raise Unreadable
    return {found[0][number].id: _text(found[0][number].name) for number in range(count[0])}


def _mounts(log) -> list[tuple[str, str]]:
    found, count = ffi.new("struct darshan_mnt_info **"), ffi.new("int *")
    if library.darshan_log_get_mounts(log, found, count) < 0:
        raise Unreadable
    mounts = [found[0][number] for number in range(count[0])]
    return [(_text(mount.mnt_path), _text(mount.mnt_type)) for mount in mounts]


def _version(path: str) -> str:
    """Of the log's format: the file begins with it."""
    return _head(path)[:VERSION_BYTES].split(b"\0")[0].decode(errors="backslashreplace")


def _is_swapped(path: str) -> bool:
    """Whether a machine of the other byte order wrote the log."""
    return darshan_repack.byte_order(_head(path)) == (">" if sys.byteorder == "little" else "<")


def _head(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read(HEAD_BYTES)


def limit(path: str) -> None:
    """Ends this process when it takes more than any log of this size needs."""
    log_bytes = os.stat(path).st_size
    machine_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    most_bytes = min(MEMORY_BYTES + MEMORY_PER_BYTE * log_bytes, machine_bytes * 3 // 4)
    seconds = int(CPU_S + CPU_S_PER_MIB * log_bytes / 2**20)
    for kind, most in ((resource.RLIMIT_AS, most_bytes), (resource.RLIMIT_CPU, seconds)):
        _, hard = resource.getrlimit(kind)
        limit = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (limit, hard))


def log(path: str) -> raw.Log:
    """The whole log. Raises Unreadable where the library gives up on more than a module."""
    try:
        with darshan_repack.readable(path) as name:
            handle = library.darshan_log_open(os.fsencode(name))
    except (OSError, EOFError, ValueError) as error:
        raise Unreadable(f"it is truncated or damaged: {error}") from error
    if handle == ffi.NULL:
        raise Unreadable
    job, wall_s, command = ffi.new("struct darshan_job *"), ffi.new("double *"), ffi.new("char[]", 4096)
    if (
        library.darshan_log_get_job(handle, job) < 0
        or library.darshan_log_get_job_runtime(handle, job[0], wall_s) < 0
        or library.darshan_log_get_exe(handle, command) < 0
    ):
        raise Unreadable
    mounts, names = _mounts(handle), _names(handle)
    return raw.Log(
        uid=job.uid,
        job=job.jobid,
        ranks=job.nprocs,
        started_unix_s=job.start_time_sec + job.start_time_nsec / 1e9,
        wall_s=wall_s[0],
        metadata=_text(job.metadata),
        command=_text(command),
        mounts=mounts,
        names=names,
        modules=_modules(handle, names, wall_s[0], _is_swapped(path)),
        version=_version(path),
    )


def main() -> None:
    """Exits 0 with a Log on standard output, or 1."""
    answer = os.dup(1)
    os.dup2(2, 1)  # the library prints some of its complaints there
    limit(sys.argv[1])
    try:
        words = msgspec.msgpack.encode(log(sys.argv[1]))
    except Unreadable as error:
        sys.exit(str(error) or 1)
    except MemoryError:
        sys.exit("it needs more memory than a log of this size takes")
    with os.fdopen(answer, "wb") as stream:
        stream.write(words)


if __name__ == "__main__":
    main()
