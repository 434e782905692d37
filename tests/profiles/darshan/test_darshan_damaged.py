"""Logs that somebody has damaged, or made to do harm: they take neither memory nor time, and are refused in words."""

import bz2
import gzip
import json
import random
import re
import signal
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from forebay.profiles import darshan_bounds, darshan_log, metrics, sources, time_limits
from forebay.profiles.darshan_ids import record_id
from forebay.profiles.errors import ProfileError
from forebay.report.objects import as_json
from support.mpi import PROJECT
from support.raw_logs import raw_log
from support.report_data import advised
from support.strace import EVERY_POINT

WRITTEN = "POSIX", "/lus/a", 0, {"WRITES": 8, "BYTES_WRITTEN": 1 << 30, "F_WRITE_TIME": 50}

# Places in a log of format 3.41: the names and the modules, each with place and length, and the job behind the header.
NAMES_AT, MODULES_AT, MODULES, JOB_AT = 32, 48, 64, 1328
#: The job: user, start (s, ns), end (s, ns), ranks, id.
JOB = struct.Struct("<7q")
LABELLED = PROJECT / "tests" / "profiles" / "labelled"
#: A process that reads a small log has less.
MEMORY_BYTES = 1_500_000_000


def with_job(content: bytes, **values: int) -> bytes:
    """The log with other values in its job, and all that comes behind where it now is."""
    stream = zlib.decompressobj()
    job = bytearray(stream.decompress(content[JOB_AT:]))
    names = ("uid", "start_s", "start_ns", "end_s", "end_ns", "ranks", "id")
    fields = dict(zip(names, JOB.unpack_from(job), strict=True)) | values
    JOB.pack_into(job, 0, *fields.values())
    packed = zlib.compress(bytes(job))
    header = bytearray(content[:JOB_AT])
    moved = len(packed) - (len(content) - JOB_AT - len(stream.unused_data))
    for at in [NAMES_AT, *range(MODULES_AT, MODULES_AT + 16 * MODULES, 16)]:
        place, length = struct.unpack_from("<QQ", header, at)
        struct.pack_into("<QQ", header, at, place + moved if length else place, length)
    return bytes(header) + packed + stream.unused_data


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"ranks": 4_427_712_942_739_450_220}, "it says 4427712942739450220 processes"),
        ({"ranks": 0}, "it says 0 processes"),
        ({"ranks": -1}, "it says -1 processes"),
        ({"ranks": 2}, "and the run had 2 ranks"),
        ({"end_s": 4}, "it says a run time of -"),
        ({"start_s": -1, "end_s": 5}, "it says a start -"),
        ({"start_s": 2**55, "end_s": 2**55 + 1}, "it says a start 3.6"),
        ({"start_s": 253_402_300_790, "end_s": 253_402_300_795}, "it says a start 2.53402e+11 s"),
    ],
)
def test_job_that_cannot_have_been_is_named_and_takes_no_memory(build, log, values, words):
    path = log("mpiio_shared_default")
    path.write_bytes(with_job(path.read_bytes(), **values))
    command = ["prlimit", f"--as={MEMORY_BYTES}", build / "bin" / "forebay", "report", path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith(f"error: {path}: the Darshan log is damaged: ") and words in done.stderr
    assert "hint: " in done.stderr and "Traceback" not in done.stderr


def test_genuine_damaged_log_is_refused(build):
    path = LABELLED / "damaged_header.darshan"
    command = ["prlimit", f"--as={MEMORY_BYTES}", build / "bin" / "forebay", "report", path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1 and "it says 4427712942739450220 processes" in done.stderr


def test_job_of_many_ranks_takes_no_memory(log):
    """As many as MPI can count: no list of all of them is made."""
    path = log("mpiio_shared_default")
    path.write_bytes(with_job(path.read_bytes(), ranks=time_limits.RANKS_MAX))
    (program,) = darshan_log.read(path).programs
    assert (program.ranks, program.hosts) == (time_limits.RANKS_MAX, None)


def changed(raw, module: str, part: str, **values):
    """The content of a log with other values in the first record of a module."""
    record = getattr(raw.modules[module], part)[0]
    for name, value in values.items():
        setattr(record, name, value)
    return raw


@pytest.mark.soak
@pytest.mark.parametrize(
    ("module", "part", "values", "words"),
    [
        ("POSIX", "records", {"rank": -2}, "module POSIX has a record of rank -2"),
        ("POSIX", "records", {"rank": 4}, "of rank 4, and the run had 4 ranks"),
        ("POSIX", "records", {"times": [float("nan")]}, "module POSIX has a time that is no number"),
        ("POSIX", "records", {"times": [1e308]}, "module POSIX has a time of 1e+308 s"),
        ("POSIX", "records", {"times": [1e-315]}, "module POSIX has a time of 1e-315 s"),
        ("DXT_POSIX", "traced", {"rank": -1}, "module DXT_POSIX has a record of rank -1"),
        ("HEATMAP", "binned", {"rank": 2**40}, "module HEATMAP has a record of rank 1099511627776"),
        ("HEATMAP", "binned", {"bin_s": 0.0}, "spans of 0 s"),
        ("HEATMAP", "binned", {"bin_s": float("inf")}, "a time that is no number"),
        ("HEATMAP", "binned", {"write": [1, -1]}, "negative numbers of bytes"),
    ],
)
def test_records_that_cannot_have_been_are_named(logs, module, part, values, words):
    path = logs / "mpiio_shared_default.darshan"
    raw = darshan_log.read_log(path)
    assert darshan_bounds.impossible(raw) is None
    with pytest.raises(ProfileError) as refused:
        darshan_log.profile(path, changed(raw, module, part, **values))
    assert words in str(refused.value) and refused.value.hint


@pytest.mark.parametrize(
    "lines",
    ["hints_left_out=abc", f"hints_left_out={'9' * 5000}", "hints.zz=a=b", "hints_without_effect.1=a=b", "job_s=x"],
)
def test_damaged_lines_of_hints_are_left_out(lines):
    raw = raw_log(WRITTEN, metadata=f"forebay=1\n{lines}\nhints_program.{record_id('/lus/a'):x}=cb_nodes=2\n")
    profile = darshan_log.profile(Path("/nowhere"), raw)
    (file,) = profile.programs[0].files
    assert file.hints.program == {"cb_nodes": "2"} and file.hints.without_effect == [] and profile.job.wall_s == 100.0


@pytest.mark.parametrize(
    "members", [{"command": " "}, {"metadata": "forebay=1\njob_s=1e-300\nio_slowest_rank_s=1e300\n"}]
)
def test_values_at_the_limits_of_what_can_be_have_a_report(members):
    one = advised(darshan_log.profile(Path("/nowhere"), raw_log(WRITTEN, **members)))
    page = json.loads(as_json([one], None, None, True))
    assert page["jobs"] and re.findall(r"\d{4,} %", one.verdict + one.paragraph) == []


def test_time_below_the_tick_of_a_clock_makes_no_throughput():
    raw = raw_log(("POSIX", "/lus/a", 0, {"WRITES": 8, "BYTES_WRITTEN": 1 << 30, "F_WRITE_TIME": 5e-10}))
    one = advised(darshan_log.profile(Path("/nowhere"), raw))
    assert metrics.performance(one.profile.programs[0], "POSIX") is None
    assert "Infinity" not in as_json([one], None, None, True)


LIMITED = """import sys
from forebay.profiles import darshan_worker
darshan_worker.MEMORY_BYTES, darshan_worker.MEMORY_PER_BYTE = 1 << 30, 0
darshan_worker.CPU_S, darshan_worker.CPU_S_PER_MIB = 1, 0
darshan_worker.limit(sys.argv[1])
"""


@pytest.mark.soak
@pytest.mark.parametrize(
    ("then", "status", "words"), [("bytearray(1 << 30)", 1, "MemoryError"), ("while True: pass", -signal.SIGXCPU, "")]
)
def test_reader_of_a_log_has_limits(logs, then, status, words):
    command = [sys.executable, "-c", LIMITED + then, logs / "posix_fpp.darshan"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == status and words in done.stderr


def test_reader_that_meets_its_limit_of_time_is_an_error(logs, monkeypatch):
    end = "import os, signal; os.kill(os.getpid(), signal.SIGXCPU)"
    monkeypatch.setattr(darshan_log, "READER", [sys.executable, "-c", end])
    with pytest.raises(ProfileError) as refused:
        darshan_log.read(logs / "posix_fpp.darshan")
    assert "more processor time" in str(refused.value) and refused.value.hint


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress], ids=["gzip", "bzip2"])
@pytest.mark.parametrize("version", ["1.24", "2.06"])
def test_log_of_an_older_darshan_is_named_with_its_version(tmp_path, pack, version):
    path = tmp_path / "old.darshan.gz"
    path.write_bytes(pack(version.encode().ljust(8, b"\0") + bytes(1000)))
    with pytest.raises(ProfileError) as refused:
        darshan_log.read(path)
    assert f"a log of Darshan {version}" in str(refused.value) and "Darshan 3" in refused.value.hint


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress], ids=["gzip", "bzip2"])
@pytest.mark.parametrize("version", ["2.06", "3.41"])
def test_packed_log_is_recognised_by_report(tmp_path, logs, pack, version):
    path = tmp_path / "log.gz"
    path.write_bytes(pack(version.encode().ljust(8, b"\0") + (logs / "posix_fpp.darshan").read_bytes()[8:]))
    with pytest.raises(ProfileError) as refused:
        sources.open_path(path)
    words = (str(refused.value), refused.value.hint)
    assert words == (
        (f"{path}: a packed log of Darshan", "unpack it with gunzip or bunzip2")
        if version == "3.41"
        else (f"{path}: a log of Darshan 2.06, and Forebay reads those of Darshan 3", darshan_log.OLD_LOG_HINT)
    )


@pytest.mark.parametrize(
    "content", [gzip.compress(b"text" * 100), b"\x1f\x8b\x08", b"BZh9" + bytes(50)], ids=["text", "cut", "damaged"]
)
def test_other_packed_file_is_no_log(tmp_path, content):
    path = tmp_path / "file.gz"
    path.write_bytes(content)
    with pytest.raises(ProfileError, match="cannot be read as a Darshan log"):
        darshan_log.read(path)


@pytest.mark.soak
def test_randomly_damaged_log_is_reported_or_refused(logs):
    """100 logs, the same each time; 10,000 others in `make soak`."""
    seed, count = (random.SystemRandom().randrange(10**6), 10_000) if EVERY_POINT else (1, 100)
    command = [sys.executable, "-m", "support.darshan_fuzz", str(seed), str(count), *sorted(logs.glob("*.darshan"))]
    done = subprocess.run(command, cwd=PROJECT / "tests", capture_output=True, text=True, timeout=590)
    tries = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(tries) == count, done.stderr
    assert [one for one in tries if not one["is_right"]] == [], f"seed {seed}"
    assert sum(one["was_read"] for one in tries) > count / 2
