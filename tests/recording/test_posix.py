"""Files that programs open without MPI-IO: what is counted, to the digit, and against strace."""

import collections
import json
import re
import subprocess

import pytest

from support.mpi import PROGRAMS, PROJECT, files_of, only_file
from support.strace import few

WITH_OFFSETS = ("system_calls", "system_bytes", "system_failures", "gaps", "gap_bytes", "steps_back", "consecutive")


@pytest.fixture
def direct(mpi):
    return mpi.compiled("direct", "-DWITH_MPI", PROGRAMS / "direct.c")


def counted(traffic: dict) -> dict:
    return {name: traffic[name] for name in WITH_OFFSETS if traffic[name] != 0}


def picked(file: dict, *names: str) -> list:
    return [file[name] for name in names]


def test_data_calls_are_counted(mpi, direct, tmp_path):
    report, run = mpi.report(1, direct, "data_calls", tmp_path / "f")
    file = only_file(report, "posix")
    assert run.stdout == ""
    assert file["path"] == f"{tmp_path}/f.0"
    assert picked(file, "ranks", "opens", "open_failures", "not_closed", "seeks") == [1, 1, 0, 0, 1]
    writes = {"system_calls": 5, "system_bytes": 3000, "gaps": 1, "gap_bytes": 1000, "steps_back": 2, "consecutive": 1}
    reads = {"system_calls": 4, "system_bytes": 1200, "gaps": 1, "gap_bytes": 1400, "steps_back": 1, "consecutive": 1}
    assert counted(file["write"]) == writes
    assert counted(file["read"]) == reads
    assert file["write"]["common_sizes"] == file["write"]["asked_common_sizes"] == [[500, 4], [1000, 1]]
    assert file["read"]["system_sizes"] == [2, 2, 0, 0, 0, 0, 0, 0, 0, 0]
    assert (file["not_aligned"], file["alignment_bytes"]) == (7, 4096), "two of nine begin at 0"
    assert file["write"]["writers"] == [{"rank": 0, "aggregator": False, "system_calls": 5, "bytes": 3000}]
    assert file["write"]["rank_seconds"] is None


def test_positions_are_followed(mpi, direct, tmp_path):
    """Through dup, lseek, reading, appending, two descriptors that append; the program says where each call begins."""
    report, run = mpi.report(1, direct, "positions", tmp_path / "f")
    file = only_file(report, "posix")
    assert run.stdout == ""
    writes = {"system_calls": 12, "system_bytes": 9700, "gaps": 3, "gap_bytes": 4600, "steps_back": 1, "consecutive": 6}
    assert counted(file["write"]) == writes
    assert counted(file["read"]) == {"system_calls": 2, "system_bytes": 100, "consecutive": 1}
    assert picked(file, "opens", "not_closed", "seeks") == [3, 0, 5]


def test_other_calls_are_counted(openmpi, tmp_path):
    """Open MPI only: a library below Debian's MPICH takes mmap away from those in front of it."""
    program = openmpi.compiled("direct", "-DWITH_MPI", PROGRAMS / "direct.c")
    report, _ = openmpi.report(1, program, "other_calls", tmp_path / "f")
    file, nothing = files_of(report, "posix")
    names = ("opens", "seeks", "stats", "syncs", "truncations", "locks", "mmaps")
    assert dict(zip(names, picked(file, *names))) == {
        "opens": 2, "seeks": 2, "stats": 5, "syncs": 2, "truncations": 2, "locks": 1, "mmaps": 1,
    }  # fmt: skip
    assert picked(nothing, "path", "opens", "open_failures") == ["/nowhere/at/all", 0, 1]
    assert nothing["moments"] == {"open": None, "close": None}
    assert file["seconds"]["sum"]["metadata"] > 0 and file["seconds"]["sum"]["sync"] > 0


def test_duplicated_descriptors_are_followed(mpi, direct, tmp_path):
    report, run = mpi.report(1, direct, "names", tmp_path / "f")
    file = only_file(report, "posix")
    assert run.stdout == ""
    assert counted(file["write"]) == {"system_calls": 4, "system_bytes": 4000, "consecutive": 3}, (
        "what went to /dev/null is not its"
    )
    assert picked(file, "opens", "not_closed") == [1, 1]


def test_copies_within_the_kernel_are_counted(mpi, direct, tmp_path):
    report, _ = mpi.report(1, direct, "copied", tmp_path / "f")
    source, target = files_of(report, "posix")
    assert counted(source["read"]) == {"system_calls": 2, "system_bytes": 1500, "steps_back": 1}
    assert counted(target["write"]) == {"system_calls": 2, "system_bytes": 1500, "consecutive": 1}


def test_failures_reach_the_program(mpi, direct, tmp_path):
    report, run = mpi.report(1, direct, "failing", tmp_path / "f")
    file = only_file(report, "posix")
    assert run.stdout == "", "errno is as the calls left it"
    assert picked(file, "opens", "open_failures", "stats") == [3, 1, 0]
    assert counted(file["read"]) == {"system_failures": 1}
    assert counted(file["write"]) == {"system_calls": 1, "system_bytes": 10, "system_failures": 1}


