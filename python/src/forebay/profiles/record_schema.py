"""The JSON that `libforebay_mpi.so` and `forebay` write.

Its members are defined in docs/reference/mpi.md and docs/explanation/profiles.md.

Every member may be absent, for older formats lack some; members of newer formats are passed over.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from forebay.profiles import time_limits
from forebay.profiles.model import SIZE_CLASS_NAMES, KernelCount

STEP_FORMAT = 2
JOB_FORMAT = 1

Seconds = Annotated[float, msgspec.Meta(ge=0, le=time_limits.SUM_S_MAX)]
#: Since MPI_Init; a file may be open before.
Moment = Annotated[float, msgspec.Meta(ge=-time_limits.SUM_S_MAX, le=time_limits.SUM_S_MAX)]
UnixSeconds = Annotated[float, msgspec.Meta(ge=0, le=time_limits.START_UNIX_S_MAX)]
#: Calls of each class of sizes.
Sizes = Annotated[list[int], msgspec.Meta(min_length=len(SIZE_CLASS_NAMES), max_length=len(SIZE_CLASS_NAMES))]
#: Calls in which one, at most half, more than half, and all of the aggregators were active.
ActiveCalls = Annotated[list[int], msgspec.Meta(min_length=4, max_length=4)]


class Calls(msgspec.Struct):
    """Calls of the program to MPI-IO, by kind."""

    independent: int = 0
    collective: int = 0
    nonblocking: int = 0
    nonblocking_collective: int = 0
    split_collective: int = 0


class Moments(msgspec.Struct):
    """Seconds since the program's start; null: there was none."""

    first: Moment | None = None
    last: Moment | None = None
    open: Moment | None = None
    close: Moment | None = None


class RankSeconds(msgspec.Struct):
    """One rank's time in the calls of one direction."""

    rank: int
    seconds: Seconds
    bytes: int


class Extremes(msgspec.Struct):
    """Of all ranks that opened the file."""

    fastest: RankSeconds
    slowest: RankSeconds


class WireWriter(msgspec.Struct):
    """A rank that wrote."""

    rank: int
    system_calls: int
    bytes: int
    aggregator: bool | None = None


class WireTraffic(msgspec.Struct):
    """`read` or `write` of a file."""

    calls: Calls | None = None
    independent_ranks: int | None = None
    asked_bytes: int | None = None
    asked_sizes: Sizes | None = None
    asked_common_sizes: list[tuple[int, int]] = []
    system_calls: int | None = None
    system_bytes: int | None = None
    system_sizes: Sizes | None = None
    system_ranks: int | None = None
    aggregators: int | None = None
    stripe_sized: int | None = None
    gaps: int | None = None
    gap_bytes: int | None = None
    steps_back: int | None = None
    consecutive: int | None = None
    end_bytes: int | None = None
    common_sizes: list[tuple[int, int]] = []
    moments: Moments | None = None
    system_moments: Moments | None = None
    rank_seconds: Extremes | None = None
    rmw_calls: int | None = None
    rmw_bytes: int | None = None
    aggregators_active: ActiveCalls | None = None
    writers: list[WireWriter] = []


class WireHints(msgspec.Struct):
    """`hints` of a file."""

    environment: dict[str, str] = {}
    program: dict[str, str] = {}
    in_force: dict[str, str] | None = None
    without_effect: list[dict[str, str]] = []


class TrafficSeconds(msgspec.Struct):
    """Seconds of one direction."""

    calls: Seconds | None = None
    data: Seconds | None = None
    other_system: Seconds | None = None
    rest: Moment | None = None  # of sums: may be less than 0 by a nanosecond
    data_outside: Seconds | None = None


class FileSeconds(msgspec.Struct):
    """`seconds.sum` or `seconds.slowest` of a file."""

    open: Seconds | None = None
    close: Seconds | None = None
    metadata: Seconds | None = None
    sync: Seconds | None = None
    read: TrafficSeconds = msgspec.field(default_factory=TrafficSeconds)
    write: TrafficSeconds = msgspec.field(default_factory=TrafficSeconds)


class SumAndSlowest(msgspec.Struct):
    """Over all ranks, and the largest of any rank, each figure for itself."""

    sum: FileSeconds = msgspec.field(default_factory=FileSeconds)
    slowest: FileSeconds = msgspec.field(default_factory=FileSeconds)


