import pathlib
import shutil

import pytest

from support.mpi import Mpi

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


@pytest.fixture
def openmpi(build):
    return Mpi("openmpi", build)