def test_calls_of_threads_are_counted(mpi, direct, tmp_path):
    report, _ = mpi.report(2, direct, "threads", tmp_path / "f")
    for file in files_of(report, "posix"):
        assert picked(file, "opens", "not_closed") == [4, 0]
        assert picked(file["write"], "system_calls", "system_bytes") == [8000, 8_000_000]


def test_calls_of_children_are_not_counted_for_their_parent(mpi, direct, tmp_path):
    report, run = mpi.report(1, direct, "forked", tmp_path / "f")
    file = only_file(report, "posix")
    assert run.stdout == ""
    assert counted(file["write"]) == {"system_calls": 2, "system_bytes": 2000, "consecutive": 1}, (
        "the child's are not seen"
    )
    assert picked(file, "opens", "not_closed") == [1, 0]


def test_only_rank_that_opened_a_file_is_named(mpi, direct, tmp_path):
    """Readers too: rank 0 reads the deck; each rank has a file of its own."""
    report, _ = mpi.report(2, direct, "positions", tmp_path / "f")
    assert [(file["path"], file["rank"]) for file in report["files"]] == [
        (f"{tmp_path}/f.0", 0),
        (f"{tmp_path}/f.1", 1),
    ]
    (tmp_path / "deck").write_text(f"w\n0\n1\n12 12 12\n{tmp_path}\n")
    report, _ = mpi.report(4, mpi.btio(), "--sweeps", "0", tmp_path / "deck")
    assert {file["layer"]: file["rank"] for file in report["files"]} == {"stdio": 0, "mpiio": None}


@pytest.mark.soak
def test_signal_handlers_can_open_and_write(mpi, direct, tmp_path):
    report, run = mpi.report(1, direct, "signals", tmp_path / "f")
    assert run.stdout == ""
    [file] = [file for file in report["files"] if file["path"] == f"{tmp_path}/f.0"]
    assert picked(file, "opens", "not_closed") == [20_000, 0]
    assert picked(file["write"], "system_calls", "system_bytes") == [20_000, 20_000_000]


def test_files_beyond_the_limit_are_counted(mpi, direct, tmp_path):
    report, _ = mpi.report(1, direct, "many_files", tmp_path / "f")
    assert (len(report["files"]), report["files_joined"], report["files_dropped"]) == (1024, 76, 0)
    [others] = report["other_files"]
    assert picked(others, "path", "opens", "not_closed") == ["[other files]", 76, 0]
    assert counted(others["write"]) == {"system_calls": 76, "system_bytes": 76_000}
    assert others["name_calls"]["unlink"] == 76 and others["seconds"]["sum"]["open"] > 0
    assert sum(file["name_calls"]["unlink"] for file in report["files"]) == 1024


@pytest.mark.soak
def test_ten_thousand_files_of_eight_ranks_are_counted(mpich, tmp_path):
    """1100 of each rank, of which 1024 find room on it, and 4096 in the report."""
    program = mpich.compiled("direct", "-DWITH_MPI", PROGRAMS / "direct.c")
    report, _ = mpich.report(8, program, "many_files", tmp_path / "f")
    paths = {file["path"] for file in report["files"]}
    assert (len(paths), len(report["files"]), report["files_dropped"]) == (4096, 4096, 0)
    [others] = report["other_files"]
    assert others["opens"] == 8 * 1100 - 4096 and others["write"]["system_bytes"] == 1000 * others["opens"]
    assert len(paths) + others["opens"] == 8 * 1100
    assert all((file["ranks"], file["opens"], file["not_closed"]) == (1, 1, 0) for file in report["files"])


@pytest.mark.soak
def test_btio_with_a_file_for_each_rank_is_counted(mpi, tmp_path):
    """BTIO's deck is read by rank 0 as a stream; epio's files are opened without MPI-IO, one for each rank."""
    dumps, points, ranks, side = 3, 48**3, 4, 2
    (tmp_path / "deck").write_text(f"w\n0\n{dumps}\n48 48 48\n{tmp_path}\n")
    report, _ = mpi.report(ranks, mpi.btio(), "--sweeps", "0", "--variant", "epio", tmp_path / "deck")
    files = files_of(report, "posix")
    assert [file["path"].rsplit(".", 1)[1] for file in files] == ["0000", "0001", "0002", "0003"]
    cell_bytes = points * 40 // (ranks * side)
    for file in files:
        assert file["ranks"] == 1
        assert counted(file["write"]) == {
            "system_calls": dumps * side,
            "system_bytes": dumps * side * (cell_bytes + 8),
            "consecutive": dumps * side - 1,
        }
        assert file["write"]["common_sizes"] == [[cell_bytes + 8, dumps * side]]
    assert [file["path"] for file in files_of(report, "stdio")] == [str(tmp_path / "deck")]
    assert files_of(report, "mpiio") == []
    [heat] = [heat for heat in report["heat"] if heat["layer"] == "posix"]
    assert sum(cell[2] for cell in heat["write"]) == dumps * (points * 40 + ranks * side * 8)


