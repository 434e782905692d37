"""The preload library of clients of CephFS ends waits for a capability whose wake-up is missing, and no others."""

import os
import subprocess

import pytest

LIMIT_S = 60  # a hang, not a slow machine


def waiting(build, where, limit_s):
    library = build / "lib" / "forebay" / "libforebay_ceph_preload.so"
    environment = os.environ | {"LD_PRELOAD": str(library)}
    command = [build / "tests" / "waits", where]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=limit_s, check=True)


@pytest.mark.parametrize("where", ["get_caps", "marked"])
def test_wait_for_a_capability_returns_without_a_wake_up(build, where):
    assert waiting(build, where, LIMIT_S).stdout == "went on 0\n"


@pytest.mark.parametrize("where", ["elsewhere", "unmarked"])
def test_other_wait_ends_with_its_wake_up_only(build, where):
    """That of fsync takes each return for the answer of the server."""
    with pytest.raises(subprocess.TimeoutExpired):
        waiting(build, where, 2)


def test_mount_program_shows_what_it_waits_for(build):
    """Without the name the library would do nothing, and Forebay mounts without a cache."""
    with open("/usr/bin/ceph-fuse", "rb") as program:
        assert b"_ZN6Client8get_capsE" in program.read()
