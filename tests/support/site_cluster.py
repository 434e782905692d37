"""A real Slurm whose burst buffers are Forebay's: the unpatched plugin `datawarp`, `dw_wlm_cli`, and `forebay-noded` on
each of the four hosts. The pool is a directory that all hosts see."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import time
import warnings

import pytest

from support import cgroup
from support.bed_processes import send
from support.slurm_batch import Batch
from support.slurm_cluster import NODES, Cluster, command_of, descendants, is_program
from support.strace import has_ended, strace

DAEMON, BIN = 1, 2  # other ordinary users whom every machine knows
TEAM = "forebay-team"  # a group of nobody and daemon
MIB = 1 << 20
SITE = """
state = "{top}/state-of-site"
munge_socket = "{top}/munge/socket"
stage_out_retry = "2s"
node_wait = "30s"
stage_idle_max = "5s"
start_wait = "180s"

[[pool]]
name = "flash"
kind = "directory"
path = "{top}/flash/pool"
granularity = "16MiB"
quantity = 25
reserve = "16MiB"
user_max = "320MiB"
staging_nodes = ["n1", "n2"]

[[pool]]
name = "slow"
kind = "directory"
path = "{top}/flash/slow"
granularity = "16MiB"
quantity = 8
staging_nodes = ["n1"]
stage_rate_max = "4MiB"

[[pool]]
name = "small"
kind = "directory"
path = "{top}/flash/small"
granularity = "1MiB"
quantity = 30
staging_nodes = ["n1", "n2"]

[[pool]]
name = "members"
kind = "directory"
path = "{top}/flash/members"
granularity = "16MiB"
quantity = 4
groups = ["daemon"]
staging_nodes = ["n1"]

[[pool]]
name = "local"
kind = "onnode"
path = "/mnt/nvme/pool"
granularity = "16MiB"
quantity = 5
reserve = "16MiB"
nodes = ["n[1-4]"]

[[pool]]
name = "localslow"
kind = "onnode"
path = "/mnt/nvme/slow"
granularity = "16MiB"
quantity = 4
nodes = ["n[1-3]"]
stage_rate_max = "4MiB"
"""
#: Only where the daemons of its nodes have cgroups.
ENGINE_POOL = """
[[pool]]
name = "together"
kind = "onnode"
engine = "ceph"
path = "/mnt/nvme/together"
granularity = "16MiB"
capacity = "80MiB"
nodes = ["n[1-4]"]

[[pool]]
name = "copies"
kind = "onnode"
engine = "ceph"
redundancy = 2
path = "/mnt/nvme/copies"
granularity = "16MiB"
capacity = "80MiB"
nodes = ["n[1-4]"]

