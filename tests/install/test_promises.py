"""docs/development/promises.md has a number and tests for each promise; these tests and files exist."""

import ast
import pathlib
import re

PROJECT = pathlib.Path(__file__).resolve().parents[2]
PROMISES = (PROJECT / "docs" / "development" / "promises.md").read_text()
ROWS = re.findall(r"^\| ([A-Z]+-\d+) \| (.+?) \| (.*) \|$", PROMISES, re.MULTILINE)
NUMBER = re.compile(r"\b([A-Z]{3,}-\d+)\b")


def test_numbers_of_an_area_follow_each_other():
    counts: dict[str, int] = {}
    for number, _, _ in ROWS:
        area, _, position = number.partition("-")
        counts[area] = counts.get(area, 0) + 1
        assert int(position) == counts[area], number
    assert len(ROWS) > 150 and len(ROWS) == len(re.findall(r"^\| [A-Z]+-", PROMISES, re.MULTILINE))


def test_every_promise_names_a_test():
    assert [number for number, promise, tests in ROWS if not promise or "`" not in tests] == []


def test_every_test_that_a_promise_names_exists():
    sources = [*PROJECT.glob("tests/**/*.py"), *PROJECT.glob("crates/**/*.rs")]
    tests = re.findall(r"\b(?:def|fn) (?:test_)?(\w+)\(", "\n".join(path.read_text() for path in sources))
    named = re.findall(r"`(?:test_)?(\w+)\.\.\.`", "\n".join(tests_of for _, _, tests_of in ROWS))
    assert len(named) > 100
    assert [name for name in named if not any(test.startswith(name) for test in tests)] == []


def test_every_file_that_a_promise_names_exists():
    named = re.findall(r"`((?:tests|crates)/[\w./-]+)`", PROMISES)
    assert len(named) > 100
    assert [name for name in named if not (PROJECT / name).exists()] == []


def test_every_number_that_a_page_names_exists():
    areas = {number.partition("-")[0] for number, _, _ in ROWS}
    known = {number for number, _, _ in ROWS}
    for page in PROJECT.glob("docs/**/*.md"):
        named = {number for number in NUMBER.findall(page.read_text()) if number.partition("-")[0] in areas}
        assert named - known == set(), page


def left_out(file: pathlib.Path) -> dict[str, bool]:
    """The tests of a file, and whether `make test` leaves them out."""
    functions = [one for one in ast.walk(ast.parse(file.read_text())) if isinstance(one, ast.FunctionDef)]
    marks = {one.name: [ast.unparse(mark) for mark in one.decorator_list] for one in functions}
    return {name: "pytest.mark.soak" in found for name, found in marks.items() if name.startswith("test_")}


def test_make_test_runs_a_test_of_each_promise():
    tests = {str(file.relative_to(PROJECT)): left_out(file) for file in PROJECT.glob("tests/**/test_*.py")}
    assert any(is_left_out for of_file in tests.values() for is_left_out in of_file.values())
    with_python = 0
    for number, _, tests_of in ROWS:
        # A file that is followed by no names stands for all its tests.
        whole = re.findall(r"`(tests/[\w/]+\.py)`(?!:)", tests_of)
        named = re.findall(r"`(?:test_)?(\w+)\.\.\.`", tests_of)
        found = [
            is_left_out
            for file, of_file in tests.items()
            for test, is_left_out in of_file.items()
            if file in whole or any(test.removeprefix("test_").startswith(name) for name in named)
        ]
        assert not found or not all(found), f"{number}: make test runs none of its tests"
        with_python += bool(found)
    assert with_python > 150
