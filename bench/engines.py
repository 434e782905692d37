"""Jobs on several nodes with the engine ceph, on the nodes of a test bed: start and end, memory, I/O, names, staging.

Nodes are namespaces of this machine, so all of them share its processors and its memory. Beside each row of I/O and names
are a tmpfs that all nodes see, and one TCP stream between two nodes, in the same rounds. Only root can make the nodes.

ENGINES_NODES=2,4, ENGINES_MIB=128 (of each node, written and read), ENGINES_RECORDS=1000 (of 47,008 bytes, of each node),
ENGINES_NAMES=500 (of each node), ENGINES_FILES=2000 (small files that are staged), ENGINES_STAGE_MIB=256 (of four large
files), ENGINES_ROUNDS=3. ENGINES_ONLY=start runs one part: start, namespace, clients (both of CephFS, in turn), names
(with 1, 2 and 4 metadata servers, in turn), copies (striped files with one copy and two, and local ones, in turn), mpi
(records of one file by MPI-IO, lazy, strict and on a Gluster volume in turn), staging or, by name alone, peers (libcephfs
without a mount, and a Gluster volume).
"""

import contextlib
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

import gluster
from copies import copies
from engine_phases import (
    NAMES,
    OWN_READ,
    OWN_WRITE,
    RECORD_BYTES,
    RECORDS,
    ROUNDS,
    USER,
    Phases,
    Workers,
    capacity,
    compared,
    cpu,
    tcp,
    tmpfs_of,
    workers,
)
from measure import Compared, Counted, Line, in_turn
from peers import peers
from place import Place, last_object, succeeded
from support import engines as support_engines
from support.nodes import Bed, ended, missing, nodes

NODES = [int(number) for number in (os.environ.get("ENGINES_NODES") or "2,4").split(",")]
FILES = int(os.environ.get("ENGINES_FILES") or 2000)
FILE_BYTES = 4096
STAGE_MIB = int(os.environ.get("ENGINES_STAGE_MIB") or 256)
#: Numbers of metadata servers.
SERVERS = (1, 2, 4)
#: Room for three times what is staged. The store is in memory, and grows with what is written.
STORE_BYTES = max(4 << 30, 3 * STAGE_MIB << 20)
JOB_S = 600 + FILES // 50
#: Promised: seconds of start and end for numbers of nodes, and MB of a node.
START_S_MAX, END_S_MAX = {2: 3, 4: 5}, {2: 2, 4: 3}
IDLE_MB_MAX = 150
#: Aimed at, as multiples: lazy records of strict ones (writes alone), of those of own files, and of Gluster's.
LAZY_MIN = {"strict": 2, "own files": 0.6, "Gluster": 1.1}
JOB = "#!/bin/bash\n#DW jobdw type=scratch access_mode=striped capacity={capacity}\n"
#: More than any copy has: with a rate, the first node alone copies.
RATE = "1TiB"


def run(place: Place) -> list[Line]:
    why = missing()
    if why:
        raise SystemExit(f"error: {why}")
    only = os.environ.get("ENGINES_ONLY")
    known = PARTS | BY_NAME
    if only and only not in known:
        raise SystemExit(f"error: ENGINES_ONLY={only}: there are {', '.join(known)}")
    lines = []
    for count in NODES:
        for name in [only] if only else PARTS:
            began = time.monotonic()
            with nodes(count, place.build, STORE_BYTES) as bed:
                lines += known[name](bed)
            print(f"engines, {count} nodes, {name}: {time.monotonic() - began:.0f} s", file=sys.stderr)
    return lines


class Job:
    """A job of the user, in a folder of its own on the file system of all nodes."""

    def __init__(self, bed: Bed, name: str, lines: str, capacity: str = "64MiB"):
        self.bed = bed
        self.folder = support_engines.make_directory(bed.shared / name, USER)
        self.script = self.folder / "job.sh"
        self.script.write_text(JOB.format(capacity=capacity) + lines)

    def run(self, *options: object) -> dict:
        """What `--json` prints."""
        words = ["forebay", "run", "--json", *options, self.script]
        process = self.bed.popen("n1", words, USER, self.folder)
        return last_object(succeeded(ended(process, check=False, seconds=JOB_S)).stdout)


