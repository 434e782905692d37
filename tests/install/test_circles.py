"""`make check` refuses import circles of more than three files, and imports of private names."""

import pathlib
import subprocess
import sys

import pytest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools" / "circles.py"
CIRCLE = {
    "lib.rs": "mod a; mod b; mod c; mod d;\npub use b::Two;",
    "a.rs": "use crate::Two;",  # by a re-export
    "b.rs": "use super::c::{self, Three as Renamed};\npub struct Two;",
    "c.rs": "pub fn three() { crate::d::four() }",  # by a path
    "d.rs": "use crate::{b::Two, a::One};",
}


@pytest.fixture
def check(tmp_path):
    """Runs the tool on a crate of these files."""

    def run(files: dict[str, str]) -> subprocess.CompletedProcess:
        source = tmp_path / "crates" / "sample" / "src"
        source.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (source / name).write_text(text)
        return subprocess.run([sys.executable, TOOL, tmp_path], capture_output=True, text=True)

    return run


def test_circle_of_four_files_is_refused(check):
    ended = check(CIRCLE)
    names = ", ".join(f"crates/sample/src/{name}.rs" for name in "abcd")
    assert (ended.returncode, f"error: 4 files import each other in a circle: {names}\n" in ended.stderr) == (1, True)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("a.rs", "// use crate::Two;"),
        ("a.rs", '#[cfg(test)]\nmod tests { use crate::Two; const X: &str = "}"; }'),
        ("b.rs", 'pub struct Two; const TEXT: &str = "crate::c::Three";'),
        ("d.rs", "use crate::b::Two;"),  # three are left
    ],
)
def test_cut_circle_is_accepted(check, file, text):
    assert check(CIRCLE | {file: text}).returncode == 0


@pytest.mark.parametrize(("name", "status"), [("_private", 1), ("public", 0)])
def test_private_name_of_another_module_is_refused(tmp_path, name, status):
    package = tmp_path / "python" / "src" / "forebay"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "a.py").write_text(f"{name} = 1\n")
    (package / "b.py").write_text(f"from forebay.a import {name}\n")
    ended = subprocess.run([sys.executable, TOOL, tmp_path], capture_output=True, text=True)
    error = f"error: a private name of another module is imported: forebay/b.py:1: {name}\n"
    assert (ended.returncode, ended.stderr) == (status, error if status else "")
