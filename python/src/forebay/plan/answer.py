"""What the planner answers, as JSON has it. Times in seconds, sizes in bytes."""

from __future__ import annotations

import msgspec

from forebay.plan.checkpoint import Interval
from forebay.plan.staging import Staging

#: Rises when members are removed or change their meaning (docs/reference/json.md).
VERSION = 1


class Sized(msgspec.Struct, kw_only=True):
    """Settings and what they give."""

    servers: int  # that hold the data: OSTs, DataWarp nodes, or nodes with local storage
    stripe_counts: list[int | None]  # of one file of each pattern; null: a file is on all these servers
    aggregators: list[int | None]  # of each pattern; null where calls are not collective
    stripe_bytes: list[int]  # of each pattern
    io_s: float  # predicted time of all patterns
    low_s: (
        float  # lower end of the uncertainty band: at most 10 % faster than the published peak of the servers
    )
    high_s: float  # upper end of the uncertainty band
    bytes_per_s: float  # of all patterns
    efficiency: float  # share of the peak of these servers, from 0 to 1
    open_s: float  # of io_s, opening files
    synchronisation_s: float  # of io_s, agreement in collective calls
    exchange_s: float  # of io_s, data between ranks and aggregators
    storage_s: float  # of io_s, system calls
    bound_by: str  # what limits storage_s of the longest pattern: streams, nodes, servers or locks
    node_hours: float  # compute nodes that wait for the I/O
    storage_node_hours: (
        float  # OSTs or DataWarp nodes while the I/O runs; capacity held while the job computes
    )


class Granted(msgspec.Struct, kw_only=True):
    """A DataWarp allocation of an empty pool."""

    capacity_bytes: int  # to ask for
    granted_bytes: int  # whole granules
    nodes: int  # storage nodes
    is_doubled: bool  # a node gives more than one granule, so it is shared with itself
    lost_bytes: int  # granted and not needed


class Change(msgspec.Struct, kw_only=True):
    """A line of the script that would be another, or a new one."""

    line: int | None  # from 1; null: a new line
    last_line: int | None  # of a statement of several lines, all of which are replaced
    old: str | None  # null: a new line
    new: str


class StoragePlan(msgspec.Struct, kw_only=True):
    """One storage of the machine."""

    storage: str  # name in the machine file
    kind: str  # of the storage
    unsuitable: str | None  # why it cannot hold the files; null: it can
    default: Sized | None  # without hints
    given: Sized | None  # with the settings of the command line; null without any
    script: Sized | None  # with the settings of the script; null: it sets nothing for this storage
    recommended: Sized | None  # the number of servers with the fewest node-hours, storage included
    faster: Sized | None  # the fastest number of servers, if it is at least 10 % faster; null: none is
    speed_up: float | None  # default over recommended
    band_factor: float | None  # low_s and high_s are io_s divided and multiplied by it
    outside: list[str]  # what is outside of the calibrated range
    allocation: Granted | None  # DataWarp only
    staging: Staging | None  # burst buffers only
    lines: list[str]  # for the job script, ready to paste
    changes: list[Change]  # what makes the script's lines these; empty without a script that sets some
    reasons: list[str]  # why these settings


class Described(msgspec.Struct, kw_only=True):
    """A pattern that the plan is for."""

    name: str  # of the file, or `pattern`
    direction: str  # write or read
    access: str  # serial, file-per-process, independent or collective
    ranks: int  # that take part
    nodes: int  # that they run on
    total_bytes: float  # of all ranks
    transfer_bytes: float  # one request of a rank
    calls: int | None  # collective calls of each rank


class Plan(msgspec.Struct, kw_only=True):
    """What `forebay plan` says of a job."""

    forebay_plan: int  # version of this object
    machine: str  # name in the machine file
    script: str | None  # path of the job script
    profile: str | None  # path of the profile
    nodes: int  # of the job
    ranks: int  # of the job
    patterns: list[Described]  # what the job does
    storages: list[StoragePlan]  # fastest first, unsuitable last
    notes: list[str]  # what was assumed, and what the plan leaves out


class Point(msgspec.Struct, kw_only=True):
    """One number of servers in a sweep."""

    servers: int  # stripe count, or DataWarp nodes
    capacity_bytes: int | None  # DataWarp: to ask for
    default: Sized  # without hints
    best: Sized  # with the best settings


class Curve(msgspec.Struct, kw_only=True):
    """One storage in a sweep."""

    storage: str  # name in the machine file
    kind: str  # of the storage
    unsuitable: str | None  # why there are no points; null: there are
    points: list[Point]  # by number of servers
    recommended_servers: int | None  # with the fewest node-hours, storage included
    outside: list[str]  # what is outside of the calibrated range, of any point


