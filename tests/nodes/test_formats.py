"""Parallel HDF5 and PnetCDF on several nodes: other nodes read right values, and files equal those of a plain
directory."""

import pytest

from support.btio_deck import write_deck
from support.kernels import result_of
from support.nodes import BUILD
from support.strace import few

BTIO_RANKS = 4  # a square


@pytest.fixture(autouse=True, scope="module")
def needs_libraries(build):
    libraries = (build / "kernels" / "libraries").read_text()
    for name in ("pnetcdf", "hdf5"):
        if name not in libraries.lower():
            pytest.skip(f"the kernels were built without {name}")


def write_then_read(namespace, write, read):
    """Both verify; the ranks that read are one node further than those that wrote."""
    for words, shift in [(write, 0), (read, 1)]:
        result = result_of(namespace.mpirun(namespace.ranks, [*words, "--verify"], shift=shift))
        assert (result["verified"], result["mismatches"]) == (True, 0), words


def assert_same_bytes(namespace, directory, reference):
    """On every node."""
    for node in namespace.nodes:
        namespace.run(node, ["diff", "-r", directory, reference])


@pytest.mark.parametrize("transfer", few("collective", "independent"))
def test_hdf5_datasets(namespace, transfer):
    name = f"vpic-{transfer}.h5"
    words = [BUILD / "kernels" / "vpic", "--steps", 2, "--transfer", transfer]
    ranks, particles = namespace.ranks, 1001
    ours, theirs = namespace.directory / name, namespace.reference / name
    each = [*words, "--particles", particles, "-o", ours]
    write_then_read(namespace, each, [*each, "--read"])
    namespace.mpirun(1, [*words, "--particles", particles * ranks, "-o", theirs])
    for node in namespace.nodes:  # the bytes have times in them
        namespace.run(node, ["h5diff", "--report", ours, theirs])


@pytest.mark.soak
def test_hdf5_chunks(namespace):
    sizes = namespace.reference / "blocks.csv"
    namespace.run(namespace.nodes[0], ["sh", "-c", f"printf '%s\n' {' '.join(LINES[: namespace.ranks])} >{sizes}"])
    words = [BUILD / "kernels" / "replib", "-w", "file1b", "-b", "h5p", "-t", 0, "-s", 3, "-r", 4, "-f", sizes]
    ours, theirs = namespace.directory / "report.h5", namespace.reference / "report.h5"
    write_then_read(namespace, [*words, "-o", ours], [*words, "-o", ours, "--read"])
    namespace.mpirun(namespace.ranks, [*words, "-o", theirs])
    for node in namespace.nodes:
        namespace.run(node, ["h5diff", "--report", ours, theirs])


#: Of each rank.
LINES = ["0,2,24008,0", "1,3,6000,6012,0,0", "2,2,404,0", "3,2,8000,0"]


@pytest.mark.parametrize("variant", few("pnetcdf", "pnetcdf-nonblocking"))
def test_pnetcdf_arrays(namespace, variant):
    words = [BUILD / "kernels" / "btio", "--variant", variant, "--sweeps", 0]
    ours, theirs = namespace.make_directory(variant), namespace.reference / variant
    namespace.run(namespace.nodes[0], ["mkdir", theirs])
    for mode, directory, ranks, shift in [("w", ours, BTIO_RANKS, 0), ("w", theirs, 1, 0), ("r", ours, BTIO_RANKS, 1)]:
        deck = write_deck(namespace.bed.top, mode=mode, dumps=4, out=directory)
        result = result_of(namespace.mpirun(ranks, [*words, "--verify", deck], shift=shift))
        assert (result["verified"], result["mismatches"]) == (True, 0)
    assert_same_bytes(namespace, ours, theirs)


@pytest.mark.soak
def test_pnetcdf_history_and_restart_files(namespace):
    words = [BUILD / "kernels" / "wrf", "--nx", 11, "--ny", 9, "--nz", 3, "--variables", 7]
    ours, theirs = namespace.make_directory("wrf"), namespace.reference / "wrf"
    namespace.run(namespace.nodes[0], ["mkdir", theirs])
    write_then_read(namespace, [*words, "-d", ours, "--prepare"], [*words, "-d", ours])
    result_of(namespace.mpirun(namespace.ranks, [*words, "-d", ours, "--read", "--verify"]))
    for step in (["--prepare"], []):
        result_of(namespace.mpirun(1, [*words, "-d", theirs, *step]))
    assert_same_bytes(namespace, ours, theirs)