def on(bed: Bed) -> list[str]:
    """The options of a job on all nodes of the bed."""
    return ["--engine", "ceph", "--nodes", ",".join(bed.names)]


# Start and end


def start(bed: Bed) -> list[Line]:
    job = Job(bed, "start", 'date +%s.%N >began; "$@"\n')
    count = len(bed.names)

    def times(*options: object) -> tuple[float, float]:
        """Seconds from the start of the command to the script, and from the script's end to the end of the command."""
        began = time.time()
        job.run(*options)
        over = time.time()
        script = float((job.folder / "began").read_text())
        return script - began, over - script

    ceph, alone, again = in_turn(ROUNDS, lambda: times(*on(bed)), times)
    lines, medians = [], []
    for number, (what, most) in enumerate([("start", START_S_MAX), ("end", END_S_MAX)]):
        a, b, c = ([each[number] for each in way] for way in (ceph, alone, again))
        medians.append(statistics.median(a + c))
        limit = most.get(count)
        promise = limit and f"at most {limit} s, is {medians[-1]:.2f}"
        kept = limit and medians[-1] <= limit
        lines.append(
            Compared(f"{what}, {count} nodes", "ceph", "one node, no engine", "s", a, b, c, promise=promise, kept=kept)
        )
    # A monitor, a metadata server, and a storage daemon of each node.
    daemons = count + 2
    start_ms, end_ms = (1000 * median / daemons for median in medians)
    verdict = f"of {daemons} daemons and {count} mounts"
    lines.append(Counted(f"time per daemon, {count} nodes", "start", "end", "ms", start_ms, end_ms, verdict))
    return lines


# Memory, I/O and names


def namespace(bed: Bed) -> list[Line]:
    """All rows that need a namespace which stays."""
    with support_engines.ceph(bed, USER, capacity(bed)) as mount, workers(bed) as all_workers:
        lines = [idle_memory(bed)]
        ceph = Phases(bed, all_workers, mount)
        tmpfs = Phases(bed, all_workers, tmpfs_of(bed))
        results, others, stream, again = in_turn(ROUNDS, ceph.once, tmpfs.once, lambda: tcp(bed))
    return [*lines, *compared(bed, "ceph", results, {"tmpfs": others}, again, stream), cpu(bed, ceph)]


def idle_memory(bed: Bed) -> Line:
    """Of the engine's processes and Forebay's on each node."""
    time.sleep(2)  # what has just started still works
    used = [memory_mb([pid for pid, words in bed.processes(node) if is_ours(words)]) for node in bed.names]
    first, other = used[0], max(used[1:])
    what = f"idle memory of a node, {len(bed.names)} nodes"
    kept = max(used) <= IDLE_MB_MAX
    verdict = "processes of ceph and forebay; pages of a file count once"
    return Counted(
        what, "first node", "other nodes, at most", "MB", first, other, verdict, f"at most {IDLE_MB_MAX} MB", kept
    )


def is_ours(words: Sequence[str]) -> bool:
    return any(pathlib.PurePath(word).name.startswith(("ceph-", "forebay")) for word in words[:1])


def memory_mb(pids: Sequence[int]) -> float:
    """Resident memory of processes of one node. Programs and libraries that several map are in memory once."""
    own_kb, file_kb = 0, {}
    for pid in pids:
        place, resident_kb = "", 0
        with contextlib.suppress(OSError):
            for line in pathlib.Path(f"/proc/{pid}/smaps").read_text().splitlines():
                words = line.split()
                if not words[0].endswith(":"):
                    place = f"{words[5]} {words[2]}" if len(words) > 5 and words[5].startswith("/") else ""
                elif words[0] == "Rss:":
                    resident_kb = int(words[1])
                elif words[0] == "Anonymous:":
                    anonymous_kb = int(words[1]) if place else resident_kb
                    own_kb += anonymous_kb
                    if place:
                        file_kb[place] = max(file_kb.get(place, 0), resident_kb - anonymous_kb)
    return (own_kb + sum(file_kb.values())) * 1024 / 1e6


# The two clients of CephFS


