"""A Ceph cluster of one node on a loopback address: a monitor, a storage daemon in memory, a metadata server."""

import base64
import contextlib
import itertools
import json
import os
import pathlib
import secrets
import struct
import subprocess
import time
import uuid

from support.waiting import wait_until

PORT = 3300
NUMBERS = itertools.count()
CAPABILITIES = {
    "mon.": {"mon": "allow *"},
    "client.admin": {"mon": "allow *", "osd": "allow *", "mds": "allow *"},
    "client.job": {"mon": "allow r", "mds": "allow rw path=/allocation", "osd": "allow rw tag cephfs data=x"},
    "client.site": {"mon": "allow r", "mds": "allow rwp path=/site", "osd": "allow rw tag cephfs data=x"},
    "client.compute": {"mon": "allow r", "mds": "allow rw path=/site", "osd": "allow rw tag cephfs data=x"},
    "osd.0": {"mon": "allow profile osd", "osd": "allow *"},
    "mds.a": {"mon": "allow profile mds", "osd": "allow *", "mds": "allow *"},
}
CONFIGURATION = """[global]
fsid = {fsid}
mon host = [v2:{address}:{port}]
mon initial members = a
auth cluster required = cephx
auth service required = cephx
auth client required = cephx
auth allow insecure global id reclaim = false
keyring = {directory}/keyring
ms bind msgr1 = false
public addr = {address}
cluster addr = {address}
log file = {directory}/$name.log
admin socket =
run dir = {directory}
crash dir = {directory}
mon data = {directory}/mon
osd data = {directory}/osd
mds data = {directory}/mds
osd objectstore = memstore
memstore device bytes = 1073741824
osd pool default size = 1
mon allow pool size one = true
osd crush chooseleaf type = 0
osd pool default pg autoscale mode = off
paxos propose interval = 0.05
mon tick interval = 1
mds tick interval = 0.1
client fs = x
"""


def secret():
    """A secret of cephx: type 1, time, 16 random bytes."""
    return base64.b64encode(struct.pack("<HIIH", 1, int(time.time()), 0, 16) + secrets.token_bytes(16)).decode()


def keyring(keys):
    """The text of a keyring with these keys and their capabilities."""
    lines = []
    for name, key in keys.items():
        lines += [f"[{name}]", f"key = {key}"]
        lines += [f'caps {service} = "{what}"' for service, what in CAPABILITIES[name].items()]
    return "\n".join(lines) + "\n"


class Ceph:
    """Its directory is new. `bundle` is the directory of a bundle, which then provides the programs."""

    def __init__(
        self,
        program: pathlib.Path,
        directory: pathlib.Path,
        bundle: pathlib.Path | None = None,
        address: str | None = None,
    ):
        self.program, self.directory, self.bundle = program, directory, bundle
        self.daemons: dict[str, subprocess.Popen] = {}
        # No other test has this address: it has the number of this process.
        low, number = os.getpid() % 65536, next(NUMBERS)
        self.address = address or f"127.{77 + number}.{low // 256}.{low % 256}"
        self.config, self.keyring = directory / "ceph.conf", directory / "keyring"
        self.keys = {name: secret() for name in CAPABILITIES}
        directory.mkdir()
        for name in ("osd", "mds"):
            (directory / name).mkdir()
        self.fsid = str(uuid.uuid4())
        text = CONFIGURATION.format(fsid=self.fsid, address=self.address, port=PORT, directory=directory)
        if bundle:
            text += f"erasure code dir = {bundle}/lib/ceph/erasure-code\n"
            text += f"osd class dir = {bundle}/lib/rados-classes\nplugin dir = {bundle}/lib/ceph\n"
        self.config.write_text(text)
        self.keyring.write_text(keyring(self.keys))
        self.keyring.chmod(0o600)

    def words(self, name, *words):
        start = [name]
        if self.bundle:
            (loader,) = (self.bundle / "lib").glob("ld-linux*")
            start = [loader, "--library-path", self.bundle / "lib", self.bundle / "bin" / name]
        return [*start, *(["-c", self.config] if name != "monmaptool" else []), *words]

    def once(self, name, *words):
        done = self.run(self.words(name, *words))
        assert done.returncode == 0, done.stderr

    def daemon(self, name, id):
        self.daemons[name] = self.popen(self.words(name, "-i", id, "-f"), self.directory / f"{name}.out")

    def run(self, words) -> subprocess.CompletedProcess:
        return subprocess.run(words, capture_output=True, text=True, timeout=300)

    def popen(self, words, log: pathlib.Path) -> subprocess.Popen:
        with log.open("a") as out:
            return subprocess.Popen(words, stdout=out, stderr=out)

    def start(self):
        """Starts the daemons; returns the lines of the actions that made pools and file system."""
        monitor_map, osd = self.directory / "monmap", str(uuid.uuid4())
        address = f"[v2:{self.address}:{PORT}]"
        self.once("monmaptool", "--create", "--addv", "a", address, "--fsid", self.fsid, monitor_map)
        self.once("ceph-mon", "--mkfs", "-i", "a", "--monmap", monitor_map, "--keyring", self.keyring)
        self.once("ceph-osd", "--no-mon-config", "--mkfs", "-i", "0", "--osd-uuid", osd, "--monmap", monitor_map)
        self.daemon("ceph-mon", "a")
        self.daemon("ceph-mds", "a")
        pools = [{"monitor": {"prefix": "osd pool create", "pool": pool, "pg_num": 8}} for pool in ("meta", "data")]
        system = {"prefix": "fs new", "fs_name": "x", "metadata": "meta", "data": "data"}
        done = self.act({"monitor": {"prefix": "osd new", "uuid": osd}}, *pools, {"monitor": system})
        assert done.returncode == 0, done.stderr
        self.daemon("ceph-osd", "0")
        servers = {"wait_for_metadata_servers": {"file_system": "x", "active": 1}, "s_max": 100}
        ready = self.act(servers, {"wait_for_storage": {"daemons": 1}, "s_max": 100})
        assert ready.returncode == 0, ready.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    def file(self, *actions, **connection):
        """A file for `forebay __ceph`; `connection` replaces members of the usual one."""
        usual = {"config": str(self.config), "keyring": str(self.keyring), "connect_s_max": 100}
        if self.bundle:
            usual["library_directory"] = str(self.bundle / "lib")
        path = self.directory / f"actions-{next(NUMBERS)}.json"
        path.write_text(json.dumps(usual | connection | {"actions": actions}))
        return path

    def act(self, *actions, **connection):
        return self.run([self.program, "__ceph", self.file(*actions, **connection)])

    def stop(self):
        for daemon in self.daemons.values():
            daemon.kill()
            daemon.wait()
        self.daemons.clear()

    def wait_for_connection(self, process):
        """Waits until a process has a connection to the monitor: a socket besides its three streams."""
        wait_until(lambda: any("socket:" in file for file in open_files(process.pid)))


def open_files(pid):
    """What the descriptors of a process lead to; one that is closed meanwhile leads nowhere."""
    for descriptor in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            yield os.readlink(descriptor)
