"""What all tests share: the build under test, and a job in a directory of its own."""

import os
import pathlib

import pytest

from job import Job


@pytest.fixture(scope="session")
def build() -> pathlib.Path:
    """The folder that `make build` filled."""
    return pathlib.Path(os.environ["FOREBAY_BUILD"])


@pytest.fixture
def job(build, tmp_path) -> Job:
    return Job(build / "bin" / "forebay", tmp_path)
