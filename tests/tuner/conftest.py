"""What the tests of the tuner share."""

import pytest

from support.tuner import TunedJob


@pytest.fixture
def tuned(job, build):
    job.in_memory()
    yield TunedJob(job, build)
