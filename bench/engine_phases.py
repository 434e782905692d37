"""The phases of I/O and names that are compared on the nodes of a bed, and the workers that go through them."""

import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence

from measure import Compared, Counted, Line
from support.bed_files import PYTHON
from support.nodes import Bed

NODE_MIB = int(os.environ.get("ENGINES_MIB") or 128)
RECORDS = int(os.environ.get("ENGINES_RECORDS") or 1000)
RECORD_BYTES = 47_008
NAMES = int(os.environ.get("ENGINES_NAMES") or 500)
ROUNDS = int(os.environ.get("ENGINES_ROUNDS") or 3)
USER = "ada"
TCP_S = 2
OWN_WRITE, OWN_READ = "file per process, write", "file per process, read of another node"
SERVER_PROGRAMS = ("ceph-mon", "ceph-osd", "ceph-mds", "glusterd", "glusterfsd")


def capacity(bed: Bed) -> str:
    """What the phases of one directory need."""
    return f"{len(bed.names) * (NODE_MIB + RECORDS * RECORD_BYTES // (1 << 20) + 64)}MiB"


def tmpfs_of(bed: Bed) -> pathlib.Path:
    """A new directory of the user in a tmpfs that all nodes see."""
    directory = bed.top / "mpi" / "bench"
    bed.run("n1", ["mkdir", directory], USER)
    return directory


class Workers:
    """A worker on each node. A phase lasts until the last has answered."""

    def __init__(self, processes: list[subprocess.Popen]):
        self.processes = processes

    def phase(self, requests: Sequence[Sequence[object]]) -> float:
        lines = [json.dumps(list(map(plain, request))) + "\n" for request in requests]
        began = time.perf_counter()
        for process, line in zip(self.processes, lines):
            process.stdin.write(line)
            process.stdin.flush()
        answers = [process.stdout.readline().strip() for process in self.processes]
        taken = time.perf_counter() - began
        wrong = [answer or "a worker ended" for answer in answers if answer != "done"]
        if wrong:
            raise SystemExit(f"error: {'; '.join(wrong)}")
        return taken


def plain(value: object) -> object:
    return value if isinstance(value, int) else str(value)


@contextlib.contextmanager
def workers(
    bed: Bed, python: Sequence[object] = (PYTHON,), arguments: Sequence[Sequence[object]] | None = None
) -> Iterator[Workers]:
    """`python` starts the program of each; `arguments` are those of each node."""
    here = pathlib.Path(__file__).parent
    program, _ = (bed.copied(here / name) for name in ("engine_worker.py", "engine_library.py"))
    start = lambda node, its_own: bed.popen(node, [*python, program, *its_own], USER)
    processes = [start(*one) for one in zip(bed.names, arguments or [()] * len(bed.names))]
    try:
        yield Workers(processes)
    finally:
        for process in processes:
            process.stdin.close()
            process.wait(timeout=60)


