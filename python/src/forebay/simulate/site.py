"""The description of a site: a TOML file (docs/reference/simulation-files.md)."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path

import msgspec

from forebay.simulate.distributions import Amount, Distribution, amount, rate
from forebay.simulate.errors import SimulationError

#: So many servers, nodes or granules a simulation takes.
COUNT_MAX = 10_000_000
JOBS_MAX = 5_000_000
PAGE = "docs/reference/simulation-files.md has the form of the file"


class Pool(msgspec.Struct, frozen=True, kw_only=True):
    """Burst-buffer servers. Each has the same whole number of granules."""

    granularity_bytes: int
    servers: int
    granules_per_server: int
    server_bytes_per_s: float

    @property
    def granules(self) -> int:
        """Of all servers."""
        return self.servers * self.granules_per_server

    @property
    def size_bytes(self) -> int:
        """What can be allocated."""
        return self.granules * self.granularity_bytes


class _Machine(msgspec.Struct, forbid_unknown_fields=True):
    nodes: int


class _Pool(msgspec.Struct, forbid_unknown_fields=True):
    size: Amount
    granularity: Amount
    servers: int
    bandwidth: str  # of one server


class _FileSystem(msgspec.Struct, forbid_unknown_fields=True):
    bandwidth: str


class JobClass(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Jobs that are alike."""

    name: str
    share: float = 1.0  # of the jobs, relative to the other classes
    nodes: Distribution
    run_time: Distribution  # without the I/O in `io`
    limit_factor: Distribution = 2.0  # the requested time over the needed one, as users overestimate
    capacity: Distribution = 0
    stage_in: Distribution = 0
    stage_out: Distribution = 0
    io: Distribution = 0  # what the run moves from and to its burst buffer


class Drawn(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Jobs from distributions."""

    jobs: int
    interval: Distribution  # from one submission to the next
    classes: list[JobClass] = msgspec.field(name="class")


class Past(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What a list of past jobs does not say."""

    stage_in_share: float = 0.0  # of the capacity
    stage_out_share: float = 0.0  # of the capacity


class _Site(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    name: str
    machine: _Machine
    pool: _Pool
    file_system: _FileSystem
    workload: Drawn | None = None
    past: Past = msgspec.field(default_factory=Past)


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """A machine, its pool and file system, and its jobs."""

    name: str
    nodes: int
    pool: Pool
    file_system_bytes_per_s: float
    workload: Drawn | None
    past: Past


def read_site(path: Path) -> Site:
    """Reads the file. SimulationError names what is wrong, and where."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SimulationError(f"{path}: cannot be read: {error}", "give the description of a site") from error
    try:
        described = msgspec.convert(tomllib.loads(text), type=_Site)
        return _site(described)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, ValueError) as error:
        raise SimulationError(f"{path}: {error}", PAGE) from error


def _site(described: _Site) -> Site:
    _in_range("machine.nodes", described.machine.nodes, COUNT_MAX)
    for name in ("stage_in_share", "stage_out_share"):
        share = getattr(described.past, name)
        if not 0 <= share <= 1:
            raise ValueError(f"past.{name} is {share}, not between 0 and 1")
    if described.workload:
        _in_range("workload.jobs", described.workload.jobs, JOBS_MAX)
        if not described.workload.classes:
            raise ValueError("workload.class: no class of jobs is given")
    pool = described.pool
    return Site(
        name=described.name,
        nodes=described.machine.nodes,
        pool=make_pool(
            _of("pool.size", pool.size), _of("pool.granularity", pool.granularity), pool.servers,
            _rate("pool.bandwidth", pool.bandwidth),
        ),
        file_system_bytes_per_s=_rate("file_system.bandwidth", described.file_system.bandwidth),
        workload=described.workload,
        past=described.past,
    )  # fmt: skip


def make_pool(size_bytes: float, granularity_bytes: float, servers: int, server_bytes_per_s: float) -> Pool:
    """A pool of whole granules. ValueError if a server is smaller than one."""
    _in_range("pool.servers", servers, COUNT_MAX)
    granularity = int(granularity_bytes)
    if granularity < 1:
        raise ValueError("pool.granularity is less than a byte")
    each = int(size_bytes) // servers // granularity
    if each < 1:
        raise ValueError(
            f"pool: a server of {int(size_bytes) // servers} bytes has no granule of {granularity} bytes"
        )
    _in_range("pool: granules", each * servers, COUNT_MAX)
    return Pool(
        granularity_bytes=granularity,
        servers=servers,
        granules_per_server=each,
        server_bytes_per_s=server_bytes_per_s,
    )


def _in_range(name: str, value: int, most: int) -> None:
    if not 1 <= value <= most:
        raise ValueError(f"{name} is {value}, not between 1 and {most}")


def _of(name: str, value: Amount) -> float:
    try:
        return amount(value, "size")
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


def _rate(name: str, text: str) -> float:
    try:
        return rate(text)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


def granules_of(capacity_bytes: float, pool: Pool) -> int:
    """A capacity in whole granules, rounded up as DataWarp does."""
    return math.ceil(capacity_bytes / pool.granularity_bytes)
