"""A standing CephFS as a site has it: on a node of a test bed that no job uses, mounted by root on the others.

It runs without a manager, so `df` shows the quota of the mounted directory.
"""

import contextlib
import pathlib
import subprocess
from collections.abc import Iterator, Sequence
from typing import Protocol

from support.ceph import Ceph
from support.waiting import wait_until

MOUNT = pathlib.Path("/mnt/cephfs")
#: The directory of the cluster that the nodes mount.
DIRECTORY = "/site"
#: Without the page cache, nodes see each other's writes at once.
FUSE_OPTIONS = ("--fuse_disable_pagecache=true", "--fuse_allow_other=true", "--client_quota_df=true")
START_S = 60


class Hosts(Protocol):
    """A test bed, or what looks like one."""

    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def top(self) -> pathlib.Path: ...
    def address(self, node: str) -> str: ...
    def run(self, node: str, words: Sequence[object], check: bool = True) -> subprocess.CompletedProcess: ...
    def popen(self, node: str, words: Sequence[object]) -> subprocess.Popen: ...


class SiteCeph(Ceph):
    """The daemons run on one node."""

    def __init__(self, bed: Hosts, node: str):
        self.bed, self.node = bed, node
        super().__init__(pathlib.Path("forebay"), bed.top / "site-ceph", address=bed.address(node))

    def run(self, words):
        return self.bed.run(self.node, words, check=False)

    def popen(self, words, log):
        return self.bed.popen(self.node, ["sh", "-c", 'exec "$@" >>"$0" 2>&1', log, *words])


@contextlib.contextmanager
def site_cephfs(bed: Hosts, server: str, capacity_bytes: int, mode: int = 0o1777) -> Iterator[pathlib.Path]:
    """The mount point on all nodes but the server. Only the first of them may set quotas."""
    ceph = SiteCeph(bed, server)
    clients = [name for name in bed.names if name != server]
    mounts = []
    try:
        ceph.start()
        quota = {"path": DIRECTORY, "name": "ceph.quota.max_bytes", "value": str(capacity_bytes)}
        made = {"path": DIRECTORY, "mode": mode, "uid": 0, "gid": 0}
        done = ceph.act({"make_directory": made}, {"set_attribute": quota})
        assert done.returncode == 0, done.stdout + done.stderr
        for node in clients:
            bed.run(node, ["mkdir", MOUNT])
            client = "site" if node == clients[0] else "compute"
            words = ["--id", client, "-f", f"--client_mountpoint={DIRECTORY}", *FUSE_OPTIONS, MOUNT]
            log = ceph.directory / f"{node}.out"
            mount = ["sh", "-c", 'exec "$@" >>"$0" 2>&1', log, *ceph.words("ceph-fuse", *words)]
            mounts.append(bed.popen(node, mount))
        for node in clients:
            is_there = lambda: bed.run(node, ["mountpoint", "-q", MOUNT], check=False).returncode == 0
            wait_until(is_there, START_S, f"the site's CephFS on {node}")
        yield MOUNT
    finally:
        for node in clients:
            bed.run(node, ["umount", "--lazy", MOUNT], check=False)
        for process in mounts:
            process.kill()
            process.wait()
        ceph.stop()