class Phases:
    """The phases of one round in a directory that all workers see: rates by name, of all nodes together."""

    def __init__(self, bed: Bed, all_workers: Workers, directory: pathlib.PurePath):
        self.bed, self.workers, self.directory = bed, all_workers, directory
        self.count = len(bed.names)
        #: Seconds of processors of the servers and of all other processes on the nodes, by phase.
        self.cpu_s: dict[str, list[tuple[float, float]]] = {}

    def once(self) -> dict[str, float]:
        rates = {}
        # One node makes what all share: a mkdir on two nodes at the same time may fail in Gluster.
        nodes = range(self.count)
        self.workers.phase([["make", *(name for name in self.left_by(node) if name.endswith("/"))] for node in nodes])
        for name, (amount, request) in self.plan().items():
            before = self.processors_s()
            rates[name] = amount / self.workers.phase([request(node) for node in nodes])
            taken = tuple(after - was for after, was in zip(self.processors_s(), before))
            self.cpu_s.setdefault(name, []).append(taken)
        # By who made them: root cannot enter the mount, and a library has none.
        self.workers.phase([["remove", *self.left_by(node)] for node in nodes])
        return rates

    def plan(self) -> dict:
        """By name: how much it is, and what each node does."""
        count, top = self.count, self.directory
        other = lambda node: (node + 1) % count
        mib = count * NODE_MIB
        shared_mib = count * RECORDS * RECORD_BYTES / (1 << 20)
        names = count * NAMES
        records = lambda call, whose: lambda node: [call, top / "shared", whose(node), count, RECORDS, RECORD_BYTES]
        own = lambda call, whose: lambda node: [call, top / f"names{whose(node)}", NAMES]
        one = lambda call, whose: lambda node: [call, top / "one", NAMES, whose(node) * NAMES]
        return {
            OWN_WRITE: (mib, lambda node: ["write", top / f"own{node}", node, NODE_MIB]),
            OWN_READ: (mib, lambda node: ["read", top / f"own{other(node)}", other(node), NODE_MIB]),
            "shared file, write": (shared_mib, records("write_records", int)),
            "shared file, read of another node": (shared_mib, records("read_records", other)),
            "create": (names, own("create", int)),
            "stat of another node": (names, own("stat", other)),
            "unlink": (names, own("unlink", int)),
            "create in one directory": (names, one("create", int)),
            "stat of another node in one directory": (names, one("stat", other)),
            "unlink in one directory": (names, one("unlink", int)),
        }

    def left_by(self, node: int) -> list[str]:
        names = [f"own{node}", f"names{node}/", *(["shared", "one/"] if node == 0 else [])]
        return [f"{self.directory}/{name}" for name in names]

    def processors_s(self) -> tuple[float, float]:
        servers_s = others_s = 0.0
        for node in self.bed.names:
            for pid, words in self.bed.processes(node):
                # A bundle's programs follow its loader.
                if any(pathlib.PurePath(word).name in SERVER_PROGRAMS for word in words[:4]):
                    servers_s += processor_s(pid)
                else:
                    others_s += processor_s(pid)
        return servers_s, others_s

    def cpu_s_of_gib(self, name: str) -> tuple[float, float]:
        """Of the files per process: servers, and all other processes, which are mounts and workers."""
        gib = self.count * NODE_MIB / 1024
        return tuple(statistics.median(each) / gib for each in zip(*self.cpu_s[name]))


def processor_s(pid: int) -> float:
    with contextlib.suppress(OSError):
        words = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def tcp(bed: Bed) -> float:
    """One stream from the second node to the first, in MiB/s."""
    address = bed.address("n1")
    server = bed.popen("n1", ["iperf3", "-s", "-1", "-B", address])
    try:
        for _ in range(50):
            words = ["iperf3", "-c", address, "-t", TCP_S, "-l", "1M", "-J"]
            done = bed.run("n2", words, check=False)
            received = json.loads(done.stdout or "{}").get("end", {}).get("sum_received")
            if received:
                return received["bits_per_second"] / 8 / (1 << 20)
            time.sleep(0.1)  # the server does not listen yet
        raise SystemExit(f"error: iperf3: {done.stdout}")
    finally:
        server.kill()
        server.communicate()


def compared(
    bed: Bed,
    a_is: str,
    a: list[dict],
    others: Mapping[str, list[dict]],
    again: list[dict],
    stream: Sequence[float] = (),
) -> list[Line]:
    """For each phase a line with each other; `stream` is one TCP stream."""
    lines = []
    for name in a[0]:
        of = lambda way: [rates[name] for rates in way]
        is_name = name.split()[0] in ("create", "stat", "unlink")
        ways = {b_is: of(way) for b_is, way in others.items()}
        if stream and not is_name:
            ways["one TCP stream"] = stream
        for b_is, b in ways.items():
            what, unit = f"{name}, {len(bed.names)} nodes", "names/s" if is_name else "MiB/s"
            lines.append(Compared(what, a_is, b_is, unit, of(a), b, of(again), more_is_better=True))
    return lines


def cpu(bed: Bed, phases: Phases) -> Line:
    """Of the files per process: engine, mounts and workers together."""
    write, read = (sum(phases.cpu_s_of_gib(name)) for name in (OWN_WRITE, OWN_READ))
    what = f"processor time, {len(bed.names)} nodes"
    return Counted(what, "write", "read", "s/GiB", write, read, "all processes on the nodes")
