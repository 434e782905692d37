"""Compares the engine ceph with two peers on the same nodes: libcephfs without a mount, and a Gluster volume.

libcephfs is what a FUSE client over it can reach at most. The library's client uses the cluster of the job with the
configuration and the key of its mounts. A peer that is not installed is left out, and the reason is printed.
"""

import contextlib
import os
import pathlib
import subprocess
import sys
from collections.abc import Iterator

import gluster
from engine_phases import OWN_READ, OWN_WRITE, ROUNDS, USER, Phases, capacity, compared, tcp, tmpfs_of, workers
from measure import Counted, Line, in_turn
from support import engines as support_engines
from support.nodes import Bed

#: For this one alone Debian has the binding of libcephfs.
SYSTEM_PYTHON = "/usr/bin/python3"
LIBRARY, GLUSTER = "libcephfs", "Gluster"


def peers(bed: Bed) -> list[Line]:
    """The phases in the namespace of a job, and of each peer that is here, of which one works at a time."""
    missing = {LIBRARY: missing_binding(), GLUSTER: gluster.missing()}
    for name, why in missing.items():
        if why:
            print(f"{name} is left out: {why}", file=sys.stderr)
    with contextlib.ExitStack() as stack:
        of_mounts = stack.enter_context(workers(bed))
        mount = stack.enter_context(support_engines.ceph(bed, USER, capacity(bed)))
        # A directory of each: what the clients of one keep of it is no concern of the other's.
        by_mount, by_library = mount / "by-mount", mount / "by-library"
        bed.run("n1", ["mkdir", by_mount, by_library], USER)
        ceph = Phases(bed, of_mounts, by_mount)
        others = {}
        if not missing[LIBRARY]:
            others[LIBRARY] = stack.enter_context(library(bed, by_library))
        if not missing[GLUSTER]:
            others[GLUSTER] = Phases(bed, of_mounts, stack.enter_context(gluster.volume(bed, USER)))
        ways = others | {"tmpfs": Phases(bed, of_mounts, tmpfs_of(bed))}
        first, *results, stream, again = in_turn(
            ROUNDS, ceph.once, *(way.once for way in ways.values()), lambda: tcp(bed)
        )
    lines = compared(bed, "ceph", first, dict(zip(ways, results)), again, stream)
    for name in (OWN_WRITE, OWN_READ):
        for b_is, other in others.items():
            pairs = zip(ceph.cpu_s_of_gib(name), other.cpu_s_of_gib(name))
            for who, (a, b) in zip(("servers", "mounts and workers"), pairs):
                what = f"processor time of {who}, {name}, {len(bed.names)} nodes"
                lines.append(Counted(what, "ceph", b_is, "s/GiB", a, b, "all such processes on the nodes"))
    return lines


def missing_binding() -> str | None:
    """Why a worker cannot use libcephfs; None if it can."""
    if not pathlib.Path(SYSTEM_PYTHON).exists():
        return f"not installed: {SYSTEM_PYTHON}"
    done = subprocess.run([SYSTEM_PYTHON, "-c", "import cephfs"], capture_output=True, text=True)
    return None if done.returncode == 0 else f"{SYSTEM_PYTHON}: {done.stderr.strip().splitlines()[-1]}"


@contextlib.contextmanager
def library(bed: Bed, directory: pathlib.Path) -> Iterator[Phases]:
    """Phases in a directory of the mounts, by workers that are clients of their cluster as the mount of each node is."""
    started = [mount_of(bed, node) for node in bed.names]
    options = ("--config", "--keyring", "--name", "--root")
    arguments = [[words[words.index(option) + 1] for option in options] for words, _ in started]
    words, preload = started[0]
    # The program after `env`, as this machine's own programs do not see the nodes' files.
    with workers(bed, ["env", *preload, SYSTEM_PYTHON], arguments) as all_workers:
        yield Phases(bed, all_workers, pathlib.PurePosixPath("/") / directory.relative_to(words[-1]))


def mount_of(bed: Bed, node: str) -> tuple[list[str], list[str]]:
    """The words that started the mount of a node, and the variable with the library that was loaded before others."""
    # A bundle's programs follow their loader.
    found = [(pid, words) for pid, words in bed.processes(node) if "__mount" in words[1:5]]
    if len(found) != 1:
        raise SystemExit(f"error: {len(found)} mounts of forebay-mount on {node}, not one")
    ((pid, words),) = found
    variables = os.fsdecode(pathlib.Path(f"/proc/{pid}/environ").read_bytes()).split("\0")
    return words, [one for one in variables if one.startswith("LD_PRELOAD=")]