def test_times_of_parts_add_up(mpi, direct, tmp_path):
    report, _ = mpi.report(2, direct, "threads", tmp_path / "f")
    total = 0
    for file in report["files"]:
        seconds, moments = file["seconds"], file["write"]["moments"]
        sums = seconds["sum"]
        total += (
            sums["open"]
            + sums["close"]
            + sums["metadata"]
            + sums["sync"]
            + sums["write"]["data"]
            + sums["read"]["data"]
        )
        assert file["moments"]["open"] <= moments["first"] <= moments["last"] <= file["moments"]["close"]
        assert seconds["slowest"]["write"]["data"] == sums["write"]["data"] > 0
    assert report["io_s"]["sum"] == pytest.approx(total, abs=2e-5)
    assert report["io_s"]["sum"] / 2 <= report["io_s"]["slowest"] <= report["io_s"]["sum"]


def test_fortran_calls_are_counted(mpi, tmp_path):
    fortran = mpi.compiled("direct-fortran", "-DWITH_MPI", PROGRAMS / "direct.F90")
    report, _ = mpi.report(1, fortran, tmp_path / "f")
    file, text = report["files"]
    assert [file["layer"], text["layer"]] == ["posix", "posix"]
    assert counted(file["write"]) == {"system_calls": 30_000, "system_bytes": 1_200_000, "steps_back": 29_999}
    assert file["write"]["common_sizes"] == [[40, 30_000]]
    assert file["read"]["system_bytes"] == 1_200_000
    assert text["write"]["system_bytes"] == 7


def test_stripes_of_the_emulated_file_system_are_reported(job, openmpi, build):
    """dd writes 10 stripe units; the eleventh block is the half of one."""
    data = job.directory / "data"
    data.mkdir()
    record = job.directory / "record"
    record.mkdir()
    job.script(
        f"export FOREBAY_PROFILE={str(record)!r}\n"
        f"LD_PRELOAD={openmpi.library}:$LD_PRELOAD dd if=/dev/zero of={str(data)!r}/f bs=1M count=10 status=none\n"
        f"LD_PRELOAD={openmpi.library}:$LD_PRELOAD dd if=/dev/zero of={str(data)!r}/f bs=512k count=3 seek=20 conv=notrunc status=none\n"
    )
    done = job.run("--json", "--pfs-model", str(PROJECT / "machines" / "lustre-small.toml"), "--pfs-root", str(data))
    assert done.returncode == 0, done.stderr
    processes = [json.loads(path.read_text()) for path in sorted(record.glob("process-*.json"))]
    files = [only_file(process, "posix") for process in processes]
    assert [picked(file, "stripe_count", "stripe_bytes") for file in files] == [[1, 1 << 20]] * 2
    assert [file["write"]["stripe_sized"] for file in files] == [10, 0]


CALL = re.compile(r"^\d+ +(\w+)\(.*\) += (-?\d+)")


def traced(program, path, traces) -> tuple[dict, dict]:
    """Calls and bytes of each system call on the file, as strace saw them, without the library."""
    subprocess.run(["strace", "-f", "-y", "-s", "0", "-o", traces, program, path], check=True, capture_output=True)
    calls, moved = collections.Counter(), collections.Counter()
    for line in traces.read_text().splitlines():
        if f"<{path}>" in line and (match := CALL.match(line)):
            calls[match[1]] += 1
            moved[match[1]] += int(match[2])
    return calls, moved


@pytest.mark.parametrize("mpi", few("openmpi", "mpich"), indirect=True)
@pytest.mark.parametrize("source", ["direct.F90", "streams.cpp"])
def test_counts_equal_those_of_strace(mpi, tmp_path, source):
    program, path, record = tmp_path / "program", tmp_path / "f", tmp_path / "record"
    record.mkdir()
    compiler = "gfortran" if source.endswith("F90") else "g++"
    subprocess.run(
        [compiler, *(["-cpp"] if compiler == "gfortran" else []), "-O1", PROGRAMS / source, "-o", program], check=True
    )
    calls, moved = traced(program, path, tmp_path / "traces")
    environment = {"LD_PRELOAD": str(mpi.library), "FOREBAY_PROFILE": str(record)}
    subprocess.run([program, path], env=environment, check=True)
    [written] = record.glob("process-*.json")
    [file] = [file for file in json.loads(written.read_text())["files"] if file["path"] == str(path)]
    assert file["layer"] == "posix"
    assert file["seeks"] == calls["lseek"]
    assert file["write"]["system_calls"] == calls["write"] + calls["writev"] > 0
    assert file["write"]["system_bytes"] == moved["write"] + moved["writev"]
    assert file["read"]["system_calls"] == calls["read"] + calls["readv"] > 0
    assert file["read"]["system_bytes"] == moved["read"] + moved["readv"]
    assert file["opens"] == calls["openat"] and file["not_closed"] == 0
