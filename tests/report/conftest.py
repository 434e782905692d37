"""A browser for the tests of a module, and the command line."""

import os
import pathlib
import subprocess
import sys

import pytest
from support import browser as chromium


@pytest.fixture(scope="module")
def browser():
    with chromium.started() as browser:
        yield browser
        assert browser.complaints == []
        assert [url for url in browser.requests if not url.startswith(("file:", "data:", "about:"))] == []


@pytest.fixture
def report(tmp_path):
    """Runs `forebay-py report ARGUMENT...` in an empty directory, with an empty state directory."""

    def run(*arguments: str | pathlib.Path, **variables: str) -> subprocess.CompletedProcess:
        environment = {**os.environ, "FOREBAY_STATE": str(tmp_path / "state"), "COLUMNS": "80", **variables}
        command = [str(pathlib.Path(sys.executable).parent / "forebay-py"), "report", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=300)

    return run
