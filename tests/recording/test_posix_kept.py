"""What a program does is what it does without the library: its system calls, its files, its end."""

import collections
import hashlib
import json
import os
import re
import subprocess

import pytest

from support.strace import few
from support.mpi import PROGRAMS, launching, only_file

RUN_SECONDS_MAX = 300
#: Calls that move data or positions, or might; what the library asks when a file is opened is none of them.
TRACED = (
    "/^(p?(read|write)(v|64|v2)?|.?lseek|_llseek|sendfile(64)?|copy_file_range|ftruncate|f(data)?sync|dup[23]?|close)$"
)
NUMBERED = re.compile(r"\b\d+(?=<)|(?<=pipe:\[)\d+")


def environment(mpi=None, record=None) -> dict[str, str]:
    plain = {"PATH": "/usr/bin:/bin", "HOME": "/", **launching()}
    return plain if mpi is None else plain | {"LD_PRELOAD": str(mpi.library), "FOREBAY_PROFILE": str(record)}


def system_calls(traces, directory) -> list[str]:
    """The calls on files of the directory, process by process, without descriptors' numbers."""
    lines = [line for file in sorted(traces.parent.glob(f"{traces.name}.*")) for line in file.read_text().splitlines()]
    return [NUMBERED.sub("", line).replace(str(directory), "") for line in lines if f"<{directory}/" in line]


def run(words, directory, variables, traces=None, launcher=()) -> subprocess.CompletedProcess:
    preload = [f"-E{name}={variables[name]}" for name in ("LD_PRELOAD",) if name in variables]
    variables = {name: value for name, value in variables.items() if name != "LD_PRELOAD"}
    strace = ["strace", "-ff", "-y", "-s", "0", "-e", f"trace={TRACED}", "-o", traces, *preload]
    words = [*launcher, *(strace if traces else ["env", *[word[2:] for word in preload]]), *words]
    return subprocess.run(
        [str(word) for word in words],
        cwd=directory,
        env=variables,
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS_MAX,
    )


def both_ways(mpi, words, tmp_path, traced: bool = True, launcher=(), **given: bytes):
    """(run, directory, system calls) without the library, and with it; `given` are files that are there before."""
    record = tmp_path / "record"
    record.mkdir()
    found = []
    for name, variables in (("without", environment()), ("with", environment(mpi, record))):
        directory, traces = tmp_path / name, tmp_path / f"{name}.strace"
        directory.mkdir()
        for file, content in given.items():
            (directory / file).write_bytes(content)
        done = run(words, directory, variables, traces if traced else None, launcher)
        found.append((done, directory, system_calls(traces, directory) if traced else []))
    return found


def contents(directory) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in directory.iterdir()}


def process_records(tmp_path) -> list[dict]:
    return [json.loads(path.read_text()) for path in sorted((tmp_path / "record").glob("process-*.json"))]


@pytest.fixture(scope="session")
def harsh(compiled):
    program = compiled / "harsh"
    subprocess.run(["gcc", "-O1", "-pthread", PROGRAMS / "harsh.c", "-o", program], check=True)
    return program


DIRECT = ["data_calls", "positions", "names", "copied", "failing", "large", "blocks", "lines", "appended", "turned"]


