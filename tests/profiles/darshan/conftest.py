import pathlib
import shutil

import pytest

from mpijob import Mpi

LOGS = pathlib.Path(__file__).parents[1] / "logs"


@pytest.fixture
def logs() -> pathlib.Path:
    """The folder of genuine Darshan logs."""
    return LOGS


@pytest.fixture
def log(tmp_path):
    """A copy of one genuine log, to be damaged."""

    def copy(name: str) -> pathlib.Path:
        return pathlib.Path(shutil.copy(LOGS / f"{name}.darshan", tmp_path))

    return copy


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    return tmp_path_factory.mktemp("darshan")


@pytest.fixture
def openmpi(build, compiled):
    return Mpi("openmpi", build, compiled)
