"""Replib's HDF5 reports: /data with a row per simulation step, in chunks, and whose the columns are.

A value is its index in /data, from 1.
"""

import array
import re
import subprocess

import pytest

from support.kernels import (
    assert_failed,
    assert_refused,
    both_libraries,
    flip_byte,
    mpiexec,
    result_of,
    with_small_disk,
)

SIM_STEPS, REP_STEPS = 3, 4
# Compartments of a rank: a block holds 3 simulation steps of them, and 0 to 2 floats more.
COLUMNS = [2000, 1001, 33]
LINES = ["0,2,24008,0", "1,3,6000,6012,0,0", "2,2,404,0"]


@pytest.fixture(autouse=True, scope="module")
def needs_hdf5(build, tmp_path_factory):
    output = tmp_path_factory.mktemp("probe") / "report"
    run = mpiexec(1, build / "kernels" / "replib", "-w", "file1b", "-b", "h5p", "-t", 0, "-o", output)
    if run.returncode == 2 and "built without parallel HDF5" in run.stderr:
        pytest.skip("built without HDF5")


def run_h5p(build, directory, *flags, ranks=3, **options):
    (directory / "out").mkdir(exist_ok=True)
    blocks = directory / "blocks.csv"
    blocks.write_text("\n".join(LINES))
    common = ["-o", directory / "out" / "report.h5", "-w", "file1b", "-b", "h5p", "-f", blocks]
    times = ["-t", 0, "-s", SIM_STEPS, "-r", REP_STEPS]
    return mpiexec(ranks, build / "kernels" / "replib", *common, *times, *flags, **options)


def values_of(directory, dataset, kind):
    """A dataset as HDF5's own tool sees it."""
    raw = directory / "raw"
    command = ["h5dump", "-d", dataset, "-b", "LE", "-o", str(raw), str(directory / "out" / "report.h5")]
    subprocess.run(command, check=True, capture_output=True)
    values = array.array(kind)
    values.frombytes(raw.read_bytes())
    return values


def described(directory):
    command = ["h5ls", "-rv", str(directory / "out" / "report.h5")]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.mark.soak
@both_libraries
def test_data_has_a_row_per_simulation_step(build, tmp_path, io):
    result = result_of(run_h5p(build, tmp_path, "--verify", "--sync", io=io))
    row = sum(COLUMNS)
    facts = {
        "variant": "file1b",
        "backend": "h5p",
        "step_bytes": 4 * SIM_STEPS * row,
        "bytes": 4 * SIM_STEPS * REP_STEPS * row,
        "calls": 3 * REP_STEPS,
        "mode": "w",
        "verified": True,
        "mismatches": 0,
    }
    assert {key: result[key] for key in facts} == facts
    count = SIM_STEPS * REP_STEPS * row
    assert values_of(tmp_path, "/data", "f") == array.array("f", range(1, count + 1))
    listing = described(tmp_path)
    assert re.search(rf"/data +Dataset {{{SIM_STEPS * REP_STEPS}/\d+, {row}/\d+}}", listing)
    assert "Chunks:    {6, 2048}" in listing
    command = ["h5dump", "-a", "/magic", "-a", "/version", str(tmp_path / "out" / "report.h5")]
    attributes = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert re.findall(r"\(0\): (.*)", attributes) == ["2682", "0, 1"]


def test_chunk_is_no_larger_than_the_data(build, tmp_path):
    result_of(run_h5p(build, tmp_path, "-r", 1, ranks=1))
    assert f"Chunks:    {{{SIM_STEPS}, {COLUMNS[0]}}}" in described(tmp_path)


@pytest.mark.soak
def test_reporting_step_can_have_many_simulation_steps(build, tmp_path):
    """One column for each rank, and 100,000 rows."""
    flags = ["-w", "file1b", "-b", "h5p", "-t", 0, "-s", 100_000, "-o", tmp_path / "report.h5", "--verify"]
    result = result_of(mpiexec(2, build / "kernels" / "replib", *flags))
    assert (result["step_bytes"], result["verified"]) == (2 * 4 * 100_000, True)


