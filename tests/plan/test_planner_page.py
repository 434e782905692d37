"""The page of the planner has the figures that the planner gives."""

import importlib.util
import pathlib

import pytest

PROJECT = pathlib.Path(__file__).resolve().parents[2]


@pytest.mark.xdist_group("calibration")
def test_tables_and_pictures_of_the_page_are_those_of_the_planner():
    found = importlib.util.spec_from_file_location("planner_page", PROJECT / "tools" / "planner_page.py")
    tool = importlib.util.module_from_spec(found)
    found.loader.exec_module(tool)
    assert tool.main(is_check=True) == 0
    page = (PROJECT / "docs" / "explanation" / "planner.md").read_text()
    pictures = {path.name for path in (PROJECT / "docs" / "pictures").glob("planner-*.svg")}
    assert len(pictures) == 3 and all(f"pictures/{name}" in page for name in pictures)