@pytest.mark.parametrize("case", DIRECT)
def test_system_calls_of_programs_are_unchanged(mpi, direct, tmp_path, case):
    (_, _, without), (done, _, observed) = both_ways(mpi, [direct, case, "f"], tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert len(without) >= 4
    assert observed == without


def test_open_and_close_take_no_further_system_call(mpi, direct, tmp_path):
    """A few calls set up the record and write it: nothing that grows with the 500 rounds."""
    made, record = {}, tmp_path / "record"
    record.mkdir()
    for name, variables in (("without", environment()), ("with", environment(mpi, record))):
        counts = tmp_path / f"{name}.counts"
        options = [f"-E{key}={value}" for key, value in variables.items() if key in ("LD_PRELOAD", "FOREBAY_PROFILE")]
        words = ["strace", "-c", "-U", "name,calls", "-o", counts, *options, direct, "reopened", tmp_path / name]
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
        rows = [line.split() for line in counts.read_text().splitlines()]
        made[name] = {row[0]: int(row[1]) for row in rows if len(row) == 2 and row[1].isdigit()}
    assert made["without"]["close"] >= 500
    more = {call: number - made["without"].get(call, 0) for call, number in made["with"].items()}
    assert max(more.values()) < 200, more
    assert process_records(tmp_path)[0]["files"][0]["opens"] == 500


@pytest.mark.parametrize("case", ["independent", "split", "sieve", "own", "nonblocking"])
@pytest.mark.parametrize("mpi", few("openmpi", "mpich"), indirect=True)
def test_system_calls_of_mpi_io_are_unchanged(mpi, tmp_path, case):
    """The calls of several threads may change places."""
    name = f"{case}-{os.getpid()}"  # Open MPI shares a semaphore among all files of one name on a machine
    launcher, given = [mpi.command("mpiexec"), "-n", "1"], {name: b"y" * 2000}
    (_, _, without), (done, _, observed) = both_ways(
        mpi, [mpi.observed(), case, name], tmp_path, launcher=launcher, **given
    )
    assert done.returncode == 0 and "not ok" not in done.stdout, done.stderr
    assert without
    assert collections.Counter(observed) == collections.Counter(without)
    [step] = [json.loads(path.read_text()) for path in (tmp_path / "record").glob("step-*.json")]
    assert only_file(step)["write"]["system_calls"] > 0, "it was observed"


ONE_PROCESS = ["closes_all", "reads_proc", "deletes", "renames", "executes_itself"]
SEVERAL = ["daemonises", "vforks"]
UNTRACED = ["forks", "races", "jumps_out", "jumps_out_early", "temporary"]


@pytest.mark.parametrize("case", [*ONE_PROCESS, *SEVERAL, *UNTRACED])
@pytest.mark.parametrize("mpi", few("openmpi", "mpich"), indirect=True)
def test_hard_cases_behave_as_without_the_library(mpi, harsh, tmp_path, case):
    (alone, before, without), (done, after, observed) = both_ways(mpi, [harsh, case], tmp_path, case not in UNTRACED)
    assert (done.returncode, done.stdout, done.stderr) == (alone.returncode, alone.stdout, alone.stderr) == (7, "", "")
    assert contents(after) == contents(before)
    assert case in UNTRACED or without
    assert sorted(observed) == sorted(without) if case in SEVERAL else observed == without


@pytest.mark.soak
def test_hundred_thousand_opens_leave_nothing(openmpi, harsh, tmp_path):
    """The program itself looks at its memory."""
    _, (done, directory, _) = both_ways(openmpi, [harsh, "opens_often"], tmp_path, traced=False)
    assert (done.returncode, done.stdout, done.stderr) == (7, "", ""), contents(directory)
    [file] = process_records(tmp_path)[0]["files"]
    assert (file["opens"], file["not_closed"], file["write"]["system_calls"]) == (100_000, 0, 6250)


@pytest.mark.soak
def test_hard_cases_are_counted(mpi, harsh, tmp_path):
    names = ("path", "opens", "not_closed")
    expected = {
        "closes_all": [
            ("before", 1, 0),
            ("zero", 1, 0),
            ("one", 1, 1),
            ("two", 1, 1),
            ("zero", 1, 1),
        ],  # the last as a stream
        "renames": [("old", 2, 2)],
        "deletes": [("gone", 2, 2)],
        "vforks": [("inherited", 1, 1)],
        "races": [("shared", 1, 1), ("one", 20_000, 0), ("two", 20_000, 0)],
    }
    for case, files in expected.items():
        (tmp_path / case).mkdir()
        both_ways(mpi, [harsh, case], tmp_path / case, traced=False)
        [process] = [process for process in process_records(tmp_path / case) if process["arguments"] == [case]]
        directory = f"{tmp_path / case}/with/"
        found = [tuple(file[name] for name in names) for file in process["files"]]
        assert sorted(found) == sorted((directory + name, *rest) for name, *rest in files), case


def test_temporary_files_are_reported_by_their_final_name(mpi, harsh, tmp_path):
    both_ways(mpi, [harsh, "temporary"], tmp_path, traced=False)
    [process] = process_records(tmp_path)
    first, second = process["files"]
    assert re.fullmatch(rf"{tmp_path}/with/forebay-......", first["path"])
    assert re.fullmatch(rf"{tmp_path}/with/forebay-......\.data", second["path"])
    assert (first["write"]["system_calls"], second["write"]["system_calls"]) == (1100, 1)
