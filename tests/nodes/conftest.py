"""Test beds of some nodes."""

import pytest

from support.nodes import missing


@pytest.fixture(scope="session", autouse=True)
def can_make_nodes():
    why = missing()
    if why:
        pytest.skip(why)
