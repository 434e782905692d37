"""The content of a Darshan log, made up: records of single files, without Darshan's library."""

from pathlib import Path

from darshan.backend import cffi_backend as darshan
from forebay.profiles import darshan_log
from forebay.profiles.darshan_ids import record_id
from forebay.profiles.darshan_messages import Log, Module, Record
from forebay.profiles.model import Profile

PREFIXES = {"POSIX": "POSIX", "MPI-IO": "MPIIO", "STDIO": "STDIO"}
SHARED = -1


def raw_log(*records, ranks=4, wall_s=100.0, **members) -> Log:
    """`records`: (module, path, rank, counters without their prefix); the other counters are 0."""
    modules = {name: Module(4, False) for name in dict.fromkeys(module for module, *_ in records)}
    for name, module in modules.items():
        module.counter_names, module.time_names = darshan.counter_names(name), darshan.fcounter_names(name)
    for name, path, rank, counters in records:
        module, known = modules[name], {f"{PREFIXES[name]}_{key}": value for key, value in counters.items()}
        values, times = ([known.pop(key, 0) for key in keys] for keys in (module.counter_names, module.time_names))
        assert not known, f"{name} has no {sorted(known)}"
        module.records.append(Record(record_id(path), rank, values, [float(time) for time in times]))
    whole = {
        "uid": 1000, "job": 77, "started_unix_s": 1.7e9, "metadata": "lib_ver=3.5.0\n", "command": "/home/u/app -x",
        "mounts": [("/lus", "lustre"), ("/", "ext4")], "version": "3.41",
    } | members  # fmt: skip
    names = {record_id(path): path for _, path, *_ in records}
    return Log(ranks=ranks, wall_s=wall_s, names=names, modules=modules, **whole)


def raw_profile(*records, **members) -> Profile:
    return darshan_log.profile(Path("/nowhere"), raw_log(*records, **members))
