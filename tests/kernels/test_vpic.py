"""VPIC-IO: eight datasets per step in one HDF5 file, each in one piece, in the order of the particles.

A value is its index over the whole run, from 1: (step * 8 + dataset) * particles + particle.
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
    only_json_line,
    result_of,
    with_small_disk,
)

NAMES = ["x", "y", "z", "id1", "id2", "px", "py", "pz"]
PARTICLES = 1001


@pytest.fixture(autouse=True, scope="module")
def needs_hdf5(build):
    run = mpiexec(1, build / "kernels" / "vpic", "--help")
    if run.returncode == 2 and "left out of this build" in run.stderr:
        pytest.skip("built without HDF5")


def run_vpic(build, ranks, directory, *flags, **options):
    (directory / "out").mkdir(exist_ok=True)
    size = ["--particles", PARTICLES, "--steps", 2]
    return mpiexec(ranks, build / "kernels" / "vpic", "-o", directory / "out" / "vpic.h5", *size, *flags, **options)


def dataset_bytes(ranks, step, dataset):
    total = PARTICLES * ranks
    first = (step * 8 + dataset) * total + 1
    return array.array("i" if NAMES[dataset].startswith("id") else "f", range(first, first + total)).tobytes()


@pytest.mark.soak
@pytest.mark.parametrize(
    "ranks, transfer, io",
    [
        (1, "collective", "ompio"),
        (4, "collective", "ompio"),
        (4, "collective", "romio321"),
        (4, "independent", "ompio"),
    ],
)
def test_every_dataset_is_contiguous_in_the_file(build, tmp_path, ranks, transfer, io):
    result = result_of(run_vpic(build, ranks, tmp_path, "--transfer", transfer, "--verify", "--sync", io=io))
    facts = {
        "kernel": "vpic",
        "variant": transfer,
        "ranks": ranks,
        "particles": PARTICLES,
        "steps": 2,
        "bytes": 2 * 32 * PARTICLES * ranks,
        "calls": 2 * 8 * ranks,
        "mode": "w",
        "verified": True,
        "mismatches": 0,
    }
    assert {key: result[key] for key in facts} == facts
    data = (tmp_path / "out" / "vpic.h5").read_bytes()
    assert data.startswith(b"\x89HDF\r\n\x1a\n")
    places = [data.find(dataset_bytes(ranks, step, dataset)) for step in range(2) for dataset in range(8)]
    assert all(place > 0 for place in places) and len(set(places)) == 16
    assert data.count(b"Step#0") == data.count(b"Step#1") == 1


def test_h5ls_sees_eight_datasets_in_each_step(build, tmp_path):
    result_of(run_vpic(build, 4, tmp_path))
    command = ["h5ls", "-r", str(tmp_path / "out" / "vpic.h5")]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for step in range(2):
        for name in NAMES:
            assert f"/Step#{step}/{name}" in listed and f"{{{4 * PARTICLES}}}" in listed


@pytest.mark.soak
def test_damage_is_named_when_other_ranks_read(build, tmp_path, io="romio321"):
    result_of(run_vpic(build, 4, tmp_path, io=io))
    run = run_vpic(build, 2, tmp_path, "--particles", 2 * PARTICLES, "--read", "--verify", io=io)
    assert (result_of(run)["mode"], result_of(run)["verified"]) == ("r", True)
    path = tmp_path / "out" / "vpic.h5"
    place = path.read_bytes().find(dataset_bytes(4, 1, 4))
    flip_byte(path, place + 4 * 2500)
    run = run_vpic(build, 4, tmp_path, "--read", "--verify", io=io)
    assert_failed(run, r"wrong value at step 1, dataset id2, particle 2500 .*; 1 of all")
    assert (only_json_line(run)["verified"], only_json_line(run)["mismatches"]) == (False, 1)


@pytest.mark.soak
def test_file_of_another_run_is_refused(build, tmp_path):
    result_of(run_vpic(build, 4, tmp_path))
    run = run_vpic(build, 2, tmp_path, "--read")
    assert_failed(run, r"H5Dread on rank 0: .*vpic.h5: a dataset has 4004 values, 2002 expected\nhint: ")
    assert_failed(run_vpic(build, 4, tmp_path, "--steps", 3, "--read"), r"H5Dread on rank 0: .*\nhint: .*other options")
    (tmp_path / "out" / "vpic.h5").write_bytes(b"no HDF5 at all" * 99)
    assert_failed(run_vpic(build, 2, tmp_path, "--read"), r"H5Fopen on rank 0: .*vpic.h5: ")


@pytest.mark.parametrize(
    "flags, pattern",
    [
        (["--particles", "600000000"], "larger than 2 GiB.*\nhint: run on more ranks"),
        (["--transfer", "fast"], "--transfer needs one of collective, independent, not 'fast'"),
    ],
)
def test_bad_option_is_refused(build, tmp_path, flags, pattern):
    assert_refused(run_vpic(build, 2, tmp_path, *flags), pattern)


@pytest.mark.soak
@both_libraries
@pytest.mark.parametrize("transfer", ["collective", "independent"])
def test_full_disk_fails_without_verify_and_without_a_hang(build, tmp_path, transfer, io):
    (tmp_path / "out").mkdir()
    flags = ["--particles", 10_000, "--transfer", transfer]
    run = run_vpic(build, 4, tmp_path, *flags, io=io, before=with_small_disk(tmp_path / "out"))
    # Each rank that meets the error says so: it cannot ask the others.
    assert run.returncode == 1
    assert re.search(r"vpic: error: (H5Dwrite|MPI_File_get_size) on rank \d: .*\nhint: .*full", run.stderr), run.stderr
    assert '"kernel"' not in run.stdout


def test_missing_directory_fails_with_the_path(build, tmp_path):
    run = run_vpic(build, 2, tmp_path, "-o", tmp_path / "nowhere" / "x")
    assert_failed(run, r"H5Fcreate on rank 0: .*nowhere/x: .*\nhint: ")
