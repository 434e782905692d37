"""The files of WRF: their form, the values in them, and in how many calls they are moved.

A value is its index from 1; wrfinput is file 0, wrfout after step s is file 2s, wrfrst file 2s + 1.
"""

import array
import re

import pytest

from support.kernels import (
    assert_failed,
    assert_refused,
    both_libraries,
    errors_of,
    flip_byte,
    mpiexec,
    only_json_line,
    result_of,
    with_small_disk,
)
from support.netcdf import FLOAT, Header

NX, NY, NZ, VARIABLES = 11, 9, 3, 7
SIZE = ["--nx", NX, "--ny", NY, "--nz", NZ, "--variables", VARIABLES]
VALUES = sum(NX * NY * (NZ if variable % 5 < 2 else 1) for variable in range(VARIABLES))
# 5 fields with levels and one without, 4 sides with values and tendencies, 5 rows deep
BOUNDARY_READS = 8 * 5 * (5 * NZ + 1)
BOUNDARY_VALUES = 4 * 5 * (5 * NZ + 1) * (NX + NY)
OUTPUTS = {
    "wrfout_d01_2000-01-01_02_00_00": 4,
    "wrfout_d01_2000-01-01_04_00_00": 8,
    "wrfrst_d01_2000-01-01_04_00_00": 9,
}


@pytest.fixture(autouse=True, scope="module")
def needs_pnetcdf(build):
    run = mpiexec(1, build / "kernels" / "wrf", "--help")
    if run.returncode == 2 and "left out of this build" in run.stderr:
        pytest.skip("built without PnetCDF")


def run_wrf(build, ranks, directory, *flags, **options):
    return mpiexec(ranks, build / "kernels" / "wrf", "-d", directory, *SIZE, *flags, **options)


def prepared(build, directory, *flags):
    result_of(run_wrf(build, 1, directory, "--prepare", *flags))
    return directory


def assert_state(path, number):
    """CDF-2, one record, every variable with its values in the order of the grid."""
    header, data = Header(path), path.read_bytes()
    assert (header.version, header.records) == (2, 1)
    assert header.dimensions == {"Time": 0, "DateStrLen": 19, "west_east": NX, "south_north": NY, "bottom_top": NZ}
    assert len(header.variables) == 1 + VARIABLES
    names = list(header.variables)
    assert names[:4] == ["Times", "VAR3D_0000", "VAR3D_0001", "VAR2D_0002"]
    for variable, name in enumerate(names[1:]):
        found, levels = header.variables[name], ["bottom_top"] if variable % 5 < 2 else []
        assert (found["type"], found["shape"]) == (FLOAT, ["Time", *levels, "south_north", "west_east"])
        count = NX * NY * (NZ if levels else 1)
        first = (number * VARIABLES + variable) * NX * NY * NZ + 1
        values = array.array("f", data[found["begin"] : found["begin"] + 4 * count])
        values.byteswap()
        assert values == array.array("f", range(first, first + count)), name
    assert len(data) == found["begin"] + 4 * count
    date = data[header.variables["Times"]["begin"] :][:19].decode()
    assert path.name.startswith("wrfinput") or path.name.endswith(date.replace(":", "_"))


@pytest.mark.soak
@pytest.mark.parametrize("ranks, io", [(1, "romio321"), (4, "ompio"), (4, "romio321")])
def test_run_reads_and_writes_the_files_of_wrf(build, tmp_path, ranks, io):
    made = result_of(run_wrf(build, ranks, tmp_path, "--prepare", "--verify", io=io))
    assert (made["variant"], made["files"], made["verified"]) == ("prepare", 2, True)
    assert made["bytes"] == 4 * (VALUES + BOUNDARY_VALUES)
    assert_state(tmp_path / "wrfinput_d01", 0)

    result = result_of(run_wrf(build, ranks, tmp_path, "--verify", "--sync", io=io))
    facts = {
        "kernel": "wrf",
        "variant": "run",
        "ranks": ranks,
        "grid": [NX, NY, NZ],
        "variables": VARIABLES,
        "steps": 4,
        "files": 5,
        "calls": ranks * (4 * VARIABLES + BOUNDARY_READS),
        "mode": "w",
        "verified": True,
        "mismatches": 0,
    }
    assert {key: result[key] for key in facts} == facts
    assert result["read_s"] > 0 and result["write_s"] > 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["wrfbdy_d01", "wrfinput_d01", *sorted(OUTPUTS)]
    for name, number in OUTPUTS.items():
        assert_state(tmp_path / name, number)


@pytest.mark.soak
def test_boundary_file_has_four_sides_of_six_fields_and_their_tendencies(build, tmp_path):
    prepared(build, tmp_path, "--steps", 5)  # a record for steps 0 to 3, one for step 4
    header = Header(tmp_path / "wrfbdy_d01")
    assert (header.version, header.records, header.dimensions["bdy_width"]) == (2, 2, 5)
    fields = ["U", "V", "T", "PH", "QVAPOR", "MU"]
    sides = ["BXS", "BXE", "BYS", "BYE", "BTXS", "BTXE", "BTYS", "BTYE"]
    assert list(header.variables)[1:] == [f"{field}_{side}" for field in fields for side in sides]
    assert header.variables["U_BXS"]["shape"] == ["Time", "bdy_width", "bottom_top", "south_north"]
    assert header.variables["MU_BTYE"]["shape"] == ["Time", "bdy_width", "west_east"]
    result = result_of(run_wrf(build, 4, tmp_path, "--steps", 5, "--verify"))
    assert result["calls"] == 4 * (4 * VARIABLES + 2 * BOUNDARY_READS)


