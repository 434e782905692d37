"""A benchmark with directories that any user can reach."""

import os
import pathlib
import tempfile

import pytest

from support.io500 import Bench


@pytest.fixture
def bench(build):
    with tempfile.TemporaryDirectory(prefix="forebay-test-") as scratch:
        os.chmod(scratch, 0o711)
        yield Bench(build / "bin" / "forebay", pathlib.Path(scratch))
