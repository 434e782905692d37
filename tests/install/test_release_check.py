"""A release needs one version everywhere, a dated changelog and a clean tree."""

import pathlib
import re
import shutil
import subprocess

import pytest

PROJECT = pathlib.Path(__file__).resolve().parents[2]
FILES = ("Cargo.toml", "python/pyproject.toml", "python/src/forebay/__init__.py", "CITATION.cff", "CHANGELOG.md")


@pytest.fixture
def release(tmp_path):
    """A repository with the files that name the version, ready for a release."""
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PROJECT / name, tmp_path / name)
    version = next(line for line in (PROJECT / "Cargo.toml").read_text().splitlines() if line.startswith("version"))
    version = version.split('"')[1]
    changelog = tmp_path / "CHANGELOG.md"
    changelog.write_text(f"# Changelog\n\n## {version} (2026-11-24)\n\n" + changelog.read_text())
    git(tmp_path, "init", "-q")
    commit(tmp_path)
    return tmp_path


def git(directory, *words):
    own = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *own, *words], cwd=directory, check=True)


def commit(directory):
    git(directory, "add", "--all")
    git(directory, "commit", "-q", "-m", "x")


def check(directory):
    return subprocess.run([PROJECT / "tools" / "release_check.sh"], cwd=directory, capture_output=True, text=True)


def test_release_with_one_version_and_a_date_is_accepted(release):
    done = check(release)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", FILES[1:4])
def test_release_with_two_versions_names_the_file(release, name):
    path = release / name
    path.write_text(re.sub(r"\b\d+\.\d+\.\d+\b", "0.0.9", path.read_text()))
    commit(release)
    done = check(release)
    assert done.returncode == 1 and name in done.stderr


def test_release_without_a_dated_section_is_refused(release):
    shutil.copy(PROJECT / "CHANGELOG.md", release / "CHANGELOG.md")
    commit(release)
    done = check(release)
    assert done.returncode == 1 and "CHANGELOG.md has no section" in done.stderr


def test_release_with_uncommitted_changes_is_refused(release):
    (release / "new").touch()
    done = check(release)
    assert done.returncode == 1 and "uncommitted" in done.stderr
