"""Jobs of `forebay run --nodes` on a test bed: their scripts, what a job's directories are, and what faults meet."""

import contextlib
import dataclasses
import json
import os
import pathlib
import shlex
import subprocess
import tempfile
from collections.abc import Iterator

from support.engines import make_directory
from support.nodes import STORE, VirtualNodes, ended
from support.waiting import wait_until

CAPACITY = "capacity=64MiB"
STRIPED = f"#DW jobdw type=scratch access_mode=striped {CAPACITY}"
#: What an ordinary job needs of time, on a slow machine.
JOB_S = 300


@dataclasses.dataclass
class NodeJob:
    """A job of one user on all nodes of a bed, with a folder of its own on the shared file system."""

    bed: VirtualNodes
    folder: pathlib.Path
    user: str | None
    options: tuple[object, ...]
    #: Its nodes; empty: all of the bed.
    names: tuple[str, ...] = ()

    @property
    def words(self) -> list[object]:
        return [
            "forebay",
            "run",
            "--nodes",
            ",".join(self.names or self.bed.names),
            *self.options,
            self.folder / "job.sh",
        ]

    def popen(self, **environment):
        return self.bed.popen(self.bed.names[0], self.words, self.user, self.folder, **environment)

    def run(self, check: bool = True, **environment) -> subprocess.CompletedProcess:
        return ended(self.popen(**environment), check, seconds=JOB_S)

    def start(self, **environment):
        """Started, and waits in its script at `hold`."""
        run = self.popen(**environment)
        wait_until(lambda: self.path("held").exists() or run.poll() is not None, JOB_S, "the job's script")
        assert run.poll() is None, run.communicate()
        return run

    def release(self, run, check: bool = True, seconds: float = JOB_S) -> subprocess.CompletedProcess:
        """Lets the script go on, to the end of the job."""
        self.path("go").touch()
        return ended(run, check, seconds=seconds)

    def path(self, name: str) -> pathlib.Path:
        return self.folder / name

    def text(self, name: str) -> str:
        return self.path(name).read_text()

    def forebay(self, *words, check: bool = True, seconds: float = JOB_S) -> subprocess.CompletedProcess:
        """Another command of the same user on the first node."""
        return self.bed.run(self.bed.names[0], ["forebay", *words], self.user, check=check, seconds=seconds)

    def leftovers(self) -> list[str]:
        """Directories and records of jobs of this user on all nodes."""
        found = [str(path) for path in (self.bed.home(self.user) / ".forebay" / "jobs").glob("*")]
        for node in self.bed.names:
            for place in ("/tmp", "/mnt/nvme", "/dev/shm"):
                found += [f"{node}: {path}" for path in self.bed.path_of(node, place).glob("*forebay-[!b]*")]
        return found

    def mount(self) -> pathlib.Path:
        """The directory of the namespace."""
        return pathlib.Path(self.text("striped").strip())

    def jobs(self) -> list[dict]:
        return json.loads(self.forebay("status", "--json").stdout)


@contextlib.contextmanager
def on_disks(bed: VirtualNodes, size_bytes: int | None = None) -> Iterator[None]:
    """The store of each node is a directory on a disk: /tmp may be in memory, /var/tmp outlives a restart (FHS). With a
    size it is a file system of its own, whose blocks take room once they are written."""
    with tempfile.TemporaryDirectory(prefix="forebay-test-", dir="/var/tmp") as scratch:
        os.chmod(scratch, 0o711)
        for node in bed.names:
            if size_bytes is None:
                disk = make_directory(pathlib.Path(scratch, node), "ada")
                bed.run(node, ["mount", "--bind", disk, STORE])
                continue
            image = pathlib.Path(scratch, node)
            image.touch()
            os.truncate(image, size_bytes)
            subprocess.run(["mkfs.xfs", "-q", "-K", "-l", "size=64m", image], check=True, capture_output=True)
            bed.run(node, ["mount", "-t", "xfs", "-o", "loop", image, STORE])
            bed.run(node, ["chown", "ada:", STORE])
        yield
        for node in bed.names:
            # Rarely it is in use for a moment longer; no process of the job was found then.
            unmounted = lambda node=node: bed.run(node, ["umount", STORE], check=False).returncode == 0  # noqa: E731
            wait_until(unmounted, what=f"the end of what uses the store of {node}")


HOLD = "echo $DW_JOB_STRIPED >striped; touch held; until [ -e go ]; do sleep 0.1; done"


def node_job(bed: VirtualNodes, script: str, *options, user: str | None = "ada", name: str = "job") -> NodeJob:
    """A job in a new folder, from the lines of a script; HERE is the folder, `hold` waits until `release`."""
    folder = bed.shared / name
    if user:
        make_directory(folder, user)
    else:
        folder.mkdir()
    lines = script.replace("HERE", shlex.quote(str(folder))).replace("\nhold\n", f"\n{HOLD}\n")
    (folder / "job.sh").write_text(f"#!/bin/bash\n{lines}\n")
    return NodeJob(bed, folder, user, options)
