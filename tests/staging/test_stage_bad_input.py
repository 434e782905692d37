"""What `forebay stage` does where there is no room, where things vanish or change under its hands, and where paths are odd."""

import contextlib
import json
import os
import random
import subprocess

import pytest

from support.job import DW
from support.strace import pause_at_syscall, traced
from support.trees import CAREFUL, file_states, stage_list, parts, refused, remove_tree, tree_state, stage, tree  # noqa: F401
from support.waiting import wait_until

LIMIT_S = 300
ONLY_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a file system of one MiB")


@contextlib.contextmanager
def mounted(directory, options):
    directory.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", directory], check=True)
    try:
        yield directory
    finally:
        subprocess.run(["umount", directory], check=True)


@ONLY_ROOT
def test_full_target_is_reported_once_with_needed_and_free_space(job, tree):
    for number in range(40):
        (tree / f"much {number}").write_bytes(random.Random(number).randbytes(64 << 10))
    with mounted(job.directory / "small", "size=1M") as small:
        done = stage(job, "out", "in", "small/out")
        assert done.returncode == 123
        (one,) = stage_list(job)
        assert one["missing_files"] > 10
        (shortage,) = one["shortages"]
        assert (shortage["mounted_at"], shortage["is_quota"]) == (str(small), False)
        assert shortage["missing"] == {"files": one["missing_files"], "bytes": one["missing_bytes"]}
        free = os.statvfs(small)
        assert shortage["free_bytes"] == free.f_bavail * free.f_frsize < one["missing_bytes"]
        line = f"no room on {small}: {one['missing_bytes']} bytes are needed for {one['missing_files']} files"
        assert done.stderr.count(line) == 1 and done.stderr.count("bytes are free") == 1, done.stderr
        refused(done, "hint: free space there")
        # What has arrived is whole, and there is no half file next to it.
        arrived = file_states(small / "out")
        assert arrived and all(file_states(tree)[name] == what for name, what in arrived.items()) and parts(job) == []
        subprocess.run(["mount", "-o", "remount,size=16M", small], check=True)
        assert stage(job, "retry", one["id"]).returncode == 0
        assert tree_state(small / "out") == tree_state(tree)


@ONLY_ROOT
def test_target_without_free_inodes_is_reported(job, tree):
    with mounted(job.directory / "small", "size=8M,nr_inodes=5") as small:
        assert stage(job, "out", "in", "small/out").returncode == 123
        (one,) = stage_list(job)
        assert one["shortages"][0]["free_files"] < one["missing_files"]
        subprocess.run(["mount", "-o", "remount,nr_inodes=100", small], check=True)
        assert stage(job, "retry", one["id"]).returncode == 0
        assert tree_state(small / "out") == tree_state(tree)


def test_exhausted_quota_is_reported_as_such(job, tree):
    ended = traced(job, "symlink,symlinkat", "error=EDQUOT", "stage", "out", "in", "out", threads=True).wait(LIMIT_S)
    (one,) = stage_list(job)
    assert ended == 123 and one["missing_files"] > 0
    assert [shortage["is_quota"] for shortage in one["shortages"]] == [True]
    assert any("have it raised" in (failure["remedy"] or "") for failure in one["failures"])
    assert stage(job, "retry", one["id"]).returncode == 0
    assert tree_state(job.directory / "out") == tree_state(tree)


@ONLY_ROOT
def test_job_with_a_full_destination_keeps_its_data_until_space_is_free(job):
    job.script(
        "mkdir $DW_JOB_STRIPED/out; for i in {1..30}; do head -c 64K /dev/urandom > $DW_JOB_STRIPED/out/$i; done",
        DW,
        "#DW stage_out type=directory source=$DW_JOB_STRIPED/out destination=%d/small/results",
    )
    with mounted(job.directory / "small", "size=1M") as small:
        done = job.run()
        assert done.returncode == 123 and done.stderr.count("are free there") == 1, done.stderr
        (left,) = json.loads(job.command("status", "--json").stdout)
        assert left["shortages"][0]["missing"]["bytes"] == left["missing_bytes"] > 0
        assert f"no room on {small}" in job.command("status").stderr
        assert job.command("clean").returncode == 123, "nothing has changed"
        subprocess.run(["mount", "-o", "remount,size=8M", small], check=True)
        assert job.command("clean").returncode == 0
        assert [path.stat().st_size for path in (small / "results").iterdir()] == [64 << 10] * 30
    (job.directory / "small").rmdir()
    job.leaves_nothing()


def failures(job):
    return stage_list(job)[0]["failures"]


