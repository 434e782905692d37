"""The application is as it would be without the library; what the report lacks is said."""

import json
import subprocess

import pytest

from support.mpi import PROGRAMS, only_file, said

BOX = """\
+--------------------------------------------------------+
| MPIIO write access patterns for {path}
|   independent writes      = 8
|   collective writes       = 0
|   independent writers     = 2
|   aggregators             = 0
|   stripe count            = NA
|   stripe size             = NA
|   system writes           = 8
|   stripe sized writes     = NA
|   aggregators active      = 0,0,0,0 (1, <= 1, > 1, 0)
|   total bytes for writes  = 8000
|   ave system write size   = 1000
|   read-modify-write count = 0
|   read-modify-write bytes = 0
|   number of write gaps    = 6
|   ave write gap size      = 1000
| See Forebay's docs/reference/mpi.md for explanations.
+--------------------------------------------------------+
+--------------------------------------------------------+
| MPIIO read access patterns for {path}
|   independent reads       = 2
|   collective reads        = 0
|   independent readers     = 2
|   aggregators             = 0
|   stripe count            = NA
|   stripe size             = NA
|   system reads            = 2
|   stripe sized reads      = NA
|   total bytes for reads   = 2000
|   ave system read size    = 1000
|   number of read gaps     = 0
|   ave read gap size       = NA
| See Forebay's docs/reference/mpi.md for explanations.
+--------------------------------------------------------+
"""


def test_statistics_box_goes_to_stderr_and_nothing_to_stdout(mpi, tmp_path):
    run = mpi.run(2, mpi.observed(), "independent", tmp_path / "f", MPICH_MPIIO_STATS="1")
    assert run.returncode == 0
    assert run.stderr == BOX.format(path=tmp_path / "f")
    assert sorted(run.stdout.splitlines()) == ["rank 0 ok", "rank 1 ok"]


@pytest.mark.parametrize("asked", [{}, {"MPICH_MPIIO_STATS": "0"}])
def test_no_output_by_default(mpi, tmp_path, asked):
    run = mpi.run(2, mpi.observed(), "independent", tmp_path / "f", **asked)
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.parametrize("case, calls", [("threads", 800), ("forked", 8)])
def test_threads_and_children_are_counted(mpi, tmp_path, case, calls):
    report, run = mpi.report(2, mpi.observed(), case, tmp_path / "f")
    assert run.stdout.count(" ok") == 2
    writes = only_file(report)["write"]
    assert (writes["calls"]["independent"], writes["system_calls"], writes["system_bytes"]) == (
        calls,
        calls,
        calls * 1000,
    )


def test_forked_children_do_not_wait_for_threads_of_the_parent(mpi, tmp_path):
    report, run = mpi.report(1, mpi.observed(), "forked_threads", tmp_path / "f")
    assert run.stdout == "rank 0 ok\n"
    writes = only_file(report)["write"]
    assert writes["calls"]["independent"] == writes["system_calls"] > 0


def test_failed_open_returns_its_code(mpi, tmp_path):
    report, run = mpi.report(2, mpi.observed(), "missing", tmp_path / "f")
    file = only_file(report)
    assert (file["opens"], file["open_failures"]) == (0, 2)
    assert run.stdout.count(" ok") == 2


def test_file_never_closed_is_reported_as_such(mpi, tmp_path):
    report, run = mpi.report(2, mpi.observed(), "unclosed", tmp_path / "f")
    assert only_file(report)["not_closed"] == 2
    assert only_file(report)["write"]["system_bytes"] == 2000
    assert said(run) == [f"forebay: {tmp_path / 'f'} was still open in MPI_Finalize on 2 rank(s)"]


def test_file_opened_by_a_vfork_child_is_not_counted_for_the_parent(mpi, tmp_path):
    report, run = mpi.report(1, mpi.observed(), "forked_opens", tmp_path / "f")
    assert run.stdout == "rank 0 ok\n"
    assert only_file(report)["write"]["system_calls"] == 1


def test_call_left_by_longjmp_is_counted_as_ended(openmpi, tmp_path):
    """Open MPI only: MPICH keeps its own lock then, and hangs with or without the library."""
    report, run = openmpi.report(1, openmpi.observed(), "jumping", tmp_path / "f")
    assert run.stdout == "rank 0 ok\n"
    [file] = [file for file in report["files"] if file["path"] == str(tmp_path / "f")]
    assert (file["opens"], file["write"]["calls"]["independent"], file["write"]["system_calls"]) == (1, 1, 1)


@pytest.mark.soak
def test_signal_handlers_can_open_files(mpi, tmp_path):
    report, run = mpi.report(1, mpi.observed(), "signals", tmp_path / "f")
    assert run.stdout == "rank 0 ok\n"
    assert only_file(report)["write"]["system_calls"] == 200_000


@pytest.mark.soak
def test_report_is_json_where_decimals_have_a_comma(mpi, tmp_path):
    made = subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", tmp_path / "de_DE.UTF-8"], capture_output=True)
    if made.returncode != 0:
        pytest.skip("no source of a locale with a decimal comma")
    report, run = mpi.report(1, mpi.observed(), "decimal_comma", tmp_path / "f", LOCPATH=tmp_path, LC_ALL="de_DE.UTF-8")
    assert run.stdout == "rank 0 ok\n"
    assert 0 < report["wall_s"] < 60