def test_intervals_select_the_files_written(build, tmp_path):
    prepared(build, tmp_path)
    flags = ["--steps", 3, "--history-interval", 1, "--restart-interval", 0, "--time", 20]
    result = result_of(run_wrf(build, 2, tmp_path, *flags))
    assert len(list(tmp_path.glob("wrfout_d01_*"))) == 3 and not list(tmp_path.glob("wrfrst_d01_*"))
    assert result["compute_s"] >= 0.06


def test_damage_is_found_in_each_kind_of_file(build, tmp_path):
    prepared(build, tmp_path)
    result_of(run_wrf(build, 4, tmp_path))
    assert result_of(run_wrf(build, 3, tmp_path, "--read", "--verify"))["mode"] == "r"

    path = tmp_path / "wrfout_d01_2000-01-01_04_00_00"
    begin = Header(path).variables["VAR3D_0001"]["begin"]
    flip_byte(path, begin + 4 * ((2 * NY + 5) * NX + 7))
    run = run_wrf(build, 4, tmp_path, "--read", "--verify")
    assert_failed(run, r"04_00_00: wrong value in VAR3D_0001, level 2, south_north 5, west_east 7 .*; 1 of its values")
    assert (only_json_line(run)["verified"], only_json_line(run)["mismatches"]) == (False, 1)

    begin = Header(tmp_path / "wrfbdy_d01").variables["T_BTYS"]["begin"]
    flip_byte(tmp_path / "wrfbdy_d01", begin + 4 * ((3 * NZ + 1) * NX + 2))
    run = run_wrf(build, 4, tmp_path, "--verify")
    # Both patches along that stretch of the side read it.
    assert_failed(run, r"wrfbdy_d01: wrong value in T_BTYS, record 0, row 3, level 1, point 2 .*; 2 of its values")

    flip_byte(tmp_path / "wrfinput_d01", (tmp_path / "wrfinput_d01").stat().st_size - 4)
    run = run_wrf(build, 4, tmp_path, "--verify")
    assert run.returncode == 1 and len(errors_of(run)) == 2  # one file each
    assert re.search(
        rf"wrfinput_d01: wrong value in VAR3D_0006, level 2, south_north {NY - 1}, west_east {NX - 1} ", run.stderr
    )


def test_unprepared_input_is_reported_as_missing(build, tmp_path):
    assert_failed(run_wrf(build, 2, tmp_path), r"ncmpi_open on rank 0: .*wrfinput_d01: .*\nhint: wrf --prepare")
    prepared(build, tmp_path)
    run = run_wrf(build, 2, tmp_path, "--variables", VARIABLES + 1)
    assert_failed(run, r"ncmpi_get_vara_float_all on rank 0: .*wrfinput_d01: .*\nhint: was it made with the same")


@pytest.mark.soak
def test_files_of_another_grid_are_refused(build, tmp_path):
    """A smaller grid lies within the file: all calls would succeed, and read what stands elsewhere."""
    prepared(build, tmp_path)
    result_of(run_wrf(build, 4, tmp_path))
    run = run_wrf(build, 4, tmp_path, "--nx", NX - 1)
    assert_failed(run, rf"wrfinput_d01: west_east is {NX}, {NX - 1} expected\nhint: .*--nx")
    run = run_wrf(build, 4, tmp_path, "--nz", NZ + 1, "--read")
    assert_failed(run, rf"wrfout_d01_.*: bottom_top is {NZ}, {NZ + 1} expected\nhint: .*--nz")


@pytest.mark.parametrize("name", ["wrfinput_d01", "wrfbdy_d01"])
def test_truncated_file_is_refused(build, tmp_path, name):
    prepared(build, tmp_path)
    size = (tmp_path / name).stat().st_size
    with open(tmp_path / name, "r+b") as file:
        file.truncate(size - 4)
    run = run_wrf(build, 4, tmp_path)
    assert_failed(run, rf"stat on rank 0: .*{name}: the file holds {size - 4} bytes, {size} expected\nhint: ")


@pytest.mark.soak
@pytest.mark.parametrize(
    "flags, pattern",
    [
        (["--steps", "70126560"], "--steps 70126560: hours beyond the year 9999\nhint: at most 70126559"),
        (["--nx", "0"], "--nx needs a whole number, 1 or more, not '0'"),
        (["--ny", "1"], "2 ranks are 1 patches .* times 2 .*\nhint: use fewer ranks"),
        (["--nx", "99999", "--ny", "99999"], "a 3-D variable is larger than 2 GiB.*\nhint: use a smaller grid"),
        (["--prepare", "--read"], "--prepare and --read do not go together"),
        (["-d", "x" * 4001], "--directory is longer than 4000 bytes"),
    ],
)
def test_bad_option_is_refused(build, tmp_path, flags, pattern):
    assert_refused(run_wrf(build, 2, tmp_path, *flags), pattern)


@both_libraries
def test_full_disk_fails_without_verify_and_without_a_hang(build, tmp_path, io):
    (tmp_path / "out").mkdir()
    flags = ["--prepare", "--nx", 64, "--ny", 64, "--nz", 16]
    run = run_wrf(build, 4, tmp_path / "out", *flags, io=io, before=with_small_disk(tmp_path / "out"))
    assert_failed(run, r"(ncmpi_put_vara_float_all|stat) on rank \d: .*wrfinput_d01.*\nhint: .*full")
    assert '"kernel"' not in run.stdout