def clients(bed: Bed) -> list[Line]:
    """The same phases in the namespaces of two jobs, of which one works at a time."""
    size = capacity(bed)
    with (
        support_engines.ceph(bed, USER, size) as own_mount,
        support_engines.ceph_fuse(bed, USER, size) as other_mount,
        workers(bed) as all_workers,
    ):
        own, other = Phases(bed, all_workers, own_mount), Phases(bed, all_workers, other_mount)
        firsts, others, seconds = in_turn(ROUNDS, own.once, other.once)
    lines = compared(bed, "forebay-mount", firsts, {"ceph-fuse": others}, seconds)
    for name in (OWN_WRITE, OWN_READ):
        a, b = (sum(each.cpu_s_of_gib(name)) for each in (own, other))
        row = f"processor time, {name}, {len(bed.names)} nodes"
        verdict, promise = "all processes on the nodes", "at most that of ceph-fuse"
        lines.append(Counted(row, "forebay-mount", "ceph-fuse", "s/GiB", a, b, verdict, promise, a <= b))
    return lines


# Metadata servers


def names(bed: Bed) -> list[Line]:
    """Names in a directory of each node and in one directory, in the namespaces of jobs of which one works at a time."""
    numbers = [servers for servers in SERVERS if servers <= len(bed.names)]
    with contextlib.ExitStack() as jobs:
        options = lambda servers: ["--engine", "ceph", "--metadata-servers", servers]
        of_job = lambda servers: support_engines.of_job(bed, USER, *options(servers), name=f"servers{servers}")
        mounts = [jobs.enter_context(of_job(servers)) for servers in numbers]
        all_workers = jobs.enter_context(workers(bed))
        rates = in_turn(ROUNDS, *(lambda mount=mount: names_once(bed, all_workers, mount) for mount in mounts))
    one, *others, again = rates
    lines = []
    for name in one[0]:
        of = lambda way: [each[name] for each in way]
        for servers, other in zip(numbers[1:], others):
            what, b_is = f"{name}, {len(bed.names)} nodes", f"{servers} metadata servers"
            lines.append(Compared(what, "one metadata server", b_is, "names/s", of(one), of(other), of(again), True))
    return lines


def names_once(bed: Bed, all_workers: Workers, mount: pathlib.Path) -> dict[str, float]:
    """Rates by name, of all nodes together."""
    count = len(bed.names)
    rates = {}
    own = lambda node: mount / f"own{node}"
    all_workers.phase([["make", own(node), *([mount / "one"] if node == 0 else [])] for node in range(count)])
    for where, directory, first in (
        ("in own directories", own, lambda node: 0),
        ("in one directory", lambda _: mount / "one", lambda node: node * NAMES),
    ):
        for call in ("create", "stat", "unlink"):
            requests = [[call, directory(node), NAMES, first(node)] for node in range(count)]
            rates[f"{call} {where}"] = count * NAMES / all_workers.phase(requests)
    bed.run("n1", ["rm", "-r", mount / "one", *map(own, range(count))], USER)
    return rates


# MPI-IO, lazy and strict


