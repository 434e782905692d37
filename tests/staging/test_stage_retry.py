"""`forebay stage retry` where the target was purged meanwhile, or takes nothing for its mode; and stagings without threads,
or of a file to itself."""

import os
import shutil
import subprocess

import pytest

from support.strace import EVERY_POINT, pause_at_syscall
from support.trees import (
    CAREFUL,
    file_states,
    stage_list,
    parts,
    refused,
    remove_tree,
    tree_state,
    stage,
    traced_calls,
    tree,  # noqa: F401 (a fixture)
)
from support.users import reachable

ONLY_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


@pytest.fixture
def in_the_way(job, tree):
    """A staging of which one file has not arrived; its directory was there before."""
    os.chmod(tree / "deep" / "empty", 0o700)
    (tree / "there").mkdir()
    (tree / "there" / "file").write_text("x")
    (job.directory / "out" / "there" / "file").mkdir(parents=True)
    assert stage(job, "out", "in", "out").returncode == 123
    (one,) = stage_list(job)
    return one["id"]


def test_purged_directories_are_created_again_and_finished(job, tree, in_the_way):
    remove_tree(job.directory / "out")
    done = stage(job, "retry", in_the_way)
    assert done.returncode == 0, done.stderr
    assert tree_state(job.directory / "out") == tree_state(tree) and stage_list(job) == []


def test_directory_time_is_restored_after_files_are_recreated(job, tree, in_the_way):
    out = job.directory / "out"
    (out / "deep" / "empty").rmdir()
    (out / "there" / "file").rmdir()
    assert stage(job, "retry", in_the_way).returncode == 0
    found, wanted = tree_state(out), tree_state(tree)
    assert all(found[name] == wanted[name] for name in ("deep", "deep/empty", "there/file"))
    assert file_states(out) == file_states(tree)


def test_directory_time_is_restored_after_a_purged_file_is_copied(job, tree, in_the_way):
    out = job.directory / "out"
    (out / "deep" / "small 1").unlink()
    (out / "there" / "file").rmdir()
    assert stage(job, "retry", in_the_way).returncode == 0
    assert tree_state(out)["deep"] == tree_state(tree)["deep"] and file_states(out) == file_states(tree)


def test_file_in_place_of_a_delivered_directory_is_a_failure(job, tree, in_the_way):
    out = job.directory / "out"
    (out / "there" / "file").rmdir()
    shutil.rmtree(out / "deep")
    (out / "deep").write_text("in the way")
    done = stage(job, "retry", in_the_way)
    assert done.returncode == 123 and "not a directory" in done.stderr.lower(), done.stderr
    (one,) = stage_list(job)
    assert one["missing_files"] >= 1
    (out / "deep").unlink()
    assert stage(job, "retry", in_the_way).returncode == 0
    assert file_states(out) == file_states(tree)


@pytest.fixture
def user(build):
    """A job of an ordinary user."""
    with reachable(build) as job:
        job.as_nobody()
        yield job


def owned(job):
    subprocess.run(["chown", "-R", "65534:65534", job.directory], check=True)


@ONLY_ROOT
def test_retry_continues_below_an_unwritable_directory(user):
    source, out = user.directory / "in", user.directory / "out"
    (source / "closed" / "below").mkdir(parents=True)
    for name in ("a", "b", "below/c"):
        (source / "closed" / name).write_text(name)
    owned(user)
    os.chmod(source / "closed" / "b", 0)
    for directory in ("closed/below", "closed"):
        os.chmod(source / directory, 0o555)
    assert stage(user, "out", "in", "out").returncode == 123
    assert (out / "closed").stat().st_mode & 0o777 == 0o555
    os.chmod(source / "closed" / "b", 0o644)
    shutil.rmtree(out / "closed" / "below")
    (one,) = stage_list(user)
    done = stage(user, "retry", one["id"])
    assert done.returncode == 0, done.stderr
    found, wanted = tree_state(out), tree_state(source)
    assert {name: found[name] for name in found if name != "."} == {
        name: wanted[name] for name in wanted if name != "."
    }


@ONLY_ROOT
def test_directory_not_created_by_staging_keeps_its_mode(user):
    (user.directory / "in" / "closed").mkdir(parents=True)
    (user.directory / "in" / "closed" / "a").write_text("a")
    (user.directory / "out" / "closed").mkdir(parents=True)
    owned(user)
    os.chmod(user.directory / "out" / "closed", 0o555)
    assert stage(user, "out", "in", "out").returncode == 123
    (one,) = stage_list(user)
    assert stage(user, "retry", one["id"]).returncode == 123
    assert (user.directory / "out" / "closed").stat().st_mode & 0o777 == 0o555
    assert list((user.directory / "out" / "closed").iterdir()) == []


# The first thread takes the signals.
@pytest.mark.parametrize("more", ["", "+"])
def test_staging_without_threads_uses_fewer_or_fails_with_a_hint(job, tree, more):
    number = 1
    while True:
        strace = ("-e", f"inject=clone,clone3:error=EAGAIN:when={number}{more}")
        calls, done = traced_calls(job, "clone,clone3", "stage", "out", "in", "out", options=strace)
        if number == 1:
            assert done.returncode == 1, done.stderr
            refused(done, "cannot start a thread", "hint: end some of your processes")
        else:
            assert done.returncode == 0 and tree_state(job.directory / "out") == tree_state(tree), (number, done.stderr)
        assert stage_list(job) == [] and parts(job) == []
        remove_tree(job.directory / "out")
        if not any("INJECTED" in call for call in calls) or (number > 6 and not EVERY_POINT):
            break
        number += 1
    assert number > 6


def test_vanished_target_is_not_noted_for_each_file(job, tree):
    with pause_at_syscall(job, "fsync", lambda: parts(job), "stage", "out", *CAREFUL, "in", "out") as process:
        remove_tree(job.directory / "out")
    assert process.returncode == 123
    (one,) = stage_list(job)
    assert one["notes"] == []
    gone = [failure["remedy"] for failure in one["failures"] if "No such file" in failure["reason"]]
    assert gone and all(remedy.startswith(str(job.directory / "out")) and "has vanished" in remedy for remedy in gone)


def test_file_is_not_staged_to_itself(job, tree):
    done = stage(job, "out", "in/large", "in/large")
    assert done.returncode == 123
    refused(done, "source and target are the same file", "hint: choose another target")
    assert "link" not in done.stderr
