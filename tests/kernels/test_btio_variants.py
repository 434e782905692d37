"""BTIO's other ways to write: what stands in their files, and in how many calls."""

import array
import pathlib
import struct
import subprocess

import pytest

from support.btio_deck import COMPONENTS, expected_values, run_btio, values_in, write_deck
from support.kernels import (
    assert_failed,
    assert_refused,
    flip_byte,
    mpiexec,
    only_json_line,
    result_of,
    with_small_disk,
)
from support.netcdf import DOUBLE, Header

GRID, DUMPS = (12, 13, 14), 3
DATA_BYTES = 40 * 12 * 13 * 14 * DUMPS


@pytest.fixture(scope="session")
def has_pnetcdf(build, tmp_path_factory):
    """Skips where the library was left out of the build."""
    deck = write_deck(tmp_path_factory.mktemp("probe"), method=2, dumps=1)
    run = run_btio(build, 1, deck)
    if run.returncode == 2 and "built without PnetCDF" in run.stderr:
        pytest.skip("built without PnetCDF")


def run_variant(build, ranks, directory, variant, *flags, mode="w", io="ompio", **options):
    deck = write_deck(directory, mode=mode, grid=GRID, dumps=DUMPS)
    return run_btio(build, ranks, deck, "--sweeps", "0", "--variant", variant, *flags, io=io, **options)


def rows_per_dump(ranks):
    """Every rank has q cells; over all ranks they cut each of the ny * nz lines along x into q rows."""
    return GRID[1] * GRID[2] * int(ranks**0.5)


# One shared file of dumps


@pytest.mark.parametrize(
    "variant, ranks, io",
    [("simple", 4, "ompio"), ("simple", 9, "romio321"), ("independent", 4, "ompio"), ("independent", 4, "romio321")],
)
def test_variant_writes_the_same_bytes_as_full(build, tmp_path, variant, ranks, io):
    result = result_of(run_variant(build, ranks, tmp_path, variant, "--verify", "--sync", io=io))
    name = {"simple": "btio.simple.out", "independent": "btio.full.out"}[variant]
    assert values_in(tmp_path / "out" / name) == expected_values(GRID, DUMPS)
    calls = {"simple": rows_per_dump(ranks), "independent": ranks}[variant] * DUMPS
    assert (result["variant"], result["calls"]) == (variant, calls)
    assert (result["verified"], result["bytes"], result["files"]) == (True, DATA_BYTES, 1)


