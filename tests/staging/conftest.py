"""Staging is tested on a disk."""

import pytest


@pytest.fixture
def parent_of_jobs() -> str:
    """A directory that outlives a restart (FHS), so it is not in memory."""
    return "/var/tmp"
