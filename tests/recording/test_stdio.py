"""Streams of C: the calls of the program, not those that libc makes below them."""

import pytest

from support.mpi import PROGRAMS, files_of, only_file


@pytest.fixture
def direct(mpi):
    return mpi.compiled("direct", "-DWITH_MPI", PROGRAMS / "direct.c")


def picked(traffic: dict, *names: str) -> list:
    return [traffic[name] for name in names]


def test_stream_calls_are_counted(mpi, direct, tmp_path):
    report, run = mpi.report(1, direct, "blocks", tmp_path / "f")
    file = only_file(report, "stdio")
    assert run.stdout == ""
    assert files_of(report, "posix") == [], "a descriptor belongs to one layer"
    assert picked(file, "opens", "not_closed", "seeks", "syncs") == [1, 0, 2, 1]
    names = ("system_calls", "system_bytes", "gaps", "steps_back", "consecutive")
    assert picked(file["write"], *names) == [4, 514, 0, 0, 3]
    assert picked(file["read"], *names) == [5, 114, 0, 1, 3], "500, 507, 508, 513, and from the begin again"
    assert file["read"]["common_sizes"] == [[1, 2], [100, 1], [7, 1], [5, 1]]


def test_lines_of_any_length_are_counted(mpi, direct, tmp_path):
    report, run = mpi.report(1, direct, "lines", tmp_path / "f")
    file = only_file(report, "stdio")
    assert run.stdout == ""
    names = ("system_calls", "system_bytes", "gaps", "steps_back", "consecutive")
    assert picked(file["write"], *names) == [2003, 24012, 0, 0, 2002]
    assert picked(file["read"], *names) == [2007, 24013, 0, 1, 2005], "one character was pushed back"


def test_thousands_of_single_characters_are_counted(mpi, direct, tmp_path):
    report, run = mpi.report(1, direct, "characters", tmp_path / "f")
    file = only_file(report, "stdio")
    assert run.stdout == "" and (tmp_path / "f.0").stat().st_size == 20010
    names = ("system_calls", "system_bytes", "gaps", "gap_bytes", "steps_back", "consecutive")
    assert picked(file["write"], *names) == [10061, 10160, 1, 9850, 0, 10059]
    assert picked(file["read"], *names) == [7000, 7000, 0, 0, 0, 6999]
    assert file["write"]["common_sizes"] == [[1, 10060], [100, 1]]
    assert file["write"]["system_sizes"][0] == 10061 and file["seeks"] == 2
    aligned = sum(
        1 for at in [*range(10000), *range(10100, 10150), *range(20000, 20010), *range(7000)] if at % 4096 == 0
    )
    assert (file["alignment_bytes"], file["not_aligned"]) == (4096, 17061 - aligned)


def test_append_starts_at_the_end(mpi, direct, tmp_path):
    report, _ = mpi.report(1, direct, "appended", tmp_path / "f")
    file = only_file(report, "stdio")
    assert picked(file, "opens", "not_aligned") == [2, 2], "700 and 1000 are off 4096, 0 is not"
    assert picked(file["write"], "system_calls", "system_bytes", "consecutive") == [3, 1300, 1]


def test_streams_over_descriptors_and_other_files_are_counted(mpi, direct, tmp_path):
    report, run = mpi.report(1, direct, "turned", tmp_path / "f")
    assert run.stdout == ""
    assert [
        (file["path"], file["layer"], file["opens"], file["not_closed"], file["write"]["system_bytes"])
        for file in report["files"]
    ] == [(f"{tmp_path}/f.0", "stdio", 1, 0, 100), (f"{tmp_path}/f.0.other", "stdio", 1, 0, 200)]


def test_full_disk_and_a_missing_file_reach_the_program(mpi, direct, tmp_path):
    report, run = mpi.report(1, direct, "full", tmp_path / "f")
    assert run.stdout == ""
    file = only_file(report, "stdio")
    assert picked(file, "path", "opens", "open_failures") == [f"{tmp_path}/f.0", 0, 1]


def test_messages_of_the_library_are_not_counted_as_writes_of_the_program(mpi, tmp_path):
    """The program puts stderr into a file; complaint, hints and statistics are printed there."""
    program = mpi.compiled("stderr_file", PROGRAMS / "stderr_file.c")
    log, wanted = tmp_path / "log", {"MPICH_MPIIO_HINTS_DISPLAY": "1", "MPICH_MPIIO_STATS": "1"}
    report, _ = mpi.report(1, program, log, tmp_path / "f", MPICH_MPIIO_HINTS="*:cb_nodes", **wanted)
    text = log.read_text()
    assert text.startswith("forebay: MPICH_MPIIO_HINTS: 'cb_nodes' is not KEY=VALUE")
    assert "\nPE 0: MPIIO hints for" in text and "MPIIO write access patterns" in text
    [file] = files_of(report, "stdio")
    assert (file["path"], file["opens"], file["write"]["system_calls"]) == (str(log), 1, 0)
