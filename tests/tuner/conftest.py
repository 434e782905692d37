"""What the tests of the tuner share."""

import pytest

from support.tuner import LiveJob, MadeUpJob


@pytest.fixture
def real_job(job, build):
    """A real job."""
    job.in_memory()
    return LiveJob(job, build)


@pytest.fixture
def tuned(tmp_path, build, monkeypatch):
    """A made-up job."""
    return MadeUpJob(tmp_path, build, monkeypatch)
