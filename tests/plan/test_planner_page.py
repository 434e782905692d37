"""The page of the planner has the figures that the planner gives."""

import pathlib
import subprocess
import sys

PROJECT = pathlib.Path(__file__).resolve().parents[2]


def test_tables_and_pictures_of_the_page_are_those_of_the_planner():
    words = [sys.executable, PROJECT / "tools" / "planner_page.py", "--check"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    page = (PROJECT / "docs" / "explanation" / "planner.md").read_text()
    pictures = {path.name for path in (PROJECT / "docs" / "pictures").glob("planner-*.svg")}
    assert len(pictures) == 3 and all(f"pictures/{name}" in page for name in pictures)
