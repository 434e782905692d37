"""Attributes that an error of the machine withholds are failures that `retry` makes good."""

import os
import stat

import pytest

from support.strace import calls_made, points, traced
from support.trees import CAREFUL, stage_list, stage

OWNER_ALONE = 0o700


@pytest.fixture
def tree(job):
    """A directory open to its owner alone, with a file that is open to all in it."""
    closed = job.directory / "in" / "closed"
    closed.mkdir(parents=True)
    (closed / "secret").write_text("secret")
    (closed / "secret").chmod(0o644)
    os.link(closed / "secret", closed / "second")
    os.setxattr(closed / "secret", "user.kind", b"x")
    os.setxattr(closed, "user.kind", b"d")
    closed.chmod(OWNER_ALONE)
    return job.directory / "in"


def modes(job) -> set[int]:
    """Of the directory at the destination, if it is there."""
    closed = job.directory / "out" / "closed"
    return {stat.S_IMODE(closed.stat().st_mode)} if closed.exists() else set()


def retried(job) -> None:
    for one in stage_list(job):
        assert stage(job, "retry", one["id"]).returncode == 0


@pytest.mark.parametrize("error", ["EIO", "ESTALE"])
def test_directory_mode_is_never_wider_than_its_source_after_an_error(job, tree, error):
    for path in ("closed", "closed/secret"):
        for number in (1, 2, 3, 4):
            for place in ("in", "out"):
                named = job.directory / place / path
                happens = f"error={error}:when={number}"
                process = traced(job, "statx", happens, "stage", "out", *CAREFUL, "in", "out", threads=True, path=named)
                status = process.wait(300)
                assert modes(job) <= {OWNER_ALONE}, (path, number, place)
                assert (status == 0) == (stage_list(job) == []), (path, number, place)
                retried(job)
                assert modes(job) == {OWNER_ALONE}, (path, number, place)
                assert (job.directory / "out" / "closed" / "secret").read_text() == "secret"
                stage(job, "out", "in", "out")
                for name in ("secret", "second"):
                    (job.directory / "out" / "closed" / name).unlink()
                (job.directory / "out" / "closed").rmdir()
                (job.directory / "out").rmdir()


@pytest.mark.parametrize("error", ["EIO", "ENOSPC", "EDQUOT", "ENOMEM"])
@pytest.mark.parametrize("call", ["fsetxattr", "fchown", "linkat"])
def test_attribute_that_cannot_be_set_now_is_a_failure_and_retry_sets_it(job, tree, call, error):
    if call == "fchown":
        if os.getuid() != 0:
            pytest.skip("only root can give files away")
        for path in (tree / "closed", tree / "closed" / "secret"):
            os.chown(path, 1, 1)
    made = calls_made(job, call, "stage", "out", *CAREFUL, "in", "first", threads=True)
    assert made > 0
    statuses = set()
    for number in points(made):
        words = ["stage", "out", *CAREFUL, "in", f"out{number}"]
        process = traced(job, call, f"error={error}:when={number}", *words, threads=True)
        statuses.add(process.wait(300))  # each thread counts its own calls, SQLite's among them
        retried(job)
        closed = job.directory / f"out{number}" / "closed"
        assert os.getxattr(closed, "user.kind") == b"d" and os.getxattr(closed / "secret", "user.kind") == b"x"
        assert (closed / "secret").stat().st_ino == (closed / "second").stat().st_ino
        assert (closed / "secret").stat().st_uid == (tree / "closed" / "secret").stat().st_uid
    assert 123 in statuses <= {0, 123}


@pytest.mark.parametrize(("call", "error"), [("fsetxattr", "EOPNOTSUPP"), ("fchown", "EPERM"), ("linkat", "EPERM")])
def test_attribute_that_the_file_system_does_not_have_is_a_note(job, tree, call, error):
    if os.getuid() == 0:
        os.chown(tree / "closed" / "secret", 1, 1)
    process = traced(job, call, f"error={error}", "stage", "out", *CAREFUL, "in", "out", threads=True)
    assert process.wait(300) == 0
    assert (job.directory / "out" / "closed" / "second").read_text() == "secret"