@pytest.mark.parametrize("call", ["ftruncate", "fchmod", "fsync", "rename"])
def test_target_directory_removed_during_staging_fails_and_retry_completes(job, tree, call):
    with pause_at_syscall(job, call, lambda: parts(job), "stage", "out", *CAREFUL, "in", "out") as process:
        remove = ["rm", "-rf", job.directory / "out"]
        wait_until(lambda: subprocess.run(remove).returncode == 0, what="the directory to be empty")  # threads write on
    left = stage_list(job)
    assert process.returncode == (123 if left else 0)
    for one in left:
        assert min(one["failed"], 10) == len(one["failures"]) > 0
        assert stage(job, "retry", one["id"]).returncode == 0
    # What had arrived before is gone with the directory, as if it had been purged; it is not told of as there.
    assert stage(job, "out", "in", "out").returncode == 0
    assert file_states(job.directory / "out") == file_states(tree) and parts(job) == []


def test_directory_that_replaces_a_file_meanwhile_is_not_changed(job, tree):
    with pause_at_syscall(job, "fsync", lambda: parts(job), "stage", "out", *CAREFUL, "in", "out") as process:
        (job.directory / "out" / "large").mkdir()
        (job.directory / "out" / "large" / "precious").write_text("x")
    assert process.returncode == 123
    assert any("a directory stands at its place" in failure["reason"] for failure in failures(job))
    assert (job.directory / "out" / "large" / "precious").read_text() == "x" and parts(job) == []


@pytest.mark.parametrize("kind", ["directory", "fifo", "link", "nothing"])
def test_source_file_that_becomes_something_else_meanwhile_is_reported(job, tree, kind):
    with pause_at_syscall(
        job, "mkdir", (job.directory / "out").exists, "stage", "out", *CAREFUL, "in", "out"
    ) as process:
        (tree / "large").unlink()
        (tree / "deep" / "the same").unlink()
        if kind == "directory":
            (tree / "large").mkdir()
        elif kind == "fifo":
            os.mkfifo(tree / "large")
        elif kind == "link":
            (tree / "large").symlink_to("/etc/passwd")
    assert process.returncode == 123
    paths = {failure["path"]: failure for failure in failures(job)}
    assert str(tree / "large") in paths and not (job.directory / "out" / "large").exists()
    assert not (job.directory / "out" / "large").is_symlink()
    assert (job.directory / "out" / "deep" / "small 1").exists() and parts(job) == []


def test_source_directory_that_becomes_a_file_meanwhile_is_reported(job, tree):
    with pause_at_syscall(
        job, "mkdir", (job.directory / "out").exists, "stage", "out", *CAREFUL, "in", "out"
    ) as process:
        subprocess.run(["rm", "-rf", tree / "deep"], check=True)
        (tree / "deep").write_text("a file")
    assert process.returncode == 123 and failures(job) and parts(job) == []
    assert (job.directory / "out" / "large").exists()
    (one,) = stage_list(job)
    stage(job, "retry", one["id"])
    (job.directory / "plain").mkdir()
    assert stage(job, "out", "in", "plain/out").returncode == 0
    assert tree_state(job.directory / "plain" / "out") == tree_state(tree)


def test_looping_links_are_copied_as_links_and_refused_as_target(job, tree):
    (tree / "a").symlink_to("b")
    (tree / "b").symlink_to("a")
    (tree / "up").symlink_to("..")
    assert stage(job, "out", "in", "out").returncode == 0
    assert tree_state(job.directory / "out") == tree_state(tree)
    (job.directory / "loop").symlink_to("loop")
    done = stage(job, "out", "in", "loop/out")
    assert done.returncode in (1, 123)
    refused(done, "loop", "symbolic links", "hint: correct the symbolic links")


@pytest.mark.parametrize("spelling", ["sub/../x", "./x", "linked/x", "//x"])
def test_one_destination_in_two_spellings_gets_one_source_only(job, tree, spelling):
    (job.directory / "sub").mkdir()
    (job.directory / "linked").symlink_to(".")
    (job.directory / "list").write_text(
        f"in/large x\n'in/deep/small 0' '{spelling.replace('//', str(job.directory) + '//')}'\n"
    )
    done = stage(job, "out", "--list", "list")
    assert done.returncode == 123
    refused(done, "goes already", "hint: give one of them another destination")
    assert (job.directory / "x").read_bytes() == (tree / "large").read_bytes()


def test_repeated_line_is_no_error(job, tree):
    (job.directory / "list").write_text("in/large x\nin/large x\n")
    assert stage(job, "out", "--list", "list").returncode == 0
    assert (job.directory / "x").read_bytes() == (tree / "large").read_bytes()


def test_path_beyond_the_system_limit_fails_alone_and_is_named(job, tree):
    name, here = "d" * 200, os.open(tree, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for _ in range(25):  # 5,000 bytes
            os.mkdir(name, dir_fd=here)
            there = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=here)
            os.close(here)
            here = there
        os.close(os.open("too deep", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    finally:
        os.close(here)
    try:
        done = stage(job, "out", "in", "out")
        assert done.returncode == 123
        refused(done, "File name too long", "hint: give it a shorter name")
        for path in ("large", "deep/small 0"):
            assert (job.directory / "out" / path).read_bytes() == (tree / path).read_bytes()
        assert parts(job) == []
    finally:
        remove_tree(job.directory / "in")
        remove_tree(job.directory / "out")