def test_simple_makes_the_published_number_of_small_writes(build, tmp_path):
    """64 x 64 x 64 points on 4 ranks: 8192 rows of 1,280 bytes per dump."""
    deck = write_deck(tmp_path, grid=(64, 64, 64), dumps=2)
    result = result_of(run_btio(build, 4, deck, "--sweeps", "0", "--variant", "simple"))
    assert (result["calls"], result["bytes"] // result["calls"]) == (2 * 8192, 1280)


@pytest.mark.soak
def test_method_1_of_the_deck_is_independent_and_reads_what_method_0_wrote(build, tmp_path):
    result_of(run_btio(build, 4, write_deck(tmp_path)))
    result = result_of(run_btio(build, 9, write_deck(tmp_path, mode="r", method=1), "--verify"))
    assert (result["variant"], result["mode"], result["verified"]) == ("independent", "r", True)


# epio


def records_of(path):
    """The contents of the Fortran records of a file, each mark checked."""
    data, at = path.read_bytes(), 0
    while at < len(data):
        (length,) = struct.unpack_from("=i", data, at)
        assert struct.unpack_from("=i", data, at + 4 + length) == (length,)
        yield data[at + 4 : at + 4 + length]
        at += length + 8


@pytest.mark.parametrize("ranks", [1, 4])
def test_epio_has_a_file_per_rank_and_a_record_per_cell(build, tmp_path, ranks):
    result = result_of(run_variant(build, ranks, tmp_path, "epio", "--verify", "--sync"))
    side = int(ranks**0.5)
    assert (result["files"], result["calls"]) == (ranks, ranks * side * DUMPS)
    assert result["path"] == str(tmp_path / "out" / "btio.epio.out.0000")
    files = sorted((tmp_path / "out").iterdir())
    assert [file.name for file in files] == [f"btio.epio.out.{rank:04}" for rank in range(ranks)]
    assert sum(file.stat().st_size for file in files) == DATA_BYTES + ranks * side * DUMPS * 8
    seen = array.array("d")
    for file in files:
        records = list(records_of(file))
        assert len(records) == side * DUMPS
        for record in records:
            seen.frombytes(record)
    assert sorted(seen) == list(expected_values(GRID, DUMPS))


def test_epio_record_is_one_cell_with_x_fastest(build, tmp_path):
    result_of(run_variant(build, 4, tmp_path, "epio"))
    first = array.array("d")
    # Rank 1 of 4 has its first cell at slab 1 of x and slab 0 of y and z: points 6.. of 12, 0..7 of 13, 0..7 of 14.
    first.frombytes(next(records_of(tmp_path / "out" / "btio.epio.out.0001")))
    nx, ny, _ = GRID
    points = [(z * ny + y) * nx + x for z in range(7) for y in range(7) for x in range(6, 12)]
    assert list(first) == [point * COMPONENTS + m + 1 for point in points for m in range(COMPONENTS)]


@pytest.mark.soak
def test_epio_is_read_on_as_many_ranks_as_wrote_it(build, tmp_path):
    result_of(run_variant(build, 4, tmp_path, "epio"))
    assert result_of(run_variant(build, 4, tmp_path, "epio", "--verify", mode="r"))["verified"] is True
    run = run_variant(build, 1, tmp_path, "epio", mode="r")
    assert_failed(run, r"fstat on rank 0: .*btio.epio.out.0000: the file holds \d+ bytes, \d+ expected\nhint: .*ranks")
    run = run_variant(build, 9, tmp_path, "epio", mode="r")
    assert_failed(run, r"open on rank 4: .*btio.epio.out.0004: No such file.*\nhint: .*ranks")


@pytest.mark.soak
@pytest.mark.parametrize("offset", [0, -1])
def test_epio_names_a_damaged_record_mark(build, tmp_path, offset):
    result_of(run_variant(build, 4, tmp_path, "epio"))
    path = tmp_path / "out" / "btio.epio.out.0002"
    flip_byte(path, offset % path.stat().st_size)
    run = run_variant(build, 4, tmp_path, "epio", "--verify", mode="r")
    assert_failed(run, r"read on rank 2: .*btio.epio.out.0002: a record mark is wrong")


# PnetCDF


@pytest.mark.soak
@pytest.mark.parametrize(
    "method, ranks, io", [(2, 1, "ompio"), (2, 4, "ompio"), (2, 4, "romio321"), (3, 4, "ompio"), (3, 4, "romio321")]
)
def test_netcdf_file_equals_the_published_one(build, tmp_path, has_pnetcdf, method, ranks, io):
    deck = write_deck(tmp_path, method=method, grid=GRID, dumps=DUMPS)
    result = result_of(run_btio(build, ranks, deck, "--sweeps", "0", "--verify", "--sync", io=io))
    cells = int(ranks**0.5)
    assert result["variant"] == {2: "pnetcdf", 3: "pnetcdf-nonblocking"}[method]
    assert result["calls"] == DUMPS * ranks * {2: cells, 3: 1}[method]

    path = tmp_path / "out" / "btio.nc"
    header = Header(path)
    assert (header.version, header.records) == (5, DUMPS)
    assert header.dimensions == {"FIVE_DBL": 5, "X": 12, "Y": 13, "Z": 14, "NUM_DUMPS": 0}
    assert list(header.dimensions) == ["FIVE_DBL", "X", "Y", "Z", "NUM_DUMPS"]
    assert list(header.variables) == ["var"]
    variable = header.variables["var"]
    assert (variable["type"], variable["shape"]) == (DOUBLE, ["NUM_DUMPS", "Z", "Y", "X", "FIVE_DBL"])
    values = array.array("d")
    values.frombytes(path.read_bytes()[variable["begin"] :])
    values.byteswap()
    assert values == expected_values(GRID, DUMPS)


@pytest.mark.soak
def test_netcdf_is_read_by_the_other_method_on_other_ranks(build, tmp_path, has_pnetcdf):
    result_of(run_variant(build, 4, tmp_path, "pnetcdf"))
    result = result_of(run_variant(build, 9, tmp_path, "pnetcdf-nonblocking", "--verify", mode="r"))
    assert (result["verified"], result["calls"]) == (True, 9 * DUMPS)


@pytest.mark.soak
def test_netcdf_of_another_deck_is_refused(build, tmp_path, has_pnetcdf):
    result_of(run_variant(build, 4, tmp_path, "pnetcdf"))
    deck = write_deck(tmp_path, mode="r", method=2, grid=GRID, dumps=DUMPS + 1)
    assert_failed(run_btio(build, 4, deck), "it holds another number of dumps\nhint: ")
    deck = write_deck(tmp_path, mode="r", method=2, grid=(12, 14, 13), dumps=DUMPS)
    assert_failed(run_btio(build, 4, deck), "it holds another grid\nhint: ")
    (tmp_path / "out" / "btio.nc").write_bytes(b"no netCDF at all" * 99)
    assert_failed(run_btio(build, 4, deck), r"ncmpi_open on rank 0: .*btio.nc: ")


# All of them


VARIANTS = ["simple", "independent", "epio", "fortran", "pnetcdf", "pnetcdf-nonblocking"]
FILES = {"simple": "btio.simple.out", "independent": "btio.full.out", "epio": "btio.epio.out.0000"}


@pytest.mark.soak
@pytest.mark.parametrize("variant", ["simple", "epio", "pnetcdf"])
def test_verify_names_a_damaged_value(build, tmp_path, variant, request):
    if "pnetcdf" in variant:
        request.getfixturevalue("has_pnetcdf")
    result_of(run_variant(build, 1, tmp_path, variant))
    path = tmp_path / "out" / FILES.get(variant, "btio.nc")
    # The last value: before it all data, behind it a mark in epio.
    flip_byte(path, path.stat().st_size - (12 if variant == "epio" else 8))
    run = run_variant(build, 1, tmp_path, variant, "--verify", mode="r")
    last = DATA_BYTES // 8
    assert_failed(run, rf"dump 2, x 11, y 12, z 13, component 4 .*expected {last}, found .*; 1 of all")
    assert only_json_line(run)["mismatches"] == 1


@pytest.mark.soak
@pytest.mark.parametrize(
    "variant, io",
    [
        ("simple", "ompio"),
        ("independent", "romio321"),
        ("epio", "ompio"),
        ("pnetcdf", "ompio"),
        ("pnetcdf", "romio321"),
        ("pnetcdf-nonblocking", "romio321"),
    ],
)
def test_full_disk_fails_without_verify_and_without_a_hang(build, tmp_path, variant, io, request):
    if "pnetcdf" in variant:
        request.getfixturevalue("has_pnetcdf")
    deck = write_deck(tmp_path)
    run = run_btio(build, 4, deck, "--variant", variant, io=io, before=with_small_disk(tmp_path / "out"))
    assert_failed(run, r"(write|write_at|get_size|ncmpi_put.*|ncmpi_iput.*|stat) on rank \d: .*\nhint: .*full")
    assert '"kernel"' not in run.stdout  # PnetCDF says a word of its own there


@pytest.mark.soak
def test_variant_not_built_reports_it(tmp_path):
    kernels = pathlib.Path(__file__).parents[2] / "kernels"
    words = ["make", "-C", kernels, f"BUILD={tmp_path}", "PNETCDF=no", "HDF5=no", "FORTRAN=no", "CFLAGS=-O0"]
    subprocess.run(words, check=True, capture_output=True)
    run = run_btio(tmp_path, 1, write_deck(tmp_path, method=2))
    assert_refused(run, "pnetcdf was left out: this btio was built without PnetCDF\nhint: .*libpnetcdf-dev")
    run = run_btio(tmp_path, 1, write_deck(tmp_path), "--variant", "fortran")
    assert_refused(run, "fortran was left out: this btio was built without a Fortran compiler\nhint: .*gfortran")
    run = mpiexec(1, tmp_path / "kernels" / "replib", "-w", "file1b", "-b", "h5p")
    assert_refused(run, "h5p was left out: this replib was built without parallel HDF5\nhint: .*libhdf5-openmpi-dev")
    for kernel in ("vpic", "wrf"):
        absent = mpiexec(1, tmp_path / "kernels" / kernel, "--help")
        assert absent.returncode == 2 and "left out of this build" in absent.stderr and "hint: " in absent.stderr


def test_help_names_every_variant(build):
    run = mpiexec(1, build / "kernels" / "btio", "--help")
    assert all(f"      {name} " in run.stdout for name in ["full", *VARIANTS])