[[pool]]
name = "disks"
kind = "onnode"
engine = "ceph"
path = "/mnt/disk/pool"
granularity = "16MiB"
capacity = "80MiB"
nodes = ["n[1-4]"]
"""
#: A file system on a disk of each node, for what outlives the processes of an engine. Other stores are in memory.
DISK_BYTES = 2 << 30
BURST_BUFFER = """
GetSysState={build}/bin/dw_wlm_cli
GetSysStatus={build}/bin/dwstat
Flags=EnablePersistent
DefaultPool=flash
"""
DW = "#DW jobdw type=scratch access_mode=striped capacity=16MiB"
SLOW = f"{DW} pool=slow"  # 4 MiB/s
TOGETHER = "#DW jobdw type=scratch access_mode=striped capacity=256MiB pool=together"
PRIVATE = "#DW jobdw type=scratch access_mode=private capacity=64MiB pool=local"

#: Ends all processes of the user of a job, while a test asks for it. If an Epilog fails, Slurm drains the node.
EPILOG = """#!/bin/bash
[ ! -e {flag} ] || /usr/bin/pkill -KILL -u "$SLURM_JOB_USER"
exit 0
"""


class SiteCluster(Cluster):
    has_engine = True  # where the daemons have cgroups

    def make_files(self):
        super().make_files()
        self.pool = self.top / "flash" / "pool"
        self.pool.mkdir(parents=True)
        for name in ("members", "slow", "small"):
            (self.top / "flash" / name).mkdir()
        for node in NODES:
            store = self.top / "hosts" / node / "nvme"
            subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=1777", "none", store], check=True)
            self.mount_points.append(store)
            for name in ("pool", "slow", "together", "copies"):
                (store / name).mkdir()
            disk = self.top / "hosts" / node / "disk"
            disk.touch()
            os.truncate(disk, DISK_BYTES)
            subprocess.run(["mkfs.xfs", "-q", "-K", "-l", "size=64m", disk], check=True, capture_output=True)
        # The daemon of each node has a cgroup of version 2 of its own, as from systemd, if there can be one.
        made = {node: cgroup.made_of_version_2(f"{self.top.name}-{node}") for node in NODES}
        self.cgroups = {node: group for node, group in made.items() if group}
        for node, group in self.cgroups.items():
            (self.top / f"cgroup-{node}").write_text(str(group))
        self.state = self.top / "state-of-site"
        self.groups = self.top / "etc-group"
        self.set_team("nobody", "daemon")
        self.state.mkdir(mode=0o700)
        shutil.chown(self.state, "slurm", "slurm")
        engine = ENGINE_POOL if self.has_engine and self.cgroups else ""
        (self.top / "site.toml").write_text(SITE.format(top=self.top) + engine)
        (self.top / "burst_buffer.conf").write_text(BURST_BUFFER.format(build=self.build))
        self.epilog_ends_users = self.top / "epilog-ends-users"
        epilog = self.top / "epilog"
        epilog.write_text(EPILOG.format(flag=self.epilog_ends_users))
        epilog.chmod(0o755)
        with (self.top / "slurm.conf").open("a") as configuration:
            configuration.write(f"BurstBufferType=burst_buffer/datawarp\nDebugFlags=BurstBuffer\nEpilog={epilog}\n")

    def wait_until_up(self):
        super().wait_until_up()
        self.wait(lambda: "Name=datawarp" in self.run(["scontrol", "show", "burst"], check=False).stdout, "no pool")

    def set_team(self, *members):
        """Who is in the group, on all hosts."""
        team = f"{TEAM}:x:64007:{','.join(members)}\n"
        self.groups.write_text(pathlib.Path("/etc/group").read_text() + team)

    def shut_down(self):
        super().shut_down()
        for group in self.cgroups.values():
            cgroup.remove_tree(group)

    def cgroup(self, node):
        """The directory of the cgroup of a node's daemon."""
        if node not in self.cgroups:
            pytest.skip("no cgroup of version 2 that we may make and kill")
        return self.cgroups[node]

    def control(self, *words, check=True):
        """`forebay control` of the site, as root."""
        return self.run(["forebay", "control", *words], check=check, FOREBAY_SITE=str(self.top / "site.toml"))

    def status(self):
        return json.loads(self.control("status", "--json").stdout)

    def allocation(self, token):
        """What the site knows of an allocation; None if it has none."""
        found = [one for one in self.status()["allocations"] if one["token"] == token]
        return found[0] if found else None

    def processes(self, *words):
        """Processes of the cluster whose command lines have these words in a row."""
        return [pid for pid in descendants(self.holder.pid) if has_words(command_of(pid), words)]

    def daemons(self, node=None):
        """Processes of `forebay-noded`, of one node or of all."""
        first = self.leader(node) if node else self.holder.pid
        return [pid for pid in descendants(first) if command_of(pid)[:1] == [f"{self.build}/bin/forebay-noded"]]

    def kill_noded(self, node, hold=False):
        """SIGKILL; it is started again at once, or when `release` is called."""
        self.kill(node, self.daemons(node), hold)

    def kill_node(self, node):
        """Every process of it is gone and nobody answers, until `start_node` is called."""
        (self.top / f"hold-{node}").touch()
        self.run(["ip", "link", "set", "eth0", "down"], node=node)

        # What makes it a node starts the daemons again.
        supervisor = str(self.top / "restart.sh")

        def is_dead():
            found = descendants(self.leader(node))
            found = [pid for pid in found if supervisor not in command_of(pid) and pid != self.leader(node)]
            found = [pid for pid in found if command_of(pid)[:1] != ["sleep"]]  # the supervisor's, among others
            for pid in found:
                send(pid, signal.SIGKILL)
            return not found

        self.wait(is_dead, f"{node} does not end")

    def kill_controller(self, hold=False):
        found = [pid for pid in descendants(self.leader()) if is_program(command_of(pid), "slurmctld")]
        self.kill("controller", found, hold)
        if not hold:
            self.wait(lambda: "is UP" in self.run(["scontrol", "ping"], check=False).stdout, "it is not started again")

    def kill(self, name, pids, hold):
        assert pids, f"no daemon of {name} runs"
        if hold:
            (self.top / f"hold-{name}").touch()
        for pid in pids:
            send(pid, signal.SIGKILL)
        self.wait(lambda: all(map(has_ended, pids)), f"{name} does not end")

    def unexpected_ends(self):
        """Names and exit codes of daemons that ended, but not by the SIGKILL of a test."""
        ends = self.top / "log" / "ends"
        lines = ends.read_text().splitlines() if ends.exists() else []
        return [line for line in lines if int(line.split()[1]) != 128 + signal.SIGKILL]

    def wait_until_saved(self, job):
        """Slurm saves what it knows of jobs a few seconds after a change, and forgets the rest when it is killed."""
        comment = f"saved-{time.monotonic_ns()}"
        saved = self.top / "state" / "job_state"

        def is_saved():
            self.run(["scontrol", "update", f"JobId={job}", f"AdminComment={comment}"])
            try:
                return comment.encode() in saved.read_bytes()
            except FileNotFoundError:  # for a moment: it is replaced in several steps
                return False

        self.wait(is_saved, "the jobs are never saved")

    def wait_until_up_again(self, *nodes):
        """Their daemons answer."""
        wanted = {f'forebay_node_up{{node="{node}"}} 1' for node in nodes}
        self.wait(lambda: wanted <= set(self.control("metrics").stdout.splitlines()), f"{nodes} do not answer")

    def start_node(self, node):
        """After `kill_node`."""
        self.run(["ip", "link", "set", "eth0", "up"], node=node)
        self.release(node)
        self.wait_until_up_again(node)
        shown = lambda: self.run(["scontrol", "show", "node", node]).stdout  # noqa: E731
        self.wait(lambda: "State=IDLE" in shown(), shown)

    def release(self, name):
        (self.top / f"hold-{name}").unlink(missing_ok=True)

    def call(self, *words, user="slurm", check=False, timeout_s=None, kill_at=None):
        """`dw_wlm_cli`, as Slurm calls it, perhaps killed after some seconds or at the n-th system call of a name."""
        program = [self.build / "bin" / "dw_wlm_cli", *words]
        if timeout_s is not None:
            program = ["timeout", "-s", "KILL", str(timeout_s), *program]
        if kill_at is not None:
            call, number = kill_at
            inject = ["-e", f"trace={call}", "-e", f"inject={call}:signal=KILL:when={number}"]
            program = [*strace(), "-D", "-qq", "-o", "/dev/null", *inject, *program]
        become = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
        return self.run([*become, *program], check=check, FOREBAY_SITE=str(self.top / "site.toml"))

    def start_call(self, *words, site=None, path=os.defpath):
        """`dw_wlm_cli`, as Slurm calls it, perhaps with another configuration or other programs; it goes on."""
        inside = ["nsenter", "--target", str(self.leader()), "--net", "--mount", "--uts", "--pid"]
        become = ["setpriv", "--reuid=slurm", "--regid=slurm", "--clear-groups"]
        environment = {"PATH": path, "FOREBAY_SITE": str(site or self.top / "site.toml")}
        return subprocess.Popen([*inside, *become, self.build / "bin" / "dw_wlm_cli", *words], env=environment)

    def directories(self, pool="pool"):
        paths = (self.top / "flash" / pool).iterdir()
        return sorted(path.name for path in paths if path.name != ".forebay-pool")

    def on_nodes(self, pool="pool"):
        """Directories in the nodes' own storage, as `NODE/NAME`."""
        stores = [(node, self.top / "hosts" / node / "nvme" / pool) for node in NODES]
        return sorted(
            f"{node}/{path.name}" for node, store in stores for path in store.iterdir() if path.name != ".forebay-pool"
        )


