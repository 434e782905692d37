"""A test bed: some nodes of one job on this machine, for everything that needs more than one node.

    with nodes(2, build) as bed:
        bed.run("n1", ["ssh", "n2", "hostname"], user="ada").stdout == "n2\\n"

A node (n1, n2, ...) is a network, a mount and a host name namespace. It has

* an address on the bed's bridge; the names of all nodes resolve on every node, and `ssh n2 COMMAND` works from every
  node to every node, without a password, for root and for the users of USERS;
* its own /run, /tmp, /dev/shm, and its own store STORE, a tmpfs of `store_bytes`;
* in common with all nodes: `bed.shared`, a plain directory that every user may write to (the shared file system), the
  homes, the build under test as BUILD (its bin is first in PATH), the Python of the tests as PYTHON, and the rest of
  the machine's files.

A rank of an MPI program needs its node's mounts only: `bed.mpirun` places rank r on node r % N, and MPI itself stays
in the memory of the machine. FOREBAY_BED_NODE tells a rank its node (1, 2, ...). A check that reads back must choose
whose data it reads by that number: the next rank may be on the same node.

Several beds live side by side: each has its own bridge and subnet, and its own process numbers. Only root can make
one; `missing()` says why there can be none. The files of the machine are not touched. However the test ends, killed
included, the kernel ends all processes of the bed, and with them its mounts and networks; of a killed test only the
directory /tmp/forebay-bed-* stays.
"""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator, Sequence

from support import bed_files
from support.bed_files import BUILD, PYTHON, STORE, USERS
from support.bed_processes import (
    Entered,
    alive,
    children,
    identity,
    members,
    mounts_of,
    namespace,
    number_inside,
    send,
    state_of,
    words_of,
)
from support.mpi import LAUNCHING
from support.waiting import wait_until

HERE = pathlib.Path(__file__).parent
PROJECT = HERE.parents[1]
STORE_BYTES = 256 << 20
WAIT_S = 180  # a hang, not a slow machine
PROGRAMS = ("ip", "nsenter", "unshare", "setpriv", "sshd", "ssh", "ssh-keygen")


def missing() -> str | None:
    """Why there can be no nodes here; None if there can."""
    if os.getuid() != 0:
        return "only root can make nodes out of namespaces"
    gone = [name for name in PROGRAMS if shutil.which(name, path=os.defpath + ":/usr/sbin:/sbin") is None]
    return f"not installed: {' '.join(gone)}" if gone else None


@contextlib.contextmanager
def nodes(
    count: int, build: pathlib.Path, store_bytes: int = STORE_BYTES, clean_s: float = WAIT_S
) -> Iterator["VirtualNodes"]:
    """A bed of so many nodes; fails at its end when the test's processes or mounts stay for `clean_s` on a node."""
    bed = VirtualNodes(count, build, store_bytes)
    try:
        bed.wait_until_up()
        yield bed
        bed.wait_until_clean(clean_s)
    finally:
        bed.shut_down()


