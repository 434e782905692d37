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