def mpi(bed: Bed) -> list[Line]:
    """Records of one file, with lazy I/O, without, and on a Gluster volume; and of a file of each rank. All are compared
    on another node."""
    count = len(bed.names)
    mib = count * RECORDS * RECORD_BYTES / (1 << 20)
    library = bed.copied(bed.build / "lib" / "forebay" / "openmpi" / "libforebay_mpi.so")
    program = compiled(bed, "mpi_records")

    def rates(directory: pathlib.Path, kind: str, lazy: int) -> dict[str, float]:
        words = [program, directory / "records", kind, RECORDS, RECORD_BYTES]
        preload = ["-x", f"LD_PRELOAD={library}"]
        done = bed.mpirun(count, words, USER, preload, check=False, FOREBAY_MPI_LAZY_IO=lazy)
        told = json.loads(succeeded(done).stdout)
        bed.run("n1", ["sh", "-c", f"rm {directory}/records*"], USER)
        return {"write": mib / told["write_s"], "read": mib / told["read_s"]}

    with contextlib.ExitStack() as stack:
        mount = stack.enter_context(support_engines.ceph(bed, USER, f"{4 * int(mib) + 64}MiB"))
        ways = {"strict": (mount, "shared", 0), "own files": (mount, "own", 1)}
        if why := gluster.missing():
            print(f"Gluster is left out: {why}", file=sys.stderr)
        else:
            ways["Gluster"] = (stack.enter_context(gluster.volume(bed, USER)), "shared", 0)
        others = [lambda way=way: rates(*way) for way in ways.values()]
        lazy, *results, again = in_turn(ROUNDS, lambda: rates(mount, "shared", 1), *others)
    lines = []
    for name in ("write", "read"):
        of = lambda way: [each[name] for each in way]
        what = f"{RECORD_BYTES:,}-byte records by MPI-IO, {name}, {count} nodes"
        for b_is, b in zip(ways, results):
            least, ratio = LAZY_MIN[b_is], statistics.median(of(lazy) + of(again)) / statistics.median(of(b))
            # Strict reads are cached as well, while no node writes.
            is_aim = (name, b_is) != ("read", "strict")
            promise, kept = (f"at least {least}, is {ratio:.2f}", ratio >= least) if is_aim else (None, None)
            line = Compared(what, "lazy", b_is, "MiB/s", of(lazy), of(b), of(again), True, promise, kept)
            lines.append(line)
    return lines


def compiled(bed: Bed, name: str) -> pathlib.Path:
    program = bed.top / name
    source = pathlib.Path(__file__).parent / f"{name}.c"
    subprocess.run(["mpicc.openmpi", "-O2", source, "-o", program], check=True)
    return program


# Staging


def staging(bed: Bed) -> list[Line]:
    lines = []
    count = len(bed.names)
    for what, make, mib in (
        (f"{FILES:,} files of {FILE_BYTES // 1024} KiB", make_many, FILES * FILE_BYTES >> 20),
        (f"4 files of {STAGE_MIB // 4} MiB", make_large, STAGE_MIB),
    ):
        name = make.__name__
        source = bed.shared / name
        make(source)
        target = support_engines.make_directory(bed.shared / f"{name}-back", USER)
        lines_of_job = (
            f"#DW stage_in type=directory source={source} destination=$DW_JOB_STRIPED/data\n"
            f"#DW stage_out type=directory source=$DW_JOB_STRIPED/data destination={target}\ntrue\n"
        )
        job = Job(bed, f"{name}-job", lines_of_job, f"{2 * mib + 128}MiB")
        several, first, alone, again = in_turn(
            ROUNDS, staged(job, target, *on(bed)), staged(job, target, *on(bed), "--rate", RATE), staged(job, target)
        )
        for direction in ("stage_in", "stage_out"):
            of = lambda way: [each[direction] for each in way]
            row = f"{direction.replace('_', ' ')}, {what}"
            a_is = f"ceph, {count} nodes copy"
            for b_is, b in ((f"ceph on {count} nodes, one copies", first), ("one node, no engine", alone)):
                lines.append(Compared(row, a_is, b_is, "s", of(several), of(b), of(again)))
        shutil.rmtree(source)
        shutil.rmtree(target)
    return lines


def staged(job: Job, target: pathlib.Path, *options: object) -> Callable[[], dict[str, float]]:
    def once() -> dict[str, float]:
        for path in target.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        told = job.run(*options)
        return {name: told[name]["seconds"] for name in ("stage_in", "stage_out")}

    return once


def make_many(top: pathlib.Path) -> None:
    for number in range(FILES):
        folder = top / str(number % max(FILES // 100, 1))
        folder.mkdir(parents=True, exist_ok=True)
        (folder / str(number)).write_bytes(number.to_bytes(4, "little") * (FILE_BYTES // 4))


def make_large(top: pathlib.Path) -> None:
    top.mkdir()
    for number in range(4):
        with open(top / str(number), "wb") as file:
            for _ in range(STAGE_MIB // 4):
                file.write(os.urandom(1 << 20))


PARTS = {
    "start": start,
    "namespace": namespace,
    "clients": clients,
    "names": names,
    "copies": copies,
    "mpi": mpi,
    "staging": staging,
}
#: Others, which run by name alone: what they compare with need not be installed.
BY_NAME = {"peers": peers}
