"""`forebay plan machine measure`: a machine file from short measurements in a directory."""

from __future__ import annotations

import json
import os
import selectors
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import msgspec

from forebay.plan.errors import PlanError
from forebay.plan.machine_file import StorageKind
from forebay.plan.measure_worker import FILES, SMALL_COUNT
from forebay.plan.units import size_text

REQUEST_BYTES = 8 << 20
ROUNDS = 3
#: A process on another node has so long to begin.
START_S_MAX = 60
#: What the kernel calls the file systems whose behaviour the model knows.
_KINDS: dict[str, StorageKind] = {"lustre": "lustre", "gpfs": "spectrum-scale"}
_MOUNTS = Path("/proc/self/mounts")


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What to measure."""

    directory: Path
    processes: int  # on each node
    bytes_per_process: int
    nodes: tuple[str, ...] = ()  # empty: this one
    launcher: str = "ssh"  # words before the name of a node
    kind: StorageKind | None = None  # None: by the file system
    servers: int | None = None
    command: str = "forebay plan machine measure"  # for the sources


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """A figure measured several times."""

    median: float
    low: float
    high: float


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured. Rates in bytes per second, times in seconds."""

    kind: StorageKind
    file_system: str
    servers: int
    capacity_bytes: int
    write: Sample  # all processes of all nodes
    read: Sample  # all processes of all nodes
    node_write: Sample  # all processes of one node
    request_s: Sample  # one small read
    operation_s: Sample  # creating or removing a file


def measure(request: Request) -> Measured:
    """Measures in a new directory below `request.directory`, and removes it.

    Raises PlanError if the directory cannot be used or has too little space, and if a process fails.
    """
    if request.processes < 1 or request.bytes_per_process < REQUEST_BYTES:
        raise PlanError(
            f"{request.processes} processes of {size_text(request.bytes_per_process)}",
            f"give at least one process and {size_text(REQUEST_BYTES)}",
        )
    if not shlex.split(request.launcher):
        raise PlanError("--launcher is empty", "give the words before the name of a node, such as ssh")
    twice = next((node for node in request.nodes if request.nodes.count(node) > 1), None)
    if twice:
        raise PlanError(
            f"{twice} is in --nodes more than once", "name each node once; --processes has more on each"
        )
    kind, file_system = _file_system(request)
    servers = request.servers or _servers(kind, request.directory)
    _check_space(request)
    with ExitStack() as stack:
        folder = stack.enter_context(_folder(request.directory))
        workers = stack.enter_context(_start_workers(request, folder))
        first = workers[: request.processes]
        total = {"bytes": request.bytes_per_process, "request": REQUEST_BYTES}
        write = _rates(workers, {"phase": "write"} | total, request.bytes_per_process)
        node_write = _rates(first, {"phase": "write"} | total, request.bytes_per_process)
        read = _rates(workers, {"phase": "read"} | total, request.bytes_per_process)
        small = _times(first[:1], {"phase": "small", "bytes": request.bytes_per_process}, SMALL_COUNT)
        names = _times(first[:1], {"phase": "names"}, 2 * FILES)
        capacity = shutil.disk_usage(folder).total
    return Measured(
        kind=kind,
        file_system=file_system,
        servers=servers,
        capacity_bytes=capacity,
        write=write,
        read=read,
        node_write=node_write,
        request_s=small,
        operation_s=names,
    )


def _file_system(request: Request) -> tuple[StorageKind, str]:
    """The kind of storage, and what the kernel calls it."""
    try:
        real = request.directory.resolve(strict=True)
    except OSError as error:
        hint = "name an existing directory on the storage to measure"
        raise PlanError(f"{request.directory}: {error.strerror}", hint) from error
    fields = (line.split(" ") for line in _MOUNTS.read_text(errors="surrogateescape").splitlines())
    mounts = [(path.encode().decode("unicode_escape"), kind) for _, path, kind, *_ in fields]
    fitting = [(path, kind) for path, kind in mounts if real.is_relative_to(path)]
    _, name = max(fitting, key=lambda pair: len(pair[0]))
    return request.kind or _KINDS.get(name, "directory"), name


def _servers(kind: StorageKind, directory: Path) -> int:
    """OSTs as `lfs` lists them; other kinds have no way to ask."""
    if kind == "lustre" and shutil.which("lfs"):
        done = subprocess.run(["lfs", "osts", directory], capture_output=True, text=True)
        count = sum(line.strip()[:1].isdigit() for line in done.stdout.splitlines())
        if count:
            return count
    if kind in ("lustre", "spectrum-scale", "datawarp"):
        raise PlanError(
            f"{directory}: the number of servers of {kind} is not known here", "give it with --servers"
        )
    return 1


