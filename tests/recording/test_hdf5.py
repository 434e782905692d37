"""hdf5_alignment in MPICH_MPIIO_HINTS: where HDF5 puts its datasets, and what is said when it does not."""

import ctypes.util
import pathlib
import re
import shutil
import subprocess

import pytest

from support.mpi import PROGRAMS, only_file, said

MIB = 1 << 20
PARTICLES = 70_000  # of each of two ranks: 546 KiB for a dataset
SERIAL_LIBRARY = "libhdf5_serial.so.103"


@pytest.fixture
def vpic(build):
    program = build / "kernels" / "vpic"
    run = subprocess.run([program, "--help"], capture_output=True, text=True)
    if "left out of this build" in run.stderr:
        pytest.skip("the kernel vpic was built without HDF5")
    return program


@pytest.fixture(autouse=True, scope="module")
def needs_h5ls():
    if shutil.which("h5ls") is None:
        pytest.skip("h5ls is missing. Debian: hdf5-tools")


def addresses(path):
    """Of all datasets that have data, as HDF5's own tool tells them."""
    run = subprocess.run(["h5ls", "-rva", path], capture_output=True, text=True, check=True)
    return [int(number) for number in re.findall(r"Address:\s+(\d+)", run.stdout)]


def written(mpi, vpic, path, hints, *flags, **environment):
    """The report on a file that vpic has written and found right, and the run."""
    words = [vpic, "--particles", PARTICLES, "--steps", 2, "--verify", *flags, "-o", path]
    report, run = mpi.report(2, *words, MPICH_MPIIO_HINTS=hints, **environment)
    assert '"verified":true,"mismatches":0' in run.stdout
    return only_file(report), run


def unaligned_addresses(vpic, openmpi, path):
    """Without the library."""
    run = openmpi.run(2, vpic, "--particles", PARTICLES, "--steps", 2, "-o", path, preload="")
    assert run.returncode == 0, run.stderr
    return addresses(path)


@pytest.mark.parametrize("more", ["", ":cb_nodes=1:romio_cb_write=enable"])
@pytest.mark.parametrize("transfer", ["collective", "independent"])
def test_datasets_are_at_multiples_of_the_alignment(openmpi, vpic, tmp_path, transfer, more):
    path = tmp_path / "aligned-vpic.h5"
    file, run = written(openmpi, vpic, path, f"*.h5:hdf5_alignment={MIB}{more}", "--transfer", transfer)
    assert len(addresses(path)) == 16
    assert {address % MIB for address in addresses(path)} == {0}
    assert file["hints"]["environment"]["hdf5_alignment"] == str(MIB)
    assert file["hints"]["without_effect"] == []
    assert "had no effect" not in run.stderr


def test_alignment_alone_does_not_change_mpi_io(openmpi, vpic, tmp_path):
    file, run = written(openmpi, vpic, tmp_path / "alone-vpic.h5", f"*:hdf5_alignment={MIB}")
    assert file["opened_by"] == "mca_fs_ufs.so"
    assert said(run) == []


@pytest.mark.soak
@pytest.mark.parametrize("hints", ["*:cb_nodes=1", f"other:hdf5_alignment={MIB}", f"*:hdf5_alignment_threshold={MIB}"])
def test_layout_without_the_key_equals_that_without_the_library(openmpi, vpic, tmp_path, hints):
    before = unaligned_addresses(vpic, openmpi, tmp_path / "before-vpic.h5")
    written(openmpi, vpic, tmp_path / "after-vpic.h5", hints)
    assert addresses(tmp_path / "after-vpic.h5") == before
    assert {address % MIB for address in before} != {0}


@pytest.mark.soak
@pytest.mark.parametrize("threshold, is_aligned", [(2 * PARTICLES * 4, True), (2 * PARTICLES * 4 + 1, False)])
def test_data_below_the_threshold_are_not_aligned(openmpi, vpic, tmp_path, threshold, is_aligned):
    path = tmp_path / "threshold-vpic.h5"
    written(openmpi, vpic, path, f"*:hdf5_alignment={MIB}:hdf5_alignment_threshold={threshold}")
    assert ({address % MIB for address in addresses(path)} == {0}) is is_aligned


@pytest.mark.soak
def test_threshold_is_half_of_the_alignment_by_default(openmpi, vpic, tmp_path):
    path = tmp_path / "half-vpic.h5"
    dataset_bytes = 2 * PARTICLES * 4
    for alignment, is_aligned in [(2 * dataset_bytes, True), (2 * dataset_bytes + 2, False)]:
        written(openmpi, vpic, path, f"*:hdf5_alignment={alignment}")
        assert ({address % alignment for address in addresses(path)} == {0}) is is_aligned


