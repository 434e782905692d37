"""What the tests of libdatawarp share."""

import pytest

from asking import Asking, compiled


@pytest.fixture(scope="session")
def programs(build, tmp_path_factory):
    """A folder with the programs."""
    folder = tmp_path_factory.mktemp("programs")
    for name in ("ask", "checkpoints", "together", "contend", "arguments"):
        compiled(build, folder / name, f"{name}.c", "cc", "-std=c99", "-D_XOPEN_SOURCE=700")
    return folder


@pytest.fixture
def asking(job, programs):
    return Asking(job, programs)
