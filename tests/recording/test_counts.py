"""What the library counts, to the digit, where nothing depends on time."""

import pytest

from support.strace import few
from support.mpi import PROGRAMS, only_file, said

# BTIO, 48^3 points, 3 dumps of 4,423,680 bytes, 4 ranks.
DUMPS, DUMP_BYTES = 3, 48**3 * 5 * 8
ALIGNED = "*:cb_nodes=2:cb_config_list=#*:2#:cb_buffer_size=1048576:striping_unit=1048576"
SIEVING = "*:romio_cb_write=disable:romio_ds_write=enable"
PLAIN = "*:romio_cb_write=disable:romio_ds_write=disable"


def btio(mpi, directory, **environment):
    (directory / "deck").write_text(f"w\n0\n{DUMPS}\n48 48 48\n{directory}\n")
    report, run = mpi.report(4, mpi.btio(), "--sweeps", "0", directory / "deck", **environment)
    return only_file(report), run


def picked(traffic, *names):
    return {name: traffic[name] for name in names}


@pytest.mark.parametrize(
    "hints, ranks, system_calls, system_bytes, rmw_calls, gaps",
    [
        ("", 1, 3, DUMPS * DUMP_BYTES, 0, 0),
        (ALIGNED, 2, 15, DUMPS * DUMP_BYTES, 0, 4),
        (SIEVING, 4, 96, 50_111_232, 96, 90),
        (PLAIN, 4, 13_824, DUMPS * DUMP_BYTES, 0, 13_815),
    ],
    ids=["default", "aligned", "sieving", "plain"],
)
@pytest.mark.parametrize("mpi", few("openmpi", "mpich"), indirect=True)
def test_btio_with_romio_is_counted(mpi, tmp_path, hints, ranks, system_calls, system_bytes, rmw_calls, gaps):
    file, _ = btio(mpi, tmp_path, MPICH_MPIIO_HINTS=hints or "none:cb_nodes=1")
    assert picked(file["write"], "system_ranks", "system_calls", "system_bytes", "rmw_calls", "gaps", "steps_back") == {
        "system_ranks": ranks,
        "system_calls": system_calls,
        "system_bytes": system_bytes,
        "rmw_calls": rmw_calls,
        "gaps": gaps,
        "steps_back": 0,
    }
    assert file["write"]["calls"] == {
        "independent": 0,
        "collective": 4 * DUMPS,
        "nonblocking": 0,
        "nonblocking_collective": 0,
        "split_collective": 0,
    }
    assert file["write"]["asked_bytes"] == DUMPS * DUMP_BYTES
    assert sum(writer["bytes"] for writer in file["write"]["writers"]) == system_bytes
    assert sum(file["write"]["system_sizes"]) == system_calls
    # How much of it lies before the end of the file when it is read depends on the other ranks.
    assert (file["write"]["rmw_bytes"] > 0) == (rmw_calls > 0)
    assert file["write"]["rmw_bytes"] <= system_bytes
    assert file["opened_by"] == {"openmpi": "mca_io_romio321.so", "mpich": "libmpich.so.12"}[mpi.family]


def test_btio_with_ompio_is_counted(openmpi, tmp_path):
    file, run = btio(openmpi, tmp_path)
    assert picked(
        file["write"], "system_ranks", "aggregators", "system_calls", "system_bytes", "rmw_calls", "gaps"
    ) == {
        "system_ranks": 1,
        "aggregators": 1,
        "system_calls": 3,
        "system_bytes": DUMPS * DUMP_BYTES,
        "rmw_calls": 0,
        "gaps": 0,
    }
    assert file["opened_by"] == "mca_fs_ufs.so"
    assert said(run) == []


@pytest.mark.soak
def test_stripes_and_active_aggregators_are_reported(mpi, tmp_path):
    """13,271,040 bytes have 12 whole stripes of 1 MiB; a dump ends within one, so 7 are written whole."""
    file, _ = btio(mpi, tmp_path, MPICH_MPIIO_HINTS=ALIGNED)
    assert file["stripe_bytes"] == 1 << 20
    assert file["write"]["stripe_sized"] == 7
    assert file["write"]["aggregators"] == 2
    assert file["write"]["aggregators_active"] == [0, 0, 0, DUMPS]
    assert [writer["aggregator"] for writer in file["write"]["writers"]] == [True, True]