@pytest.mark.soak
def test_file_that_is_only_read_is_named(openmpi, vpic, tmp_path):
    path = tmp_path / "read-vpic.h5"
    unaligned_addresses(vpic, openmpi, path)
    file, run = written(openmpi, vpic, path, f"*:hdf5_alignment={MIB}", "--read")
    assert [(effect["key"], effect["asked"]) for effect in file["hints"]["without_effect"]] == [
        ("hdf5_alignment", str(MIB))
    ]


def test_program_without_hdf5_is_named(mpi, tmp_path):
    hints = f"*:hdf5_alignment={MIB}:hdf5_alignment_threshold=4096:romio_cb_write=enable"
    report, run = mpi.report(1, mpi.observed(), "own", tmp_path / "plain", MPICH_MPIIO_HINTS=hints)
    seen = "no H5Fcreate of HDF5 1.10 or later made this file with an alignment"
    assert only_file(report)["hints"]["without_effect"] == [
        {"key": "hdf5_alignment", "asked": str(MIB), "seen": seen},
        {"key": "hdf5_alignment_threshold", "asked": "4096", "seen": seen},
    ]
    assert sum("hint hdf5_alignment" in line for line in said(run)) == 2


@pytest.mark.soak
@pytest.mark.parametrize("value", ["0", "-4096", "1M", "99999999999999999999"])
def test_alignment_that_is_no_number_of_bytes_is_refused(mpi, tmp_path, value):
    hints = f"*:hdf5_alignment={value}:cb_nodes=1"
    report, run = mpi.report(1, mpi.observed(), "own", tmp_path / "plain", MPICH_MPIIO_HINTS=hints)
    assert sum("'hdf5_alignment' is not a number of bytes above 0" in line for line in said(run)) == 1
    assert only_file(report)["hints"]["environment"] == {"cb_nodes": "1"}


class Serial:
    """Programs with MPI, and with the HDF5 that knows nothing of it."""

    def __init__(self, mpi):
        self.mpi = mpi
        flags = ["-I/usr/include/hdf5/openmpi", f"-l:{SERIAL_LIBRARY}"]
        make, main = PROGRAMS / "hdf5_make.c", PROGRAMS / "hdf5_main.c"
        self.linked = mpi.compiled("hdf5_linked", "-rdynamic", main, make, *flags)
        self.alone = mpi.compiled("hdf5_alone", main)
        self.library = mpi.compiled("hdf5_library", "-shared", "-fPIC", make, *flags)
        self.old = mpi.compiled("hdf5_old", "-shared", "-fPIC", PROGRAMS / "hdf5_old.c")

    def address(self, *words, **environment):
        """Of the one dataset; and what the library said."""
        run = self.mpi.run(1, *words, **environment)
        assert run.returncode == 0, run.stderr
        (address,) = addresses(words[1])
        return address, said(run)


@pytest.fixture
def serial(mpi):
    if ctypes.util.find_library("hdf5_serial") is None and not list(
        pathlib.Path("/usr/lib").glob(f"*/{SERIAL_LIBRARY}")
    ):
        pytest.skip(f"{SERIAL_LIBRARY} is missing. Debian: libhdf5-103-1")
    if not pathlib.Path("/usr/include/hdf5/openmpi/hdf5.h").exists():
        pytest.skip("HDF5's headers are missing. Debian: libhdf5-openmpi-dev")
    return Serial(mpi)


@pytest.mark.soak
@pytest.mark.parametrize("privately", [False, True])
def test_hdf5_without_mpi_io_is_aligned(serial, tmp_path, privately):
    words = (
        [serial.alone, tmp_path / "serial.h5", serial.library] if privately else [serial.linked, tmp_path / "serial.h5"]
    )
    plain, _ = serial.address(*words, FOREBAY_MPI_STATS=tmp_path / "stats.json")
    aligned, messages = serial.address(*words, MPICH_MPIIO_HINTS="*:hdf5_alignment=4096")
    assert plain % 4096 != 0 and aligned % 4096 == 0
    assert messages == []


@pytest.mark.soak
def test_hdf5_before_1_10_is_unchanged_with_one_message(serial, tmp_path):
    words = [serial.linked, tmp_path / "old.h5"]
    environment = {"MPICH_MPIIO_HINTS": "*:hdf5_alignment=4096", "preload": f"{serial.mpi.library}:{serial.old}"}
    address, messages = serial.address(*words, **environment)
    assert address % 4096 != 0
    assert messages == ["forebay: hdf5_alignment is left alone: it needs HDF5 1.10 or later"]
