"""Records calls as Darshan's runtime does: counters of each rank and file, joined where all ranks used the file.

Only the calls and their times are made up. What Darshan counts of them (order, alternation, classes of sizes,
the four commonest sizes, fastest and slowest rank) follows from its documentation, not from Forebay's readers.
"""

from collections import Counter
from dataclasses import dataclass, field

SHARED = -1
#: Upper ends of Darshan's classes of sizes, and their names; the last has no end.
ENDS = (100, 1024, 10240, 102400, 1048576, 4194304, 10485760, 104857600, 1073741824)
CLASSES = ("0_100", "100_1K", "1K_10K", "10K_100K", "100K_1M", "1M_4M", "4M_10M", "10M_100M", "100M_1G", "1G_PLUS")
PAST = {"READ": "READ", "WRITE": "WRITTEN"}
ALIGNMENT = 1 << 20


def size_class(size):
    return CLASSES[sum(size > end for end in ENDS)]


@dataclass
class Record:
    """What one rank did with one file in one module; names of counters without their prefix."""

    counters: Counter = field(default_factory=Counter)
    seconds: Counter = field(default_factory=Counter)
    moments: dict = field(default_factory=dict)
    sizes: Counter = field(default_factory=Counter)
    last_byte: dict = field(default_factory=lambda: {"READ": 0, "WRITE": 0})
    last_way: str | None = None

    def spent_s(self):
        return sum(self.seconds[name] for name in ("F_READ_TIME", "F_WRITE_TIME", "F_META_TIME"))

    def moved_bytes(self):
        return self.counters["BYTES_READ"] + self.counters["BYTES_WRITTEN"]

    def at(self, what, begin_s, end_s):
        first, last = f"F_{what}_START_TIMESTAMP", f"F_{what}_END_TIMESTAMP"
        self.moments[first] = min(self.moments.get(first, begin_s), begin_s)
        self.moments[last] = max(self.moments.get(last, 0.0), end_s)

    def switch(self, way, count=1):
        """`count` calls of one direction in a row."""
        if self.last_way not in (None, way):
            self.counters["RW_SWITCHES"] += 1
        self.last_way = way

    def in_order(self, way, offset, size, count, step):
        """`count` calls, each `step` bytes behind the begin of the one before."""
        last = self.last_byte[way]
        self.counters[f"SEQ_{way}S"] += offset > last
        self.counters[f"CONSEC_{way}S"] += offset == last + 1
        if count > 1 and step >= size:
            self.counters[f"SEQ_{way}S"] += count - 1
            self.counters[f"CONSEC_{way}S"] += count - 1 if step == size else 0
        end = offset + (count - 1) * step + size - 1 if size else offset + (count - 1) * step
        self.last_byte[way] = max(0, end)
        if size:
            most = max(end, offset + size - 1)
            self.counters[f"MAX_BYTE_{PAST[way]}"] = max(self.counters[f"MAX_BYTE_{PAST[way]}"], most)

    def add_sizes(self, way, size, count, suffix=""):
        self.counters[f"SIZE_{way}{suffix}_{size_class(size)}"] += count
        if size:
            self.sizes[size] += count