def test_sieving_reads_are_counted(mpi, tmp_path):
    """50 blocks of 10 bytes, 10 bytes apart, in a file that exists: one read and one write of 990 bytes."""
    path = tmp_path / "file"
    path.write_bytes(b"." * 2000)
    report, _ = mpi.report(1, mpi.observed(), "sieve", path, MPICH_MPIIO_HINTS="*:romio_ds_write=enable")
    file = only_file(report)
    assert picked(file["write"], "asked_bytes", "system_calls", "system_bytes", "rmw_calls", "rmw_bytes") == {
        "asked_bytes": 500,
        "system_calls": 1,
        "system_bytes": 990,
        "rmw_calls": 1,
        "rmw_bytes": 990,
    }
    assert file["read"]["system_calls"] == 0
    assert file["locks"] == 2
    assert path.read_bytes() == (b"x" * 10 + b"." * 10) * 49 + b"x" * 10 + b"." * 1010


def test_reading_at_the_end_of_the_file_counts_once_for_each_write(mpi, tmp_path):
    """The first write of two to one place finds an empty file, the second what the first has written."""
    path = tmp_path / "file"
    path.touch()
    report, _ = mpi.report(1, mpi.observed(), "sieve_twice", path, MPICH_MPIIO_HINTS="*:romio_ds_write=enable")
    writes = only_file(report)["write"]
    assert picked(writes, "system_calls", "rmw_calls", "rmw_bytes") == {
        "system_calls": 2,
        "rmw_calls": 2,
        "rmw_bytes": 990,
    }


CALLS = ["independent", "nonblocking", "nonblocking_collective", "split_collective"]


@pytest.mark.soak
@pytest.mark.parametrize(
    "case, written, read",
    [
        ("independent", [8, 0, 0, 0], [2, 0, 0, 0]),
        ("nonblocking", [0, 8, 2, 0], [0, 0, 0, 0]),
        ("split", [0, 0, 0, 2], [0, 0, 0, 2]),
    ],
)
def test_each_kind_of_call_is_counted(mpi, tmp_path, case, written, read):
    report, run = mpi.report(2, mpi.observed(), case, tmp_path / "file")
    file = only_file(report)
    assert [file["write"]["calls"][kind] for kind in CALLS] == written
    assert [file["read"]["calls"][kind] for kind in CALLS] == read
    assert file["write"]["system_bytes"] == file["write"]["asked_bytes"] == sum(written) * 1000
    assert file["read"]["system_bytes"] == file["read"]["asked_bytes"] == sum(read) * 1000
    assert run.stdout.count(" ok") == 2


@pytest.mark.soak
def test_large_counts_and_shared_pointers_are_counted(mpi, tmp_path):
    for case in ("large", "shared_pointer"):
        report, _ = mpi.report(2, mpi.observed(), case, tmp_path / case)
        writes = only_file(report)["write"]
        assert (writes["calls"]["independent"], writes["calls"]["collective"]) == (2, 2)
        assert writes["asked_bytes"] == writes["system_bytes"] == 4000, (
            "the file of the shared pointer itself is no data"
        )


def test_seconds_of_parts_add_up(mpi, tmp_path):
    report, _ = mpi.report(2, mpi.observed(), "independent", tmp_path / "file")
    sums, slowest = (only_file(report)["seconds"][part] for part in ("sum", "slowest"))
    assert sums["write"]["calls"] >= sums["write"]["data"] > 0
    assert sums["write"]["rest"] == pytest.approx(
        sums["write"]["calls"] - sums["write"]["data"] - sums["write"]["other_system"], abs=3e-6
    )
    assert report["wall_s"] >= slowest["open"] > 0
    assert sums["sync"] > 0 and sums["close"] > 0


@pytest.mark.parametrize("binding", ["MPIF", "MPI", "F08"])
def test_fortran_calls_are_counted_once(mpi, tmp_path, binding):
    program = mpi.compiled(f"fortran-{binding}", f"-DBINDING_{binding}", PROGRAMS / "observed.F90")
    report, _ = mpi.report(2, program, tmp_path / "file")
    file = only_file(report)
    assert file["opens"] == 2 and file["not_closed"] == 0
    assert file["write"]["calls"]["collective"] == 6
    assert file["write"]["asked_bytes"] == file["write"]["system_bytes"] == 4800
