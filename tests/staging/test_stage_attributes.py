"""Attributes: mended where contents are compared, too; and those that a target does not hold are noted."""

import json
import os
import subprocess

import pytest

from support.job import DW
from support.trees import CAREFUL, file_states, tree_state, stage, traced_calls, tree  # noqa: F401


def entry(tag, rights, who=0xFFFFFFFF):
    return tag.to_bytes(2, "little") + rights.to_bytes(2, "little") + who.to_bytes(4, "little")


# u::rw- u:1:r-- g::r-- m::r-- o::---, as the kernel writes it
ACL = b"\x02\0\0\0" + entry(1, 6) + entry(2, 4, 1) + entry(4, 4) + entry(16, 4) + entry(32, 0)
ACCESS = "system.posix_acl_access"


def attributes(path):
    return {name: os.getxattr(path, name) for name in os.listxattr(path) if name.startswith(("user.", ACCESS))}


@pytest.mark.parametrize("name", ["large", "deep/small 0"])
def test_attributes_are_repaired_only_where_contents_are_compared(job, tree, name):
    source, target = tree / name, job.directory / "out" / name
    try:
        os.setxattr(source, "user.same", b"same")
    except OSError:
        pytest.skip("the file system of the tests has no extended attributes")
    assert stage(job, "out", *CAREFUL, "in", "out").returncode == 0
    number = target.stat().st_ino
    os.setxattr(source, "user.new", b"new")
    os.setxattr(source, "user.same", b"other")
    os.setxattr(source, ACCESS, ACL)
    os.setxattr(target, "user.stale", b"stale")
    # The time of modification is the same: without a comparison it is taken for the same file.
    assert stage(job, "out", *CAREFUL, "in", "out").returncode == 0
    assert attributes(target) == {"user.same": b"same", "user.stale": b"stale"}
    assert stage(job, "out", *CAREFUL, "--checksum", "in", "out").returncode == 0
    assert attributes(target) == attributes(source) == {"user.same": b"other", "user.new": b"new", ACCESS: ACL}
    assert target.stat().st_ino == number, "mended, not copied again"
    assert tree_state(job.directory / "out") == tree_state(tree)
    # And taken away where the source has it not any more.
    os.removexattr(source, ACCESS)
    os.removexattr(source, "user.new")
    os.chmod(source, 0o644)
    assert stage(job, "out", *CAREFUL, "--checksum", "in", "out").returncode == 0
    assert attributes(target) == {"user.same": b"other"} and target.stat().st_mode == source.stat().st_mode


ONLY_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts file systems and gives files away")


def noted(done):
    """Its notes: what, how often, and on what first."""
    assert done.returncode == 0, done.stderr
    account = json.loads(done.stdout)
    told = [line for line in done.stderr.splitlines() if "note: " in line]
    assert len(told) == len(account["notes"])
    assert all(f"{text}: {count} times, first {path}" in "\n".join(told) for text, count, path in account["notes"])
    return {text: (count, path) for text, count, path in account["notes"]}


@ONLY_ROOT
def test_unsupported_extended_attributes_are_noted_once_with_their_count(job, tree):
    try:
        for name in ("large", "deep/small 0", "deep"):
            os.setxattr(tree / name, "user.origin", b"run 7")
    except OSError:
        pytest.skip("the file system of the tests has no extended attributes")
    target = job.directory / "plain"
    target.mkdir()
    subprocess.run(["mount", "-t", "ramfs", "none", target], check=True)
    try:
        notes = noted(stage(job, "out", *CAREFUL, "--json", "in", "plain/out"))
        ((text, (count, first)),) = notes.items()
        assert text.startswith("the extended attribute user.origin could not be kept: ")
        assert count == 3 and first.startswith(str(tree))
        assert tree_state(target / "out") == tree_state(tree)
        # A job says so as well.
        stage_in = "#DW stage_in type=directory source=%d/in destination=$DW_JOB_STRIPED/in"
        stage_out = "#DW stage_out type=directory source=$DW_JOB_STRIPED/in destination=%d/plain/of-job"
        job.script("true", DW, stage_in, stage_out)
        done = job.run()
        assert done.returncode == 0 and f"stage out: note: {text}: 3 times" in done.stderr, done.stderr
    finally:
        subprocess.run(["umount", target], check=True)


@ONLY_ROOT
def test_owners_that_the_target_does_not_keep_are_noted(job, tree):
    """As where root is nobody."""
    for name in ("large", "deep/small 0", "deep"):
        os.chown(tree / name, 1234, 2345)
    os.lchown(tree / "dangling", 1234, 2345)
    calls = "fchown,fchownat,lchown,chown"
    for times in (4, 2):  # of what is there already the files' are tried again
        words = ("stage", "out", *CAREFUL, "--json", "in", "out")
        _, done = traced_calls(job, calls, *words, options=["-e", f"inject={calls}:error=EPERM"])
        notes = noted(done)
        assert [(text, count) for text, (count, _) in notes.items()] == [("the owner could not be kept", times)]
        assert tree_state(job.directory / "out") == tree_state(tree)
    assert (job.directory / "out" / "large").stat().st_uid == 0


def test_unsupported_hard_link_becomes_a_file_and_is_noted(job, tree):
    calls = "link,linkat"
    words = ("stage", "out", *CAREFUL, "--json", "in", "out")
    _, done = traced_calls(job, calls, *words, options=["-e", f"inject={calls}:error=EPERM"])
    ((text, (count, first)),) = noted(done).items()
    assert text.startswith("a hard link became a file of its own: ") and count == 1
    assert first in (str(tree / "large"), str(tree / "deep" / "the same"))
    arrived = file_states(job.directory / "out")
    assert {name: what[:3] for name, what in arrived.items()} == {
        name: what[:3] for name, what in file_states(tree).items()
    }
    assert (job.directory / "out" / "large").stat().st_nlink == 1
