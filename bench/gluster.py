"""A Gluster volume over the nodes of a bed, with every cache off that lets a node see what another has replaced.

Each node has a daemon with files of its own, a brick in its store and a mount. Only what is installed is used:
`missing()` says why there can be no volume.
"""

import contextlib
import pathlib
import shutil
from collections.abc import Iterator

from support.bed_files import STORE
from support.nodes import USERS, WAIT_S, Bed
from support.waiting import wait_until

VOLUME = "bench"
MOUNT = pathlib.Path("/mnt/gluster")
BRICK = STORE / "brick"
#: Where a daemon keeps its state and its logs; the rest of what it writes is in /run, which each node has.
OWN = ("/var/lib/glusterd", "/var/log/glusterfs")
#: What the volume does otherwise than by itself, and why. No shards: a file that two nodes extend gets a wrong size.
OPTIONS = {
    # They answer from what this client has seen before.
    "performance.quick-read": "off",  # contents of small files
    "performance.stat-prefetch": "off",  # attributes
    "performance.io-cache": "off",  # contents
    "performance.nl-cache": "off",  # names that were not there
    # They read what nobody has asked for yet.
    "performance.read-ahead": "off",
    "performance.readdir-ahead": "off",
    "performance.parallel-readdir": "off",
    # They answer before a server has done it, so another node can miss what has returned.
    "performance.write-behind": "off",  # write
    "performance.flush-behind": "off",  # close
    "performance.open-behind": "off",  # open
}
#: The kernel asks for each name and its attributes again, and has no pages of files.
MOUNT_OPTIONS = ("--entry-timeout=0", "--attribute-timeout=0", "--negative-timeout=0", "--direct-io-mode=enable")


def missing() -> str | None:
    """Why there can be no volume here; None if there can."""
    gone = [name for name in ("glusterd", "gluster", "glusterfs") if not shutil.which(name, path="/usr/sbin:/usr/bin")]
    return f"not installed: {' '.join(gone)}" if gone else None


@contextlib.contextmanager
def volume(bed: Bed, user: str) -> Iterator[pathlib.Path]:
    """A directory of the user in a new volume that is mounted on all nodes."""
    try:
        start(bed)
        create(bed)
        for node in bed.names:
            words = ["glusterfs", "--volfile-server=n1", f"--volfile-id={VOLUME}", *MOUNT_OPTIONS, MOUNT]
            bed.run(node, words)
        own = MOUNT / user
        bed.run("n1", ["install", "-d", "-o", USERS[user], "-g", USERS[user], own])
        yield own
    finally:
        stop(bed)


def start(bed: Bed) -> None:
    for node in bed.names:
        for directory in OWN:
            bed.run(node, ["mount", "-t", "tmpfs", "none", directory])
        bed.run(node, ["mkdir", "-p", "/run/gluster", BRICK, MOUNT])
        bed.run(node, ["glusterd", "--log-level=WARNING"])
        until_done(bed, node, "pool", "list")


def create(bed: Bed) -> None:
    for node in bed.names[1:]:
        until_done(bed, "n1", "peer", "probe", node)
    bricks = [f"{node}:{BRICK}" for node in bed.names]
    # Refused as long as a node that has joined does not know all others. `force`: a brick in memory.
    until_done(bed, "n1", "volume", "create", VOLUME, *bricks, "force")
    gluster(bed, "n1", "volume", "set", VOLUME, *(word for pair in OPTIONS.items() for word in pair))
    gluster(bed, "n1", "volume", "start", VOLUME)


def stop(bed: Bed) -> None:
    """Whatever of it there is."""
    for node in bed.names:
        bed.run(node, ["umount", MOUNT], check=False)
        wait_until(lambda: not bed.kill(node, "gluster"), WAIT_S, f"the end of Gluster on {node}")
        bed.run(node, ["umount", "--lazy", MOUNT, *OWN], check=False)


def gluster(bed: Bed, node: str, *words: str, check: bool = True):
    return bed.run(node, ["gluster", "--mode=script", *words], check=check)


def until_done(bed: Bed, node: str, *words: str) -> None:
    done = lambda: gluster(bed, node, *words, check=False).returncode == 0
    wait_until(done, WAIT_S, f"gluster {' '.join(words)} on {node}")
