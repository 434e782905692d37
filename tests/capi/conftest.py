"""What the tests of libdatawarp share."""

import pytest

from support.capi import CapiJob


@pytest.fixture
def programs(build):
    """The folder of the C programs, which `make test-programs` fills."""
    return build / "tests" / "capi"


@pytest.fixture
def asking(job, programs):
    return CapiJob(job, programs)
