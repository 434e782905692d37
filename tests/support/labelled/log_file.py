"""Writes a `Run` as a Darshan log, through Darshan's own library."""

import os

from darshan.backend import cffi_backend as darshan
from darshan.discover_darshan import find_utils
from forebay.profiles import darshan_write
from forebay.profiles.darshan_ids import record_id

#: Module -> structure, writer, prefix of counters; in the order in which the library wants them.
MODULES = {
    "POSIX": ("struct darshan_posix_file *", "posix_logutils", "POSIX"),
    "MPI-IO": ("struct darshan_mpiio_file *", "mpiio_logutils", "MPIIO"),
}
LIBRARIES = {"H5D": ("struct darshan_hdf5_dataset *", "hdf5_dataset_logutils", "H5D")}
LATER = {"STDIO": ("struct darshan_stdio_file *", "stdio_logutils", "STDIO")}
ALIGNMENT_BYTES = 1 << 20
START_S = 1_700_000_000

ffi = darshan_write.ffi.__class__()
ffi.include(darshan_write.ffi)
ffi.cdef("extern struct darshan_mod_logutil_funcs lustre_logutils, hdf5_dataset_logutils;")
library, further = darshan_write.library, find_utils(ffi, None)


def write(run, target, libraries=()):
    """`libraries`: records of HDF5's datasets, as (module, path, rank, counters)."""
    log = library.darshan_log_create(os.fsencode(target), 0, 0)
    assert log != ffi.NULL
    found = list(run.joined())
    found += [(*one, {}) for one in libraries]
    names = {record_id(path): path for _, path, *_ in found}
    first, alive = _names(names)
    _checked(library.darshan_log_put_job(log, _job(run)))
    _checked(library.darshan_log_put_exe(log, ffi.new("char[]", f"{run.program} {run.arguments}".strip().encode())))
    mounts = ffi.new("struct darshan_mnt_info[]", len(run.mounts))
    for row, (path, kind) in zip(mounts, run.mounts):
        row.mnt_path, row.mnt_type = path.encode(), kind.encode()
    _checked(library.darshan_log_put_mounts(log, mounts, len(run.mounts)))
    _checked(library.darshan_log_put_namehash(log, first))
    for module in MODULES:
        _put(log, module, found, MODULES, library)
    for module in LIBRARIES:
        _put(log, module, found, LIBRARIES, further)
    for path, layout in run.layouts.items():
        if record_id(path) in names:
            _put_layout(log, path, *layout)
    _put(log, "STDIO", found, LATER, library)
    darshan.libdutil.darshan_log_close(log)
    del alive
    return target


def _checked(result):
    assert result >= 0


def _job(run):
    record = ffi.new("struct darshan_job *")
    record.uid, record.nprocs, record.jobid = 1000, run.ranks, 4711
    record.start_time_sec, record.start_time_nsec = START_S, 0
    record.end_time_sec, record.end_time_nsec = START_S + int(run.wall_s), int(run.wall_s % 1 * 1e9)
    record.metadata = b"lib_ver=3.5.0\n"
    return record


def _names(names):
    alive, first = [], ffi.NULL
    for file_id, name in reversed(names.items()):
        record = ffi.new("struct logged_name *", {"id": file_id, "name": name.encode() + b"\0"})
        element = ffi.new("struct darshan_name_record_ref *", {"record": record})
        element.link.next = first
        alive += [record, element]
        first = element
    return first, alive


def _put(log, module, found, modules, library):
    kind, writer, prefix = modules[module]
    names, time_names = darshan.counter_names(module), darshan.fcounter_names(module)
    for of_module, path, rank, counters, seconds in found:
        if of_module != module:
            continue
        known = {f"{prefix}_{name}": value for name, value in (counters | seconds).items()}
        if module == "POSIX":
            known |= {"POSIX_FILE_ALIGNMENT": ALIGNMENT_BYTES, "POSIX_MEM_ALIGNMENT": 8}
        record = ffi.new(kind)
        record.base_rec.id, record.base_rec.rank = record_id(path), rank
        record.counters = [int(known.pop(name, 0)) for name in names]
        record.fcounters = [float(known.pop(name, 0)) for name in time_names]
        assert not any(known.values()), f"{module} has no {sorted(known)}"
        _checked(getattr(library, writer).put(log, record))


def _put_layout(log, path, count, unit, targets):
    """The library writes component and targets in one piece, so they are in one buffer."""
    record, size = ffi.new("struct darshan_lustre_record *"), ffi.sizeof("struct darshan_lustre_component")
    whole = ffi.new("char[]", size + 8 * len(targets))
    component = ffi.cast("struct darshan_lustre_component *", whole)
    ids = ffi.cast("int64_t *", whole + size)
    ids[0 : len(targets)] = targets
    values = {"STRIPE_SIZE": unit, "STRIPE_COUNT": count}
    names = [name.removeprefix("LUSTRE_COMP_") for name in darshan.counter_names("LUSTRE_COMP")]
    component[0].counters = [values.get(name, 0) for name in names]
    record.base_rec.id, record.base_rec.rank = record_id(path), 0
    record.num_comps, record.num_stripes, record.comps, record.ost_ids = 1, len(targets), component, ids
    _checked(further.lustre_logutils.put(log, record))
