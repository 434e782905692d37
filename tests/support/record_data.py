"""Records as docs/explanation/profiles.md describes them, written file by file; and profiles of the logs in `logs/`."""

import functools
import json
import os
import pathlib

from forebay.profiles import sources

LOGS = pathlib.Path(__file__).parents[1] / "profiles" / "logs"


@functools.cache
def log(name):
    """Read once: Darshan's reader takes seconds to load. Nobody may change it."""
    return sources.open_path(LOGS / f"{name}.darshan")


def own_process():
    """The `process` of this very process, as job.json tells it."""
    return process(os.getpid())


def process(pid):
    """That of any process."""
    stat = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return {
        "pid": pid,
        "start_ticks": int(stat[19]),
        "boot_id": pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
        "host": os.uname().nodename,
    }


def job_json(identity="1700000000001", **members):
    return {
        "forebay_job": 1,
        "kind": "run",
        "id": identity,
        "scheduler_job": None,
        "name": "wrf.sh",
        "script": "/home/ada/wrf.sh",
        "command": ["forebay", "run", "wrf.sh"],
        "started_unix_s": 1700000000.0,
        "ended_unix_s": 1700000100.0,
        "state": "ended",
        "process": None,
        "environment": {},
        "emulated": None,
        "outcome": {"job_status": 0, "job_s": 100.0, "exit_code": 0},
        "error": None,
        "hint": None,
    } | members


def record(state, job=None, *steps):
    """A record in the state directory; `job` None: without job.json."""
    identity = job["id"] if job else "1700000000009"
    directory = state / "profiles" / identity
    directory.mkdir(parents=True)
    if job:
        (directory / "job.json").write_text(json.dumps(job))
    for number, step in enumerate(steps):
        (directory / f"step-170000000000{number}-{100 + number}.json").write_text(json.dumps(step))
    return directory


def step(*files, **members):
    return {
        "forebay_mpi": 2,
        "program": "/opt/wrf/wrf.exe",
        "arguments": [],
        "mpi": "Open MPI v4.1.4",
        "ranks": 16,
        "hosts": 1,
        "started_unix_s": 1700000001.0,
        "finished": True,
        "wall_s": 90.0,
        "files_dropped": 0,
        "files": list(files),
    } | members


def posix_file(
    path, *, read_bytes=0, written_bytes=0, calls=10, read_s=0.0, write_s=0.0, opens=1, open_s=0.0, **members
):
    """One rank's file, opened without MPI-IO."""
    way = {"system_calls": calls, "system_ranks": 1, "steps_back": 0}
    seconds = {"open": open_s, "close": 0.0, "metadata": 0.0, "sync": 0.0}
    seconds |= {"read": {"data": read_s}, "write": {"data": write_s}}
    return {
        "path": path,
        "layer": "posix",
        "ranks": 1,
        "opens": opens,
        "read": way | {"system_bytes": read_bytes} if read_bytes else {"system_calls": 0, "system_bytes": 0},
        "write": way
        | {"system_bytes": written_bytes, "writers": [{"rank": 0, "system_calls": calls, "bytes": written_bytes}]}
        if written_bytes
        else {"system_calls": 0, "system_bytes": 0},
        "seconds": {"sum": seconds, "slowest": seconds},
    } | members