class Sweep(msgspec.Struct, kw_only=True):
    """What `forebay plan sweep` says of a job."""

    forebay_plan: int  # version of this object
    machine: str  # name in the machine file
    nodes: int  # of the job
    ranks: int  # of the job
    patterns: list[Described]  # what the job does
    curves: list[Curve]  # one of each storage
    notes: list[str]  # what was assumed


class CalibrationRow(msgspec.Struct, kw_only=True):
    """A published figure."""

    id: str  # row of data/calibration.json
    experiment: str  # what was left out of the fit
    machine: str  # where it was measured
    kind: str  # value, below, above or ordering
    unit: str  # of published and predicted
    published: float  # for an ordering, 1
    predicted: float  # by a model that was fitted without the experiment
    ratio: float  # predicted over published
    fitted: float  # by the model that is fitted to all rows
    holds: bool | None  # whether a bound or an ordering holds; null for a value


class Calibration(msgspec.Struct, kw_only=True):
    """What `forebay plan calibration` says."""

    rows: list[CalibrationRow]  # rows that the model speaks of
    unpredicted: dict[str, str]  # other rows, and why not


class MachineSummary(msgspec.Struct, kw_only=True):
    """A machine file that is installed."""

    name: str  # the value of --machine
    title: str  # what the file calls the machine
    nodes: int | None  # compute nodes; null for a file of the emulation alone
    storage: list[str]  # names of its storages
    file: str  # path


class CheckpointPlan(msgspec.Struct, kw_only=True):
    """What `forebay plan checkpoint` says: levels, the fewest node-hours first."""

    machine: str  # name in the machine file
    failure_s: float  # mean time between failures of the job
    nodes: int  # compute nodes of the job
    levels: list[Interval]  # one of each storage


class KnownPoint(msgspec.Struct, kw_only=True):
    """Settings that the user named."""

    servers: int  # on which they cost the fewest node-seconds
    aggregators: int  # cb_nodes
    stripe_bytes: int  # striping_unit
    io_s: float  # predicted


class StudyPoint(msgspec.Struct, kw_only=True):
    """The tuner's search on one number of servers."""

    servers: int  # stripe count, or DataWarp nodes
    runs: int  # predictions that the search took
    default_s: float  # without hints
    best_s: float  # with what the tuner recommends
    fastest_run_s: float  # of all that it tried
    aggregators: int  # cb_nodes that it recommends
    stripe_bytes: int  # striping_unit that it recommends
    verdict: str  # the tuner's reason


class Study(msgspec.Struct, kw_only=True):
    """What `forebay plan study` says."""

    machine: str  # name in the machine file
    storage: str  # name in the machine file
    strategy: str  # of the tuner
    points: list[StudyPoint]  # by number of servers
    best: StudyPoint  # the fewest node-seconds, storage included
    known: list[KnownPoint]  # settings that the user named


class PlacedJob(msgspec.Struct, kw_only=True):
    """One of several jobs that use a pool at the same time."""

    requested_bytes: int  # what it asks for
    nodes: list[int]  # storage nodes from 0, one entry for each granule
    shares_with: list[int]  # jobs from 1 that use one of its nodes


class Capacity(msgspec.Struct, kw_only=True):
    """What `forebay plan capacity` says of the pool of a storage, and of an allocation. Exact numbers."""

    machine: str  # name in the machine file
    storage: str  # name in the machine file
    pool_nodes: int  # storage nodes of the pool
    granularity_bytes: int  # one granule
    grains_per_node: int | None  # whole granules that a node can give; null if its capacity is not known
    grains_per_node_exact: float | None  # the same with its fraction
    usable_per_node_bytes: int | None  # whole granules of one node
    largest_without_doubling_bytes: int  # above, nodes give two granules
    requested_bytes: int | None  # null if nothing was asked for
    granted_bytes: int | None  # whole granules
    grains: int | None  # of the allocation
    nodes: int | None  # different storage nodes
    nodes_doubled: int | None  # of these, nodes that give two or more granules
    is_doubled: bool | None  # a node gives two or more granules
    directive: str | None  # a `#DW jobdw` line that asks for it
    jobs: list[PlacedJob]  # concurrent jobs, in the order of their start
    nodes_in_use: int | None  # by at least one of these jobs
    nodes_shared: int | None  # by more than one of these jobs


class SystemCallCounts(msgspec.Struct, kw_only=True):
    """What `forebay plan calls` says. Exact numbers."""

    collective_calls: int  # of all ranks, as Cray prints them
    system_calls: int  # with those outside of collective calls
    stripe_sized: int  # of these, exactly one stripe
    stripe_sized_percent: float  # of all system calls
    total_bytes: int  # of all calls
    average_bytes: int  # of a system call, rounded down
    aggregators_default: int | None  # without a hint; null if the servers are not given
    aggregators_balanced: list[int]  # that servers divide, and that divide the ranks
    imbalance: list[str]  # what is unbalanced with the given aggregators
