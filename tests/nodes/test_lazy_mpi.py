"""MPI-IO with lazy I/O on two nodes: what MPI promises holds, and what is not MPI-IO's stays strict."""

import json

import pytest

from support.engines import SMALL, namespace_of
from support.mpi import LAUNCHING, Mpi, PROJECT
from support.node_jobs import node_job
from support.nodes import nodes
from support.strace import EVERY_POINT, few

PROGRAMS = PROJECT / "tests" / "programs" / "nodes"
ROUNDS = 50 if EVERY_POINT else 2
RANKS = 4
#: Whether files of the case are lazy. A file that is open without MPI stays strict, and so does one of a single rank.
CASES = {
    "pages": True,
    "sieving": True,
    "collective": True,
    "unbuffered": True,
    "atomic": True,
    "order": True,
    "barriers": True,
    "reopen": True,
    "posix": True,
    "shared": True,
    "self": False,
    "deferred": True,
    "sizes": True,
}


@pytest.fixture(scope="module")
def two(build):
    with nodes(2, build) as bed, namespace_of(bed, SMALL) as namespace:
        yield namespace


@pytest.fixture(scope="module")
def openmpi(build):
    return Mpi("openmpi", build)


def run(two, openmpi, program, *words, io, ranks=RANKS, **environment):
    """The program with Forebay's library; returns its lines and the files of the report."""
    library = two.bed.copied(openmpi.library)
    report = two.bed.shared / "report.json"
    report.unlink(missing_ok=True)
    environment = {"FOREBAY_MPI_LAZY_IO": 1, "FOREBAY_MPI_STATS": report, "OMPI_MCA_io": io} | environment
    if isinstance(program, str):
        program = openmpi.compiled(program, PROGRAMS / f"{program}.c")
    name = two.bed.copied(program)
    done = two.mpirun(ranks, [name, *words], options=["-x", f"LD_PRELOAD={library}"], **environment)
    files = [file for file in json.loads(report.read_text())["files"] if file["layer"] == "mpiio"]
    return [json.loads(line) for line in done.stdout.splitlines()], files


@pytest.mark.parametrize("io", few("romio321", "ompio"))
def test_mpi_io_keeps_its_promises(two, openmpi, io):
    base = two.directory / f"semantics-{io}"
    told, files = run(two, openmpi, "semantics", base, ROUNDS, *CASES, io=io)
    assert told == [{"case": case, "wrong": 0} for case in CASES]
    assert {file["path"].removeprefix(f"{base}."): file["lazy_opens"] > 0 for file in files} == CASES


@pytest.mark.parametrize("io", few("romio321", "ompio"))
def test_ranks_read_what_another_node_wrote(two, openmpi, io):
    words = [
        two.directory / f"exchange-{io}",
        40 if EVERY_POINT else 15,
        4008,
        3,
        "independent",
        "sieving",
        "collective",
    ]
    told, files = run(two, openmpi, "exchange", *words, io=io)
    assert [line["mismatches"] for line in told] == [0, 0, 0]
    assert all(file["lazy_opens"] == RANKS for file in files)


def test_full_namespace_is_an_error_of_the_program(two, openmpi):
    """With ROMIO: ompio prints errors of its writes, and returns none."""
    base = two.directory / "full"
    told, _ = run(two, openmpi, "semantics", base, 1, "full", io="romio321")
    two.run("n1", ["rm", f"{base}.full"])
    assert told == [{"case": "full", "wrong": 0}]


def test_file_of_hdf5_is_strict(two, openmpi, build):
    """HDF5 fills chunks on one rank and writes them on another, with a barrier in between."""
    if "hdf5" not in (build / "kernels" / "libraries").read_text().lower():
        pytest.skip("the kernels were built without HDF5")
    words = ["--steps", 2, "--particles", 1001, "--verify", "-o", two.directory / "strict.h5"]
    told, files = run(two, openmpi, build / "kernels" / "vpic", *words, io="romio321")
    assert told[0]["mismatches"] == 0
    assert [file["lazy_opens"] for file in files] == [0]


@pytest.mark.soak
@pytest.mark.parametrize("way", few("hint", "variable"))
def test_lazy_io_can_be_turned_off(two, openmpi, way):
    off = {"FOREBAY_MPI_LAZY_IO": 0} if way == "variable" else {"MPICH_MPIIO_HINTS": "*.pages:lazy_io=disable"}
    told, files = run(two, openmpi, "semantics", two.directory / f"off-{way}", 2, "pages", io="romio321", **off)
    assert told == [{"case": "pages", "wrong": 0}]
    assert [file["lazy_opens"] for file in files] == [0]


def test_hint_alone_makes_a_file_lazy_and_is_named_where_it_cannot(two, openmpi):
    hint = {"FOREBAY_MPI_LAZY_IO": 0, "MPICH_MPIIO_HINTS": "*.pages:lazy_io=enable"}
    _, files = run(two, openmpi, "semantics", two.directory / "hint", 2, "pages", io="romio321", **hint)
    assert [file["lazy_opens"] for file in files] == [RANKS]
    _, files = run(two, openmpi, "semantics", two.reference / "hint", 2, "pages", io="romio321", **hint)
    assert [file["lazy_opens"] for file in files] == [0]
    assert [one["key"] for one in files[0]["hints"]["without_effect"]] == ["lazy_io"]


JOB = """
#DW jobdw type=scratch access_mode=striped capacity=64MiB
/usr/bin/mpiexec.openmpi -n 2 {program} $DW_JOB_STRIPED/file 1 pages
"""


@pytest.mark.soak
@pytest.mark.parametrize("option, opens", [((), 2), (("--no-lazy-io",), 0)], ids=["default", "off"])
def test_job_on_several_nodes_is_lazy_unless_told_otherwise(build, openmpi, option, opens):
    with nodes(2, build) as bed:
        program = bed.copied(openmpi.compiled("semantics", PROGRAMS / "semantics.c"))
        job = node_job(bed, JOB.format(program=program), "--engine", "ceph", "--explain", *option)
        done = job.run(**LAUNCHING)
        assert json.loads(done.stdout) == {"case": "pages", "wrong": 0}
        assert ("lazy where the mount offers it" in done.stderr) == (opens > 0), done.stderr
        (step,) = bed.home("ada").glob(".local/state/forebay/profiles/*/step-*.json")
        (file,) = [one for one in json.loads(step.read_text())["files"] if one["layer"] == "mpiio"]
        assert file["lazy_opens"] == opens