def test_no_mpi_handle_is_leaked(mpi, tmp_path):
    with_library = mpi.run(1, mpi.observed(), "no_handle", tmp_path / "f", MPICH_MPIIO_STATS="1")
    without = mpi.run(1, mpi.observed(), "no_handle", tmp_path / "f", preload="")
    assert with_library.returncode == without.returncode
    assert with_library.stdout.count("rank 0 ok") == without.stdout.count("rank 0 ok")


def test_attributes_of_program_communicators_are_unchanged(mpi, tmp_path):
    report, run = mpi.report(2, mpi.observed(), "attributes", tmp_path / "f")
    assert sorted(run.stdout.splitlines()) == ["rank 0 ok", "rank 1 ok"]
    assert report["files"] == []


def test_files_of_single_ranks_are_distinguished(mpi, tmp_path):
    report, _ = mpi.report(2, mpi.observed(), "own", tmp_path / "f")
    assert [file["path"] for file in report["files"]] == [f"{tmp_path / 'f'}.0", f"{tmp_path / 'f'}.1"]
    assert [file["write"]["writers"][0]["rank"] for file in report["files"]] == [0, 1]
    assert [file["ranks"] for file in report["files"]] == [1, 1]


def test_files_beyond_the_limit_are_counted(mpi, tmp_path):
    report, run = mpi.report(1, mpi.observed(), "many", tmp_path / "f")
    assert (len(report["files"]), report["files_dropped"]) == (1024, 76)
    assert said(run) == ["forebay: 76 opened file(s) found no room in the report (1024 on a rank)"]


def test_abort_ends_the_job(mpi, tmp_path):
    path = tmp_path / "report.json"
    run = mpi.run(2, mpi.observed(), "aborting", tmp_path / "f", FOREBAY_MPI_STATS=path)
    assert run.returncode == 7
    # MPICH's mpiexec now and then loses the last words of an aborting rank, its own as well as ours before them.
    if mpi.family == "openmpi" or "Abort(7)" in run.stderr:
        assert said(run) == ["forebay: MPI_Abort on rank 0: there is no report of this job's files"]
    assert not path.exists()


def test_unwritable_report_is_reported(mpi, tmp_path):
    run = mpi.run(2, mpi.observed(), "independent", tmp_path / "f", FOREBAY_MPI_STATS="/nowhere/x")
    assert run.returncode == 0
    assert said(run) == ["forebay: /nowhere/x: the report could not be written: No such file or directory"]


def test_full_disk_is_reported_and_a_device_is_not_replaced(mpi, tmp_path):
    full = tmp_path / "full"
    full.symlink_to("/dev/full")
    run = mpi.run(2, mpi.observed(), "independent", tmp_path / "f", FOREBAY_MPI_STATS=full)
    assert run.returncode == 0
    assert said(run) == [f"forebay: {full}: the report could not be written: No space left on device"]
    assert full.is_symlink()


def test_older_report_is_replaced_completely(mpi, tmp_path):
    path = tmp_path / "report.json"
    path.write_text("old" * 100_000)
    mpi.run(1, mpi.observed(), "independent", tmp_path / "f", FOREBAY_MPI_STATS=path)
    assert json.loads(path.read_text())["ranks"] == 1
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["f", "report.json"]


def test_spawned_processes_do_not_change_the_report(openmpi, tmp_path):
    """Open MPI only: Debian's MPICH cannot spawn here, with or without the library."""
    report, run = openmpi.report(1, openmpi.observed(), "spawning", tmp_path / "f")
    assert only_file(report)["path"] == f"{tmp_path / 'f'}.0"
    assert said(run) == ["forebay: processes made by MPI_Comm_spawn: their files are not reported"]
    assert run.stdout.count(" ok") == 3


@pytest.mark.parametrize("is_first", [True, False], ids=["tool-first", "tool-last"])
def test_another_pmpi_tool_and_ours_count_each_call_once(mpi, tmp_path, is_first):
    tool = mpi.compiled("tool", "-shared", "-fPIC", PROGRAMS / "tool.c")
    both = [tool, mpi.library] if is_first else [mpi.library, tool]
    report, run = mpi.report(2, mpi.observed(), "independent", tmp_path / "f", preload=":".join(map(str, both)))
    assert run.stderr.count("tool: 4 writes\n") == 2
    assert only_file(report)["write"]["calls"]["independent"] == 8


def test_library_exports_no_internal_name(mpi):
    names = subprocess.run(
        ["nm", "-D", "--defined-only", str(mpi.library)], capture_output=True, text=True, check=True
    ).stdout
    ours = [line.split()[-1] for line in names.splitlines()]
    assert "MPI_File_open" in ours and "PMPI_File_write_at_all" in ours
    assert not [
        name for name in ours if name.startswith(("text_", "call_", "files_", "report_", "library", "settings"))
    ]


def test_build_uses_open_mpi():
    """Installing MPICH next to it must not change what mpicc and mpiexec are."""
    for command in (["mpicc", "--showme:version"], ["mpiexec", "--version"]):
        run = subprocess.run(command, capture_output=True, text=True)
        assert "Open" in run.stdout + run.stderr, command