def test_mapping_names_the_owner_of_each_column(build, tmp_path):
    result_of(run_h5p(build, tmp_path))
    gids, first = values_of(tmp_path, "/mapping/gids", "I"), values_of(tmp_path, "/mapping/index_pointer", "Q")
    elements = values_of(tmp_path, "/mapping/element_id", "I")
    assert len(elements) == sum(COLUMNS) and len(gids) == len(first) == list(elements).count(0)
    # A cell begins where its compartments are counted from 0 again.
    assert list(first) == [column for column, element in enumerate(elements) if element == 0]
    ends = [*list(first)[1:], sum(COLUMNS)]
    for begin, end in zip(first, ends):
        assert list(elements[begin:end]) == list(range(end - begin))
    # Cells have 1000 to 1999 compartments, the last one of a rank what remains.
    starts = {0, COLUMNS[0], COLUMNS[0] + COLUMNS[1]}
    assert starts <= set(first)
    assert all(1000 <= end - begin < 2000 for begin, end in zip(first, ends) if end not in {*starts, ends[-1]})
    ranks = [sum(begin >= start for start in sorted(starts)) for begin in first]
    assert [gid // 100_000 for gid in gids] == ranks
    assert all(gid % 100_000 >= 1 for gid in gids) and len(set(gids)) == len(gids)
    time = values_of(tmp_path, "/mapping/time", "d")
    assert list(time) == pytest.approx([0, SIM_STEPS * REP_STEPS * 0.1, 0.1])


def test_damage_is_named(build, tmp_path):
    result_of(run_h5p(build, tmp_path))
    assert result_of(run_h5p(build, tmp_path, "--read", "--verify"))["calls"] == 3 * REP_STEPS
    path, row = tmp_path / "out" / "report.h5", sum(COLUMNS)
    index = 7 * row + 2500  # simulation step 7 is in reporting step 2; column 2500 is of rank 1
    place = path.read_bytes().find(array.array("f", range(index + 1, index + 100)).tobytes())
    flip_byte(path, place)
    run = run_h5p(build, tmp_path, "--read", "--verify")
    assert_failed(run, rf"step 2, byte {4 * index}, of rank 1 .*expected {index + 1}, found .*; 1 of all")
    flip_byte(path, place)

    elements = array.array("I", values_of(tmp_path, "/mapping/element_id", "I"))
    flip_byte(path, path.read_bytes().find(elements.tobytes()) + 4 * 2040)
    run = run_h5p(build, tmp_path, "--read", "--verify")
    assert_failed(run, r"H5Dread on rank 1: .*wrong value at 2040 of /mapping/element_id")


@pytest.mark.soak
def test_file_of_another_run_is_refused(build, tmp_path):
    result_of(run_h5p(build, tmp_path))
    run = run_h5p(build, tmp_path, "--read", "-r", REP_STEPS + 1)
    assert_failed(run, r"H5Dopen on rank 0: .*/data is 12 x 3034, 15 x 3034 expected\nhint: ")
    assert_failed(run_h5p(build, tmp_path, "--read", ranks=2), r"12 x 3034, 12 x 3001 expected\nhint: ")
    (tmp_path / "out" / "report.h5").write_bytes(b"no HDF5 at all" * 99)
    assert_failed(run_h5p(build, tmp_path, "--read"), r"H5Fopen on rank 0: .*report.h5: ")


def test_block_without_a_simulation_step_is_refused(build, tmp_path):
    assert_refused(run_h5p(build, tmp_path, "-s", 102), "a rank has nothing to write")


@pytest.mark.soak
@both_libraries
@pytest.mark.parametrize("size", ["40k", "120k"])
def test_full_disk_fails_without_verify_and_without_a_hang(build, tmp_path, io, size):
    """In 40k not even the header and the chunks fit, which are made when the file is opened."""
    (tmp_path / "out").mkdir()
    run = run_h5p(build, tmp_path, io=io, before=with_small_disk(tmp_path / "out", size))
    assert run.returncode == 1
    assert re.search(r"replib: error: (H5\w+|MPI_File_get_size) on rank \d: .*\nhint: .*full", run.stderr), run.stderr
    assert '"kernel"' not in run.stdout


def test_missing_directory_fails_with_the_path(build, tmp_path):
    run = run_h5p(build, tmp_path, "-o", tmp_path / "nowhere" / "x")
    assert_failed(run, r"H5Fcreate on rank 0: .*nowhere/x: .*\nhint: ")
