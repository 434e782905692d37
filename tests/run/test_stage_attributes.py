"""Extended attributes of files that are there already: compared and mended where contents are compared, too."""

import os

import pytest

from staged import CAREFUL, seen, stage, tree  # noqa: F401


def entry(tag, rights, who=0xFFFFFFFF):
    return tag.to_bytes(2, "little") + rights.to_bytes(2, "little") + who.to_bytes(4, "little")


# u::rw- u:1:r-- g::r-- m::r-- o::---, as the kernel writes it
ACL = b"\x02\0\0\0" + entry(1, 6) + entry(2, 4, 1) + entry(4, 4) + entry(16, 4) + entry(32, 0)
ACCESS = "system.posix_acl_access"


def attributes(path):
    return {name: os.getxattr(path, name) for name in os.listxattr(path) if name.startswith(("user.", ACCESS))}


@pytest.mark.parametrize("name", ["large", "deep/small 0"])
def test_they_are_mended_where_contents_are_compared_and_only_there(job, tree, name):
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
    assert seen(job.directory / "out") == seen(tree)
    # And taken away where the source has it not any more.
    os.removexattr(source, ACCESS)
    os.removexattr(source, "user.new")
    os.chmod(source, 0o644)
    assert stage(job, "out", *CAREFUL, "--checksum", "in", "out").returncode == 0
    assert attributes(target) == {"user.same": b"other"} and target.stat().st_mode == source.stat().st_mode
