"""A real Slurm: controller and four hosts on this machine, each a network, a name, processes and storage of its own."""

import contextlib
import os
import pathlib
import secrets
import shutil
import signal
import subprocess
import tempfile
import time

import pytest

HERE = pathlib.Path(__file__).parent
NODES = ("n1", "n2", "n3", "n4")
NOBODY = 65534
WAIT_S = 180  # a hang, not a slow machine

CONFIGURATION = """
ClusterName=forebay
SlurmctldHost=ctl(10.77.0.100)
SlurmUser=slurm
AuthType=auth/munge
AuthInfo=socket={top}/munge/socket,cred_expire=6
CredType=cred/munge
MpiDefault=pmi2
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmctldPidFile={top}/state/slurmctld.pid
SlurmdPidFile={top}/hosts/%n/slurmd.pid
SlurmdSpoolDir={top}/hosts/%n/spool
StateSaveLocation={top}/state
SlurmctldLogFile={top}/log/slurmctld
SlurmdLogFile={top}/log/%n
SlurmctldDebug=debug
SlurmdDebug=debug
MailProg=/bin/true
ReturnToService=2
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0,sched_min_interval=0
MinJobAge=300
KillWait=5
CompleteWait=0
JobRequeue=1
SlurmdParameters=config_overrides
PartitionName=main Nodes=n[1-4] Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES
"""
NODE = "NodeName=n{number} NodeAddr=10.77.0.{number} CPUs=2 RealMemory=4000 State=UNKNOWN\n"


def missing():
    """Why there can be no cluster here; None if there can."""
    if os.getuid() != 0:
        return "only root can make hosts out of namespaces"
    programs = ("munged", "slurmctld", "slurmd", "sbatch", "ip", "unshare", "nsenter", "setpriv")
    gone = [name for name in programs if shutil.which(name, path=os.defpath + ":/usr/sbin:/sbin") is None]
    return f"not installed: {' '.join(gone)}" if gone else None


@contextlib.contextmanager
def started(kind, build):
    """A cluster of this class, up; skips where there can be none."""
    why = missing()
    if why:
        pytest.skip(why)
    cluster = kind(build)
    try:
        cluster.wait_until_up()
        yield cluster
    finally:
        cluster.shut_down()


