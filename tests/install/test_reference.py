"""The reference pages are as the program has them."""

import pathlib
import re
import subprocess
import sys

PROJECT = pathlib.Path(__file__).resolve().parents[2]
SETTINGS = PROJECT / "docs" / "reference" / "configuration.md"
VARIABLES = PROJECT / "docs" / "reference" / "environment.md"
SOURCES = ("crates/*/src/**/*.rs", "mpi/**/*.c", "replay/*.c", "python/src/**/*.py")


def test_command_line_page_has_the_help_of_every_command(build):
    words = [sys.executable, PROJECT / "tools" / "reference.py", build / "bin" / "forebay", "--check"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_environment_page_names_every_variable_that_the_sources_read():
    page = set(re.findall(r"FOREBAY_([A-Z0-9_]+)", VARIABLES.read_text()))
    sources = [path.read_text() for pattern in SOURCES for path in PROJECT.glob(pattern)]
    read = {name for source in sources for name in re.findall(r'"FOREBAY_([A-Z0-9_]+)"', source)}
    assert read - page == set()
    settings = set(re.findall(r"variable \| `FOREBAY_([A-Z_]+)`", SETTINGS.read_text()))
    assert {name for name in page - settings if not any(name in source for source in sources)} == set()
    assert settings <= page
