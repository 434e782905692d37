"""The check of the prose: what it finds, and what it leaves alone."""

import pathlib
import subprocess
import sys

import pytest

PROSE = pathlib.Path(__file__).resolve().parents[2] / "tools" / "prose.py"


def findings(tmp_path, name: str, text: str) -> list[str]:
    """The words that it finds in a file."""
    file = tmp_path / name
    file.write_text(text)
    done = subprocess.run([sys.executable, PROSE, file], capture_output=True, text=True, timeout=300)
    assert (done.returncode != 0) == bool(done.stdout) and not done.stderr
    return [line.split('"')[1] for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.py", 'print(f"{job} ended well. ")\n'),
        ("a.rs", 'fn a() { say("ended well") }\n'),
        ("a.md", "The job ended well.\n"),
    ],
)
def test_short_literal_is_checked_for_words(tmp_path, name, text):
    assert findings(tmp_path, name, text) == ["ended well"]


def test_option_is_no_prose(tmp_path):
    assert findings(tmp_path, "a.rs", 'fn a() { run(["watch", "--beside-job"]) }\n') == []


def test_literals_and_comments_of_c_are_checked(tmp_path):
    text = """
#include "beside.h"
/* Is made anew, as
 *   anew     in an example
 * each time. */
static const char quote = '"', *ours = "put it "
    "be" "side the record"; // it lies in a file
static int beside = 'x';
"""
    assert findings(tmp_path, "a.c", text) == ["anew", "beside", "lies in"]