class Cluster:
    """`make_files` is what a cluster with more than Slurm extends."""

    def __init__(self, build: pathlib.Path):
        # Every user's processes must reach it, which pytest's own folders do not allow. In the reason of a job, Slurm
        # shows a blank as an underscore, so its name has none.
        self.top = pathlib.Path(tempfile.gettempdir()) / f"forebay-slurm-{secrets.token_hex(4)}"
        self.top.mkdir()
        self.top.chmod(0o755)
        self.build = build.resolve()
        self.shared = self.top / "shared"  # the parallel file system of the cluster
        self.mount_points = []  # here, not in the hosts
        self.make_files()
        environment = {"PATH": f"{os.defpath}:/usr/sbin:/sbin", "SLURM_CONF": str(self.top / "slurm.conf")}
        words = "unshare --net --mount --uts --pid --fork --kill-child --mount-proc".split()
        self.leaders = {}
        self.log = (self.top / "log" / "cluster").open("w")
        self.holder = subprocess.Popen(
            [*words, self.top / "cluster.sh", self.top, self.build],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
        )

    def make_files(self):
        for name in ("munge", "state", "log", "shared", "hosts"):
            (self.top / name).mkdir(mode=0o755)
        for name in NODES:
            for part in ("nvme", "tmp", "spool"):
                (self.top / "hosts" / name / part).mkdir(parents=True)
            for part in ("nvme", "tmp"):
                (self.top / "hosts" / name / part).chmod(0o1777)
        self.shared.chmod(0o1777)
        for name in ("cluster.sh", "bridge.sh", "node.sh", "restart.sh"):
            shutil.copy(HERE / name, self.top)
        key = self.top / "munge" / "key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        for path in (key.parent, key):
            shutil.chown(path, "munge", "munge")
        addresses = [f"10.77.0.{number} {name}\n" for number, name in enumerate(NODES, 1)]
        (self.top / "etc-hosts").write_text("".join(["127.0.0.1 localhost\n", "10.77.0.100 ctl\n", *addresses]))
        shutil.chown(self.top / "state", "slurm", "slurm")
        shutil.chown(self.top / "log", "slurm", "slurm")
        nodes = "".join(NODE.format(number=number) for number in range(1, len(NODES) + 1))
        (self.top / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        (self.top / "slurm.conf").write_text(
            CONFIGURATION.format(top=self.top).replace("PartitionName", nodes + "PartitionName")
        )

    def wait_until_up(self):
        def has_begun():
            first = children(self.holder.pid)
            return first and command_of(first[0])[:2] == ["/bin/bash", str(self.top / "cluster.sh")]

        self.wait(has_begun, "the controller's host never was")
        self.wait_until_idle()

    def wait_until_idle(self):
        def idle():
            said = self.run(["sinfo", "-h", "-o", "%D %t"], check=False)
            return said.stdout.split() == [str(len(NODES)), "idle"]

        self.wait(idle, "the nodes never were idle")

    def wait(self, reached, complaint):
        """The complaint is a value, or a function that returns it."""
        began = time.monotonic()
        while not reached():
            waited_s = time.monotonic() - began
            assert self.holder.poll() is None, (self.top / "log" / "cluster").read_text()
            assert waited_s < WAIT_S, complaint() if callable(complaint) else complaint
            time.sleep(min(max(waited_s / 10, 0.05), 0.5))  # most conditions start a program that asks Slurm

    def leader(self, node=None):
        """The first process of the controller's or a node's namespaces, as seen from here."""
        if node is None:
            return children(self.holder.pid)[0]
        is_leader = lambda pid: command_of(pid)[:3] == ["/bin/bash", str(self.top / "node.sh"), node]  # noqa: E731
        if not is_leader(self.leaders.get(node)):
            # A subshell has the same command line for a moment, and comes after it.
            self.leaders[node] = next(pid for pid in descendants(self.holder.pid) if is_leader(pid))
        return self.leaders[node]

    def run(self, words, node=None, user=None, check=True, **environment):
        """A command on the controller's host, or on a node, to its end."""
        inside = [
            "nsenter",
            "--target",
            str(self.leader(node)),
            "--net",
            "--mount",
            "--uts",
            "--pid",
            f"--wdns={self.shared}",
        ]
        become = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user else []
        program = self.build / "bin"
        site = {
            "PATH": f"{program}:{os.defpath}:/usr/sbin:/sbin",
            "SLURM_CONF": str(self.top / "slurm.conf"),
            "FOREBAY_STORE": "/mnt/nvme",
            "FOREBAY_STATE": str(self.shared / f"state-{user or 0}"),
            "HOME": str(self.shared),
            "FOREBAY_SITE_CONFIG": "/dev/null/none",
        }
        done = subprocess.run(
            [*inside, *become, *map(str, words)], env=site | environment, capture_output=True, text=True, timeout=WAIT_S
        )
        assert not check or done.returncode == 0, (words, done.stdout, done.stderr)
        return done

    def shut_down(self):
        """Ends all that is in the namespaces; what the kernel kills with their first process needs no list."""
        (first,) = children(self.holder.pid) or [self.holder.pid]
        os.kill(first, signal.SIGKILL)
        self.holder.wait(timeout=WAIT_S)
        self.log.close()
        for path in self.mount_points:
            subprocess.run(["umount", path], check=True)
        shutil.rmtree(self.top)


def children(pid):
    """The children of a process, whichever of its threads started them."""
    found = []
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return found  # the process has ended
    for task in tasks:
        try:
            text = pathlib.Path(f"/proc/{pid}/task/{task}/children").read_text()
        except OSError:
            continue  # the thread has ended
        found += [int(word) for word in text.split()]
    return found


def descendants(pid):
    for child in children(pid):
        yield child
        yield from descendants(child)


def is_program(command, name):
    """Whether the first word of a command line begins so; one that has ended has no words."""
    return "".join(command[:1]).startswith(name)


def command_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []
