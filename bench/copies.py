"""Files of each node in three namespaces of Ceph: striped with one copy, striped with two, and local to their node."""

import contextlib
import pathlib
import statistics

from engine_phases import NODE_MIB, ROUNDS, USER, Workers, capacity, workers
from measure import Compared, Counted, Line, in_turn
from support import engines as support_engines
from support.nodes import Bed

#: Aimed at: the rate of writes with two copies, and that of local files, as multiples of striped files with one copy.
TWO_COPIES_MIN, LOCAL_MIN = 0.45, 1.0
#: Of each byte written into a local file. Daemons of the nodes talk to each other meanwhile.
SENT_MAX = 0.02
SENT = ["awk", "/eth0/ { print $10 }", "/proc/net/dev"]


class OwnFiles:
    """A file of each node in one namespace."""

    def __init__(self, bed: Bed, all_workers: Workers, directory: pathlib.Path):
        self.bed, self.workers, self.directory = bed, all_workers, directory
        self.nodes = range(len(bed.names))
        #: Bytes that all nodes sent to each other for each byte that they wrote.
        self.sent: list[float] = []

    def once(self) -> dict[str, float]:
        mib = len(self.nodes) * NODE_MIB
        path = lambda node: self.directory / f"own{node}"
        other = lambda node: (node + 1) % len(self.nodes)
        before = self.bytes_sent()
        write_s = self.workers.phase([["write", path(node), node, NODE_MIB] for node in self.nodes])
        self.sent.append((self.bytes_sent() - before) / (mib << 20))
        # Another node opens the file to write it. So its own node has nothing of it in its cache.
        self.workers.phase([["write_records", path(other(node)), node, 1, 0, 1] for node in self.nodes])
        read_s = self.workers.phase([["read", path(node), node, NODE_MIB] for node in self.nodes])
        self.workers.phase([["remove", path(node)] for node in self.nodes])
        return {"write": mib / write_s, "read of the own node": mib / read_s}

    def bytes_sent(self) -> int:
        return sum(int(self.bed.run(node, SENT).stdout) for node in self.bed.names)


def copies(bed: Bed) -> list[Line]:
    """In turn, in the namespaces of three jobs."""
    more = {"one copy": "", "two copies": " redundancy=2", "local": " placement=local"}
    with contextlib.ExitStack() as stack:
        all_workers = stack.enter_context(workers(bed))
        ways = []
        for name, words in more.items():
            asked = {"capacity": capacity(bed) + words, "name": name.replace(" ", "-")}
            job = support_engines.of_job(bed, USER, "--engine", "ceph", **asked)
            ways.append(OwnFiles(bed, all_workers, stack.enter_context(job)))
        one, two, local, again = in_turn(ROUNDS, *(way.once for way in ways))
    lines = []
    for name in one[0]:
        of = lambda way: [each[name] for each in way]
        for b_is, b, least in (("two copies", two, TWO_COPIES_MIN), ("local", local, LOCAL_MIN)):
            ratio = statistics.median(of(b)) / statistics.median(of(one) + of(again))
            is_aim = name == "write" or b_is == "local"
            promise, kept = (f"at least {least}, is {ratio:.2f}", ratio >= least) if is_aim else (None, None)
            what = f"file of each node, {name}, {len(bed.names)} nodes"
            lines.append(Compared(what, "one copy", b_is, "MiB/s", of(one), of(b), of(again), True, promise, kept))
    striped, _, of_local = (statistics.median(way.sent) for way in ways)
    what = f"bytes sent by all nodes for each byte written, {len(bed.names)} nodes"
    promise = f"at most {SENT_MAX}"
    lines.append(Counted(what, "one copy", "local", "", striped, of_local, "counted", promise, of_local <= SENT_MAX))
    return lines