class WireFile(msgspec.Struct):
    """One of `files`."""

    path: str
    layer: str = "mpiio"
    ranks: int | None = None
    rank: int | None = None
    opens: int | None = None
    not_closed: int | None = None
    opened_by: str | None = None
    stripe_count: int | None = None
    stripe_bytes: int | None = None
    hints: WireHints | None = None
    seeks: int | None = None
    stats: int | None = None
    mapped_bytes: int | None = None
    mapped_to_write_bytes: int | None = None
    syncs: int | None = None
    sync_calls: int | None = None
    lazy_opens: int | None = None
    name_calls: dict[str, int] = {}
    not_aligned: int | None = None
    alignment_bytes: int | None = None
    moments: Moments = msgspec.field(default_factory=Moments)
    write: WireTraffic = msgspec.field(default_factory=WireTraffic)
    read: WireTraffic = msgspec.field(default_factory=WireTraffic)
    seconds: SumAndSlowest = msgspec.field(default_factory=SumAndSlowest)


class WireHeat(msgspec.Struct):
    """One of `heat`."""

    layer: str
    bins: int
    bin_s: float
    ranks_per_row: int
    rows: int
    write: list[tuple[int, int, int]] = []
    read: list[tuple[int, int, int]] = []


class IoSeconds(msgspec.Struct):
    """`io_s`."""

    sum: Seconds
    slowest: Seconds


class Aborted(msgspec.Struct):
    """`aborted`: who called MPI_Abort, with which code."""

    rank: int
    code: int


class Recovered(msgspec.Struct):
    """`recovered`: what Forebay found of a program that did not finish."""

    ranks: int
    until_s: Seconds
    torn: bool = False


class Step(msgspec.Struct):
    """A step or process file, or what FOREBAY_MPI_STATS names."""

    forebay_mpi: int
    files: list[WireFile] = []
    other_files: list[WireFile] = []
    mpi: str | None = None
    ranks: int | None = None
    wall_s: Seconds | None = None
    files_dropped: int = 0
    files_joined: int = 0
    program: str | None = None
    arguments: list[str] = []
    host: str | None = None
    hosts: int | None = None
    started_unix_s: UnixSeconds | None = None
    finished: bool = True
    io_s: IoSeconds | None = None
    trace: str | None = None
    kernel_counts: list[KernelCount] = []
    counted_ranks: int | None = None
    heat: list[WireHeat] = []
    aborted: Aborted | None = None
    recovered: Recovered | None = None


class FailedWriteLine(msgspec.Struct):
    """A line of `failed-writes`. Without an error the file was emptied since the failure."""

    path: str
    call: str
    unix_us: int
    error: str | None = None
    device: int | None = None
    inode: int | None = None


class IncompleteFile(msgspec.Struct):
    """A staged file that may be incomplete."""

    source: str
    destination: str
    is_recorded: bool = False
    is_renamed: bool = False


class Staged(msgspec.Struct):
    """`stage_in` or `stage_out` of `forebay run --json`."""

    files: int = 0
    bytes: int = 0
    seconds: Seconds = 0.0
    failures: list[tuple[str, str]] = []
    incomplete: list[IncompleteFile] = []


class StoreUsed(msgspec.Struct):
    """`store` of `forebay run --json`."""

    store: str
    capacity_bytes: int | None = None


class NodesUsed(msgspec.Struct):
    """`nodes` of `forebay run --json`: the allocation of a job on several nodes."""

    engine: str
    names: list[str] = []
    failed: str | None = None
    redundancy: int = 1
    share_bytes: int | None = None


class Deadline(msgspec.Struct):
    """`deadline` of `forebay run --json`."""

    end_unix_s: float
    told_by: str
    signalled: int | None = None
    ended_job: bool = False


class Outcome(msgspec.Struct):
    """What `forebay run --json` prints; of `forebay profile` three members."""

    job_status: int | None = None
    job_s: Seconds | None = None
    exit_code: int | None = None
    store: StoreUsed | None = None
    nodes: NodesUsed | None = None
    stage_in: Staged | None = None
    stage_out: Staged | None = None
    kept: str | None = None
    undelivered: bool = False
    store_full_unix_ms: int | None = None
    deadline: Deadline | None = None


class Process(msgspec.Struct):
    """The process that runs the job."""

    pid: int
    start_ticks: int
    boot_id: str
    host: str
    pid_namespace: str | None = None


class Emulated(msgspec.Struct):
    """`emulated` of `forebay run --json`."""

    model: str


class Transferred(msgspec.Struct):
    """`transferred`: what the kernel counted."""

    read_bytes: int
    written_bytes: int


class WireJob(msgspec.Struct):
    """job.json."""

    forebay_job: int
    kind: str = "run"
    id: str | None = None
    scheduler_job: str | None = None
    name: str | None = None
    script: str | None = None
    command: list[str] = []
    directory: str | None = None
    user: str | None = None
    host: str | None = None
    nodes: int | None = None
    started_unix_s: UnixSeconds | None = None
    ended_unix_s: UnixSeconds | None = None
    state: str = "ended"
    process: Process | None = None
    environment: dict[str, str] = {}
    emulated: Emulated | str | None = None
    transferred: Transferred | None = None
    outcome: Outcome | None = None
    error: str | None = None
    hint: str | None = None
    killed: bool = False