def _check_space(request: Request) -> None:
    needed = request.bytes_per_process * request.processes * max(1, len(request.nodes))
    free = shutil.disk_usage(request.directory).free
    if needed > 0.9 * free:
        raise PlanError(
            f"{request.directory}: the measurement needs {size_text(needed)}, and {size_text(free)} are free",
            "give a smaller --size, or fewer --processes",
        )


@contextmanager
def _folder(directory: Path) -> Iterator[Path]:
    """A directory of our own; its processes remove it, too, if this one is killed."""
    try:
        folder = Path(tempfile.mkdtemp(prefix="forebay-measure-", dir=directory.absolute()))
    except OSError as error:
        hint = "name a directory that you can write"
        raise PlanError(f"{directory}: {error.strerror}", hint) from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class _Process:
    """One worker, here or on another node."""

    def __init__(self, words: Sequence[str], name: str) -> None:
        self.name = name
        pipe = subprocess.PIPE
        try:
            self.process = subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        except OSError as error:
            raise PlanError(f"{words[0]}: {error.strerror}", "check --launcher") from error

    def ask(self, phase: dict) -> None:
        """Begins a phase."""
        try:
            self.process.stdin.write(json.dumps(phase) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise self._died() from None

    def answer(self) -> dict:
        """What it says next. Raises PlanError if it fails or ends."""
        line = self.process.stdout.readline()
        try:
            found = json.loads(line)
        except ValueError:
            raise self._died() from None
        if "error" in found:
            hint = "check the directory, which all nodes must see, and its free space"
            raise PlanError(f"{self.name}: {found['error']}", hint)
        return found

    def wait_until_ready(self, seconds: float) -> None:
        """Raises PlanError if it has not begun by then."""
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            if not selector.select(seconds):
                self.process.kill()
                hint = "check --nodes, and that --launcher starts all processes of a node at the same time"
                raise PlanError(f"{self.name}: the measuring process has not begun in {START_S_MAX} s", hint)
        self.answer()

    def _died(self) -> PlanError:
        self.process.kill()
        said = self.process.stderr.read().strip().splitlines() if self.process.stderr else []
        about = f": {said[-1]}" if said else ""
        return PlanError(f"{self.name}: the measuring process ended{about}", "check --nodes and --launcher")

    def end(self) -> None:
        """Closes its input, so that it removes its files."""
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            with suppress(BrokenPipeError):
                stream.close()
        try:
            self.process.wait(START_S_MAX)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@contextmanager
def _start_workers(request: Request, folder: Path) -> Iterator[list[_Process]]:
    """All processes, node by node."""
    workers: list[_Process] = []
    try:
        for node in request.nodes or (None,):
            for number in range(request.processes):
                name = f"{node or 'here'}-{number}"
                workers.append(_Process(_words(request, node, folder, name), node or "this node"))
        latest = time.monotonic() + START_S_MAX
        for one in workers:
            one.wait_until_ready(max(0.0, latest - time.monotonic()))
        yield workers
    finally:
        for one in workers:
            one.end()


def _words(request: Request, node: str | None, folder: Path, name: str) -> list[str]:
    words = [sys.executable, "-m", "forebay.plan.measure_worker", str(folder), name]
    if node is None:
        return words
    path = os.environ.get("PYTHONPATH")
    remote = ["env", f"PYTHONPATH={path}", *words] if path else words
    launcher = shlex.split(request.launcher)
    # A step of Slurm has its processors to itself, so the next step on a node would wait for ever.
    if Path(launcher[0]).name == "srun" and "--overlap" not in launcher:
        launcher.insert(1, "--overlap")
    # The shell on the other side of ssh splits its words again; others pass them as they are.
    is_ssh = Path(launcher[0]).name == "ssh"
    return [*launcher, node, *([shlex.join(remote)] if is_ssh else remote)]


def _rates(workers: Sequence[_Process], phase: dict, bytes_each: int) -> Sample:
    """Bytes per second of all, from the common start to the last end. The first round is not counted."""
    seconds = [_round(workers, phase) for _ in range(ROUNDS + 1)][1:]
    return _sample([len(workers) * bytes_each / one for one in seconds])


def _times(workers: Sequence[_Process], phase: dict, operations: int) -> Sample:
    """Seconds of one operation, as the process takes them."""
    found = []
    for _ in range(ROUNDS + 1):
        workers[0].ask(phase)
        found.append(workers[0].answer()["seconds"] / operations)
    return _sample(found[1:])


def _round(workers: Sequence[_Process], phase: dict) -> float:
    began = time.monotonic()
    for one in workers:
        one.ask(phase)
    for one in workers:
        one.answer()
    return time.monotonic() - began


def _sample(values: Sequence[float]) -> Sample:
    return Sample(median=statistics.median(values), low=min(values), high=max(values))