def has_words(command, words):
    return any(command[at : at + len(words)] == list(words) for at in range(len(command)))


class SiteBatch(Batch):
    """Jobs of one user."""

    log_began = 0

    def __init__(self, *of):
        super().__init__(*of)
        self.slurmctld_began = self.slurmctld_log().stat().st_size
        self.log_began = len(self.log())
        self.ends_before = self.cluster.unexpected_ends()

    def reason(self, job):
        """Why a job waits, as a user sees it."""
        text = self.run("scontrol", "-o", "show", "job", job).stdout
        return text.partition("Reason=")[2].partition(" Dependency=")[0].replace("_", " ")

    def waits_for(self, job, text):
        """Until the reason of the job has this text."""
        seen = []

        def reached():
            seen.append(self.reason(job))
            return text in seen[-1]

        self.cluster.wait(reached, lambda: (job, text, seen[-1], self.log()))
        return seen[-1]

    def state_of(self, job):
        """What Slurm, Forebay and the job itself say, for the message of an assertion."""
        shown = self.show_job(job)
        state = {name: shown.get(name) for name in ("JobState", "Reason", "ExitCode", "Restarts", "StartTime")}
        outputs = [(name, (self.directory / name)) for name in ("said", "complained")]
        outputs = {name: path.read_text() for name, path in outputs if path.exists()}
        return f"{state}\n{self.reason(job)}\n{outputs}\n{self.log()}"

    def log(self):
        """The calls since the test began; a Slurm that lost its state gives out IDs again."""
        return (self.cluster.state / "dw_wlm_cli.log").read_text()[self.log_began :]

    def directory_of(self, job):
        """The namespace of a job's allocation, as the hosts see it."""
        return pathlib.Path(self.cluster.allocation(job)["directory"]) / "striped"

    def wait_until_freed(self, *tokens):
        for token in tokens:
            self.cluster.wait(lambda token=token: self.is_freed(token), lambda: (self.cluster.status(), self.log()))

    def script_for_calls(self, *lines):
        """A script that does nothing, with the paths that Slurm would put into its directives."""
        self.script("true", *lines)
        script = self.directory / "job.sh"
        script.write_text(script.read_text().replace("%d", str(self.directory)))
        return script

    def is_freed(self, token):
        """Whether an allocation is gone. Slurm may end the removal that it has started itself, which the site then does."""
        if self.cluster.allocation(token) is None:
            return True
        with self.slurmctld_log().open() as log:
            log.seek(self.slurmctld_began)
            is_lost = f"teardown for JobId={token} terminated by slurmctld" in log.read()
        if is_lost and self.show_job(token)["JobState"] == "CANCELLED":
            warnings.warn(f"Slurm ended the removal of {token}: forebay control reap", stacklevel=2)
            self.cluster.control("reap", check=False)
        return False

    def slurmctld_log(self):
        return self.cluster.top / "log" / "slurmctld"

    def end(self):
        """Leaves nothing to the next test."""
        for job in self.jobs:
            self.run("scancel", "--hurry", job, check=False)
        # Those of salloc, srun and `sbatch --wait`, whose IDs a test that failed does not know.
        self.run("scancel", "--hurry", f"--user={self.user}", check=False)
        for job in self.jobs:
            self.wait(job)
        self.wait_until_freed(*self.jobs)
        assert self.cluster.unexpected_ends() == self.ends_before


def chown(path, user):
    """Gives a tree to a user."""
    for one in [path, *path.rglob("*")]:
        os.chown(one, user, user, follow_symlinks=False)
