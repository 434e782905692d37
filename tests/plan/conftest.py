"""Calls of `forebay plan` in the process of the test."""

import pytest

from support.in_process import JobInProcess


@pytest.fixture
def job_class():
    return JobInProcess
