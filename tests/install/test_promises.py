"""docs/development/promises.md names a test for each promise: each of these tests and files exists."""

import pathlib
import re

PROJECT = pathlib.Path(__file__).resolve().parents[2]
PROMISES = (PROJECT / "docs" / "development" / "promises.md").read_text()


def test_every_test_that_a_promise_names_exists():
    sources = [*PROJECT.glob("tests/**/*.py"), *PROJECT.glob("crates/**/*.rs")]
    tests = re.findall(r"\b(?:def|fn) (?:test_)?(\w+)\(", "\n".join(path.read_text() for path in sources))
    named = re.findall(r"`(?:[A-Z]/)?(?:test_)?(\w+)\.\.\.`", PROMISES)
    assert len(named) > 100
    assert [name for name in named if not any(test.startswith(name) for test in tests)] == []


def test_every_file_that_a_promise_names_exists():
    named = re.findall(r"`((?:T|crates)/[\w./-]+)`", PROMISES)
    assert len(named) > 50
    assert [name for name in named if not (PROJECT / re.sub("^T/", "tests/", name)).exists()] == []
