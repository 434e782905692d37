"""Small jobs with burst buffers of a site under a real Slurm, while a daemon is killed each second."""

import contextlib
import os
import random
import signal
import threading
import time

from support.site_cluster import SiteBatch, SiteCluster, chown
from support.slurm_cluster import NOBODY, NODES, started

ARRAY_MAX = 250
DW = "#DW jobdw type=scratch access_mode=striped capacity=1MiB pool=small"
IN = "#DW stage_in type=file source=%d/input.%a destination=$DW_JOB_STRIPED/input"
OUT = "#DW stage_out type=file source=$DW_JOB_STRIPED/result destination=%d/results/%A-%a"
KILL_EVERY_S = 1
#: Slurm tries a job again whose nodes failed, much later, and holds it after some tries.
ENCOURAGE_EVERY_S = 10


class Killer(threading.Thread):
    """Kills the daemon of one node after the other, and processes that stage."""

    def __init__(self, cluster: SiteCluster, seed: int) -> None:
        super().__init__(daemon=True)
        self.cluster, self.random, self.kills, self.over = cluster, random.Random(seed), 0, threading.Event()

    def run(self) -> None:
        """Until `over` is set."""
        while not self.over.wait(KILL_EVERY_S):
            node = self.random.choice(NODES)
            for daemon in self.cluster.daemons(node):
                with contextlib.suppress(ProcessLookupError):  # it was a process that has ended
                    os.kill(daemon, signal.SIGKILL)
                    self.kills += 1


def content(task: int) -> str:
    """The input of a task, and half of its result."""
    return f"{task} " * (1 + task % 5000) + "\n"


def play(build, jobs: int, minutes: float, seed: int) -> dict[str, int]:
    """Runs so many jobs, as far as the time allows; counts what happened to them."""
    with started(SiteCluster, build) as cluster:
        batch = SiteBatch(cluster, NOBODY, "soak")
        batch.results.mkdir()
        chown(batch.results, NOBODY)
        for task in range(1, ARRAY_MAX + 1):
            (batch.directory / f"input.{task}").write_text(content(task))
        batch.script("cat $DW_JOB_STRIPED/input $DW_JOB_STRIPED/input > $DW_JOB_STRIPED/result", DW, IN, OUT)
        deadline = time.monotonic() + minutes * 60
        killer = Killer(cluster, seed)
        killer.start()
        found = {"jobs": 0, "lost or wrong": 0, "stranded": 0}
        while found["jobs"] < jobs and time.monotonic() < deadline:
            tasks = min(ARRAY_MAX, jobs - found["jobs"])
            array = batch.submit(f"--array=1-{tasks}", "-o", "/dev/null", "-e", "/dev/null")
            wait(cluster, batch, array, deadline)
            for task in range(1, tasks + 1):
                path = batch.results / f"{array}-{task}"
                whole = path.exists() and path.read_text() == content(task) * 2
                found["lost or wrong"] += not whole
            found["jobs"] += tasks
        killer.over.set()
        killer.join()
        found["kills"] = killer.kills
        found["stranded"] = len(cluster.status()["allocations"])
        found["leftovers"] = len(cluster.directories("small")) + len(list(batch.results.rglob("*.part")))
        found["failed calls"] = batch.log().count(": error: ")
        return found


def wait(cluster: SiteCluster, batch: SiteBatch, array: str, deadline: float) -> None:
    """Until the array has ended and nothing is allocated; a soak that takes twice its time has failed."""
    encouraged = time.monotonic()
    while True:
        left = batch.run("squeue", "-h", "-r", "-j", array, "-o", "%A", check=False).stdout.split()
        if not left and not cluster.status()["allocations"]:
            return
        if time.monotonic() > deadline + 600:
            return
        if time.monotonic() > encouraged + ENCOURAGE_EVERY_S:
            encouraged = time.monotonic()
            waiting = batch.run("squeue", "-h", "-r", "-t", "PD", "-j", array, "-o", "%A %r", check=False)
            for line in waiting.stdout.splitlines():
                job, _, reason = line.partition(" ")
                if reason.startswith(("BeginTime", "burst_buffer", "JobHeld")):
                    cluster.run(["scontrol", "update", f"JobId={job}", "StartTime=now"], check=False)
                    cluster.run(["scontrol", "release", job], check=False)
        time.sleep(1)