class VirtualNodes:
    """Use `nodes()`. A node is named "n1", "n2", ...; process numbers are the machine's, not the bed's."""

    def __init__(self, count: int, build: pathlib.Path, store_bytes: int):
        assert count < 100, "the head of a bed has the address after 99 nodes"
        # Every user's processes must reach it, which pytest's own folders do not allow.
        self.top = pathlib.Path(tempfile.mkdtemp(prefix="forebay-bed-")).resolve()
        self.top.chmod(0o755)
        self.names = tuple(f"n{number}" for number in range(1, count + 1))
        # Nothing but the eye needs different subnets.
        number = zlib.crc32(self.top.name.encode()) % (1 << 14)
        self.subnet = f"10.{64 + (number >> 8)}.{number & 255}"
        self.shared = self.top / "shared"
        self.build = build
        self._keepers: dict[str, int] = {}
        self._mounts: dict[str, set[str]] = {}
        bed_files.write_files(self.top, self.names, self.subnet)
        for name in ("bed.sh", "bridge.sh", "bed_node.sh", "rank.sh"):
            shutil.copy(HERE / name, self.top)
        self._log = (self.top / "log").open("w")
        self._holder = self._start_head(build.resolve(), store_bytes)

    def _start_head(self, build: pathlib.Path, store_bytes: int) -> subprocess.Popen:
        visible = {PROJECT, build, pathlib.Path(sys.prefix).resolve()}
        numbers = [self.subnet, store_bytes, len(self.names)]
        words = "unshare --net --mount --uts --pid --fork --kill-child --mount-proc".split()
        return subprocess.Popen(
            [*words, self.top / "bed.sh", self.top, build, sys.base_prefix, *map(str, numbers), *sorted(visible)],
            env={"PATH": f"{os.defpath}:/usr/sbin:/sbin"},
            stdin=subprocess.PIPE,
            stdout=self._log,
            stderr=self._log,
        )

    # Making it and ending it

    def wait_until_up(self) -> None:
        """Every node's sshd listens."""

        def is_up():
            assert self._holder.poll() is None, self.logs()
            return all((self.top / "hosts" / name / "sshd").exists() for name in self.names)

        try:
            wait_until(is_up, WAIT_S, "the nodes of the test bed")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.logs()}") from None
        for pid in children(self._head()):
            self._keepers[words_of(pid)[2]] = pid
        self._mounts = {name: self._mount_points(name) for name in self.names}

    def logs(self) -> str:
        """What the scripts and the ssh servers said."""
        paths = [self.top / "log", *(self.top / "hosts" / name / "log" for name in self.names)]
        return "".join(f"{path}:\n{path.read_text(errors='replace')}" for path in paths if path.exists())

    def wait_until_clean(self, seconds: float = WAIT_S) -> None:
        """Fails when processes or mounts stay on the nodes."""
        try:
            wait_until(lambda: not self.leftovers(), seconds)
        except AssertionError:
            left = self.leftovers()
            assert not left, f"left on the nodes: {left}"

    def leftovers(self) -> list[str]:
        """Processes and mounts that were not there when the bed was made."""
        found = []
        for name in self.names:
            found += [f"{name}: process {pid} {' '.join(words)}" for pid, words in self.processes(name)]
            found += [f"{name}: mount {point}" for point in sorted(self._mount_points(name) - self._mounts[name])]
        return found

    def shut_down(self) -> None:
        """Ends everything of the bed, in whatever state it is; fails when something of it stays."""
        first = next(iter(children(self._holder.pid)), None)
        inside = self.all_processes() if first else set()
        try:
            self._abort_fuse([pid for pid, _ in inside])
            if first is not None:
                send(first, signal.SIGKILL)
            self._holder.stdin.close()
            self._holder.wait(timeout=WAIT_S)
            # The kernel has ended those inside; what has entered from outside follows.
            wait_until(lambda: not alive(inside), WAIT_S, f"the end of {alive(inside)}")
        finally:
            self._log.close()
            here = [" ".join(words) for words in mounts_of(os.getpid()) if str(self.top) in " ".join(words)]
            assert not here, f"mounts of the test bed outside of it: {here}"
            shutil.rmtree(self.top)

    def all_processes(self) -> set[tuple[int, str]]:
        """The identities of all that is in any namespace of the bed, which ends with them."""
        head = self._head()
        inside = {head, *members({namespace(head, "pid")}, "pid")}
        for kind in ("mnt", "net"):
            inside |= set(
                members({namespace(pid, kind) for pid in inside} - {namespace(os.getpid(), kind), None}, kind)
            )
        return {found for pid in inside if (found := identity(pid))}

    def _abort_fuse(self, pids: Sequence[int]) -> None:
        """Whoever waits for a FUSE daemon that will not answer cannot be killed before."""
        head = next(iter(children(self._holder.pid)), None)
        seen = set()
        for pid in pids:
            for words in mounts_of(pid):
                kind = words[words.index("-") + 1]
                if kind.split(".")[0] in ("fuse", "fuseblk"):
                    seen.add(int(words[2].split(":")[1]))
        ours = {int(words[2].split(":")[1]) for words in mounts_of(os.getpid())}
        for connection in seen - ours:
            with contextlib.suppress(OSError):
                pathlib.Path(f"/proc/{head}/root/sys/fs/fuse/connections/{connection}/abort").write_text("1")

    # Commands

    def address(self, node: str) -> str:
        return bed_files.addresses(self.names, self.subnet)[node]

    def home(self, user: str | None = None) -> pathlib.Path:
        return bed_files.home(self.top, user)

    def copied(self, path: pathlib.Path) -> pathlib.Path:
        """A copy of a file of the machine where every user of every node reaches it."""
        return pathlib.Path(shutil.copy(path, self.top))

    def popen(
        self,
        node: str,
        words: Sequence[object],
        user: str | None = None,
        directory: pathlib.Path | None = None,
        mounts_only: bool = False,
        **environment: object,
    ) -> Entered:
        """Starts a command on a node, in `shared` unless told otherwise; its signals reach the command itself.

        With `mounts_only` it has the node's mounts, but the network and the name of the head, as a rank of MPI.
        """
        keeper = number_inside(self._keepers[node])
        inner = [f"--mount=/proc/{keeper}/ns/mnt"]
        if not mounts_only:
            inner += [f"--net=/proc/{keeper}/ns/net", f"--uts=/proc/{keeper}/ns/uts"]
        become = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user else []
        # The user changes to the directory, as FUSE may hide it even from root.
        enter = ["nsenter", *inner, *become, "env", f"--chdir={directory or self.shared}"]
        return self._in_head([*enter, *words], user, environment)

    def run(
        self, node: str, words: Sequence[object], user: str | None = None, **options
    ) -> subprocess.CompletedProcess:
        """The same to its end. `check=False`: it may fail; `input`: text for it; `seconds`: its limit."""
        ends = {name: options.pop(name) for name in ("check", "input", "seconds") if name in options}
        return ended(self.popen(node, words, user, **options), **ends)

    def mpirun(
        self,
        ranks: int,
        words: Sequence[object],
        user: str | None = None,
        options: Sequence[object] = (),
        directory: pathlib.Path | None = None,
        shift: int = 0,
        check: bool = True,
        **environment: object,
    ) -> subprocess.CompletedProcess:
        """Open MPI's `mpiexec OPTIONS -n RANKS WORDS`, rank r in the mount namespace of node (r + shift) % N.

        A program that reads what it wrote in an earlier run reads another node's data when the shift has changed.
        """
        return ended(self.mpi_popen(ranks, words, user, options, directory, shift, **environment), check)

    def mpi_popen(self, ranks, words, user=None, options=(), directory=None, shift=0, **environment) -> Entered:
        """The same, started only."""
        keepers = " ".join(str(number_inside(self._keepers[name])) for name in self.names)
        # The ranks have no /tmp and no /dev/shm in common; Open MPI's files of a job must be.
        scratch = self.top / "mpi"
        environment = (
            LAUNCHING
            | {
                "OMPI_MCA_orte_tmpdir_base": scratch,
                "OMPI_MCA_btl_vader_backing_directory": scratch,
                "OMPI_MCA_btl": "self,vader",
                "FOREBAY_BED_KEEPERS": keepers,
                "FOREBAY_BED_SHIFT": shift,
                "FOREBAY_BED_DIRECTORY": directory or self.shared,
            }
            | environment
        )
        become = [f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user else []
        able = "+sys_admin,+sys_chroot,+sys_ptrace"  # to enter a node
        launch = ["setpriv", *become, f"--inh-caps={able}", f"--ambient-caps={able}", "mpiexec", *options, "-n", ranks]
        return self._in_head([*launch, self.top / "rank.sh", *words], user, environment)

    def _in_head(self, words, user, environment) -> Entered:
        """In the head's network and the bed's processes."""
        enter = ["nsenter", f"--target={self._head()}", "--net", "--mount", "--uts", "--pid", f"--wdns={self.shared}"]
        who = {"HOME": self.home(user), "USER": user or "root", "LOGNAME": user or "root"}
        return Entered(
            [str(word) for word in [*enter, *words]],
            env={name: str(value) for name, value in (bed_files.environment_of_nodes() | who | environment).items()},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )

    # Troubles

    def processes(self, node: str) -> list[tuple[int, list[str]]]:
        """(process number, command line) of what runs on a node, without what makes it a node. MPI ranks belong to
        it, also a process that has made further mount namespaces there."""
        keeper = self._keepers[node]
        found = {pid for kind in ("mnt", "net") for pid in members({namespace(keeper, kind)}, kind)}
        found -= {keeper, *children(keeper)}
        return [(pid, words_of(pid)) for pid in sorted(found) if state_of(pid) not in (None, "Z")]

    def kill(self, node: str, part: str, number: int = signal.SIGKILL) -> list[int]:
        """Signals every process of a node with `part` in its command line; returns their numbers."""
        found = [pid for pid, words in self.processes(node) if part in " ".join(words)]
        for pid in found:
            send(pid, number)
        return found

    def link(self, node: str, state: str) -> None:
        """Pulls ("down") or plugs ("up") the node's cable."""
        self._at_port(node, f'ip link set "$0" {state}')

    def interrupt_link(self, node: str, seconds: float) -> None:
        """Pulls the cable for so long, however busy the test itself is."""
        self._at_port(node, f'ip link set "$0" down; sleep {seconds}; ip link set "$0" up')

    def _at_port(self, node: str, script: str) -> None:
        port = f"port{self.names.index(node) + 1}"
        words = ["nsenter", f"--net=/proc/{self._head()}/ns/net", "sh", "-ec", script, port]
        subprocess.run(words, check=True)

    def crash(self, node: str) -> None:
        """The node dies: without network, every process of it killed, its ssh server included. Its memory stays
        to be looked at."""
        self.link(node, "down")
        self._abort_fuse([self._keepers[node], *(pid for pid, _ in self.processes(node))])
        wait_until(lambda: not self._kill_all(node), WAIT_S, f"the end of all processes of {node}")

    def _kill_all(self, node: str) -> list[int]:
        found = [pid for pid, _ in self.processes(node)]
        found += [pid for pid in children(self._keepers[node]) if state_of(pid) not in (None, "Z")]
        for pid in found:
            send(pid, signal.SIGKILL)
        return found

    def stuck(self) -> list[tuple[int, list[str]]]:
        """Processes of the nodes in uninterruptible sleep."""
        running = {pid: words for name in self.names for pid, words in self.processes(name)}
        return [(pid, words) for pid, words in running.items() if state_of(pid) == "D"]

    def path_of(self, node: str, path: pathlib.Path | str) -> pathlib.Path:
        """Where the machine itself sees a path of a node: its store, its /tmp."""
        return pathlib.Path(f"/proc/{self._keepers[node]}/root{path}")

    def _mount_points(self, node: str) -> set[str]:
        return {words[4] for words in mounts_of(self._keepers[node])}

    def _head(self) -> int:
        """The bed's first process."""
        return children(self._holder.pid)[0]


def ended(
    process: subprocess.Popen, check: bool = True, input: str | None = None, seconds: float = WAIT_S
) -> subprocess.CompletedProcess:
    """Waits for a command of a node; kills it at the limit or when the test ends."""
    try:
        out, err = process.communicate(input, timeout=seconds)
    except BaseException:
        process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=5)  # what it has started may hold the pipes
        raise
    assert not check or process.returncode == 0, (process.args, process.returncode, out, err)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


__all__ = ["BUILD", "VirtualNodes", "PYTHON", "STORE", "STORE_BYTES", "USERS", "ended", "missing", "nodes"]