class Run:
    """A program of `ranks` ranks. Each rank has a clock, which its calls move on."""

    def __init__(self, ranks, *, program="/home/ada/bin/app", arguments=""):
        self.ranks, self.program, self.arguments = ranks, program, arguments
        self.clock = [0.1] * ranks
        self.records = {}  # (module, path, rank) -> Record
        self.layouts = {}  # path -> (stripe count, stripe bytes, targets)
        self.mounts = [("/lustre", "lustre"), ("/gpfs", "gpfs"), ("/home", "nfs"), ("/", "ext4")]

    def striped(self, path, count, unit=1 << 20, targets=None):
        self.layouts[path] = (count, unit, list(range(count)) if targets is None else targets)
        return path

    def compute(self, seconds, ranks=None):
        for rank in range(self.ranks) if ranks is None else ranks:
            self.clock[rank] += seconds

    def meet(self):
        """A barrier."""
        self.clock = [max(self.clock)] * self.ranks

    def of(self, module, path, rank):
        return self.records.setdefault((module, path, rank), Record())

    def _spend(self, record, rank, what, seconds, time):
        begin_s = self.clock[rank]
        self.clock[rank] += seconds
        record.seconds[time] += seconds
        record.at(what, begin_s, self.clock[rank])

    def open(self, rank, path, seconds=0.0005, module="POSIX", times=1, collective=True):
        record = self.of(module, path, rank)
        name = "OPENS" if module != "MPI-IO" else "COLL_OPENS" if collective else "INDEP_OPENS"
        record.counters[name] += times
        self._spend(record, rank, "OPEN", seconds * times, "F_META_TIME")
        record.at("CLOSE", self.clock[rank], self.clock[rank])

    def stat(self, rank, path, seconds, times=1):
        record = self.of("POSIX", path, rank)
        record.counters["STATS"] += times
        self._spend(record, rank, "OPEN", seconds * times, "F_META_TIME")

    def sync(self, rank, path, seconds, times=1):
        """Darshan counts the time of syncing as time of writing."""
        record = self.of("POSIX", path, rank)
        record.counters["FSYNCS"] += times
        self._spend(record, rank, "WRITE", seconds * times, "F_WRITE_TIME")

    def move(self, rank, path, way, size, seconds, *, offset=0, count=1, step=None, module="POSIX", clock=True):
        """`count` system (or stream) calls of one size, each `seconds` long, `step` bytes apart."""
        record, step = self.of(module, path, rank), size if step is None else step
        record.counters[f"{way}S"] += count
        record.counters[f"BYTES_{PAST[way]}"] += size * count
        if module == "POSIX":
            record.switch(way)
            record.in_order(way, offset, size, count, step)
            record.add_sizes(way, size, count)
            unit = self.layouts.get(path, (0, ALIGNMENT, ()))[1]
            off = count if step % unit or offset % unit else 0
            record.counters["FILE_NOT_ALIGNED"] += off
        elif size:
            end = offset + (count - 1) * step + size - 1
            record.counters[f"MAX_BYTE_{PAST[way]}"] = max(record.counters[f"MAX_BYTE_{PAST[way]}"], end)
        begin_s = self.clock[rank]
        self.clock[rank] += seconds * count
        record.seconds[f"F_{way}_TIME"] += seconds * count
        record.at(way, begin_s, self.clock[rank])
        if not clock:
            self.clock[rank] = begin_s

    def back(self, rank, path, way, size, seconds, count, end):
        """`count` calls at random places: each second one goes back."""
        record = self.of("POSIX", path, rank)
        record.counters[f"SEQ_{way}S"] -= count // 2  # those which `move` takes to be in order
        record.counters[f"CONSEC_{way}S"] -= count - 1
        self.move(rank, path, way, size, seconds, offset=end // 2, count=count)
        record.counters[f"MAX_BYTE_{PAST[way]}"] = end - 1

    def call(self, rank, path, way, size, seconds, *, kind="COLL", count=1, view=False, clock=True):
        """`count` calls of MPI-IO, each `seconds` long. System calls below are recorded by `move(clock=False)`."""
        record = self.of("MPI-IO", path, rank)
        record.counters[f"{kind}_{way}S"] += count
        record.counters[f"BYTES_{PAST[way]}"] += size * count
        record.counters["VIEWS"] += count if view else 0
        record.switch(way)
        record.add_sizes(way, size, count, "_AGG")
        begin_s = self.clock[rank]
        self.clock[rank] += seconds * count
        record.seconds[f"F_{way}_TIME"] += seconds * count
        record.at(way, begin_s, self.clock[rank])
        if not clock:
            self.clock[rank] = begin_s

    def joined(self):
        """(module, path, rank, counters, seconds) as in the log: one record where all ranks used the file."""
        of_file = {}
        for (module, path, rank), record in self.records.items():
            of_file.setdefault((module, path), {})[rank] = record
        for (module, path), records in of_file.items():
            if len(records) == self.ranks > 1:
                yield module, path, SHARED, *_joined(records)
            else:
                for rank, record in records.items():
                    yield module, path, rank, record.counters | _common(record.sizes), record.seconds | record.moments

    @property
    def wall_s(self):
        return max(self.clock)


def _common(sizes):
    found = Counter()
    for number, (size, count) in enumerate(sizes.most_common(4), 1):
        found[f"ACCESS{number}_ACCESS"], found[f"ACCESS{number}_COUNT"] = size, count
    return found


def _joined(records):
    counters, seconds, moments, sizes = Counter(), Counter(), {}, Counter()
    for record in records.values():
        for name, value in record.counters.items():
            counters[name] = max(counters[name], value) if name.startswith("MAX_") else counters[name] + value
        seconds.update(record.seconds)
        sizes.update(record.sizes)
        for name, moment in record.moments.items():
            earliest = min if "START" in name else max
            moments[name] = earliest(moments.get(name, moment), moment)
    fastest, slowest = (choose(records, key=lambda rank: records[rank].spent_s()) for choose in (min, max))
    for name, rank in (("FASTEST", fastest), ("SLOWEST", slowest)):
        counters[f"{name}_RANK"], counters[f"{name}_RANK_BYTES"] = rank, records[rank].moved_bytes()
        seconds[f"F_{name}_RANK_TIME"] = records[rank].spent_s()
    return counters | _common(sizes), seconds | moments
