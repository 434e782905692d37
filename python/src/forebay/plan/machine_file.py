"""The tables of a machine file as they are written: `machines/*.toml` (docs/reference/machine-files.md).

The classes generate docs/reference/schemas/machine-file.json. `machine.py` reads and checks.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from forebay.plan.units import UNITS, Kind

StorageKind = Literal["lustre", "spectrum-scale", "datawarp", "node-local", "directory"]


def _pattern(kind: Kind) -> dict[str, str]:
    return {"pattern": rf"^\s*\+?[0-9.]+([eE][+-]?[0-9]+)?\s*({'|'.join(UNITS[kind])})\s*$"}


class Figure(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A number and where it comes from."""

    kind: ClassVar[Kind]
    value: str | int | float  # the number, with its unit if it has one
    source: str  # a publication, a measurement, or `assumption: ...` with the reason


class Count(Figure):
    """A whole number."""

    kind: ClassVar[Kind] = "count"
    value: Annotated[str | int | float, Meta(extra_json_schema={"type": "integer", "minimum": 1})]  # a number


class Time(Figure):
    """A time, with its unit."""

    kind: ClassVar[Kind] = "time"
    value: Annotated[str | int | float, Meta(extra_json_schema={"type": "string"} | _pattern("time"))]  # time


class Rate(Figure):
    """Bytes in a second, with the unit."""

    kind: ClassVar[Kind] = "rate"
    value: Annotated[str | int | float, Meta(extra_json_schema={"type": "string"} | _pattern("rate"))]  # rate


class Size(Figure):
    """Bytes, with the unit."""

    kind: ClassVar[Kind] = "size"
    value: Annotated[str | int | float, Meta(extra_json_schema={"type": "string"} | _pattern("size"))]  # size


class Compute(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The nodes that run jobs."""

    nodes: Count  # of the whole machine
    cores_per_node: Count | UnsetType = UNSET  # processor cores of one node
    memory_per_node: Size | UnsetType = UNSET  # memory of one node
    node_bandwidth: Rate | UnsetType = UNSET  # from one node to storage over the network


class Storage(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """One storage of a machine."""

    kind: StorageKind  # decides which parts of the model apply
    servers: Count | UnsetType = UNSET  # Lustre: OSTs; DataWarp: storage nodes; node-local: all nodes
    write_bandwidth: Rate | UnsetType = UNSET  # of all servers together
    read_bandwidth: Rate | UnsetType = UNSET  # of all servers together; if absent, as for writes
    server_write_bandwidth: Rate | UnsetType = UNSET  # of one server
    server_read_bandwidth: Rate | UnsetType = UNSET  # of one server; if absent, as for writes
    capacity: Size | UnsetType = UNSET  # of all servers together
    server_capacity: Size | UnsetType = UNSET  # of one server
    granularity: Size | UnsetType = UNSET  # DataWarp: allocations are multiples of it
    pool: str | UnsetType = UNSET  # DataWarp: the value of `pool=`
    stripe_count: Count | UnsetType = UNSET  # servers of a new file
    stripe_count_max: Count | UnsetType = UNSET  # servers of one file at most
    stripe_size: Size | UnsetType = UNSET  # stripe unit of a new file; Spectrum Scale: its block
    request_time: Time | UnsetType = UNSET  # cost of one small request at a server
    switch_time: Time | UnsetType = UNSET  # cost when another client writes to the same lock range
    operation_time: Time | UnsetType = UNSET  # of one metadata operation
    stripe_time: Time | UnsetType = UNSET  # added to an operation for each stripe of the file


class Targets(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Emulation: the storage targets."""

    count: Count  # number of targets
    latency: Time  # fixed cost of a request
    bandwidth: Rate  # of one target
    switch_penalty: Time  # cost when the writing client of a target changes


class Client(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Emulation: the limit of one client, which is a process."""

    bandwidth: Rate  # over all targets


class Metadata(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Emulation: the metadata server."""

    operation: Time  # of one operation
    per_stripe: Time  # added for each stripe of an opened file


class Layout(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Emulation: the default layout of a file."""

    stripe_count: Count  # targets of a new file
    stripe_size: Size  # of one stripe


class MachineFile(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A machine file. It has the four tables of the emulation, or those of the planner, or both."""

    name: str  # of the machine, for reports
    scale: str  # how its numbers relate to the real machine
    compute: Compute | UnsetType = UNSET  # planner: the nodes that run jobs
    storage: dict[str, Storage] | UnsetType = UNSET  # planner: each storage by its name
    targets: Targets | UnsetType = UNSET  # emulation: the storage targets
    client: Client | UnsetType = UNSET  # emulation: the limit of one client
    metadata: Metadata | UnsetType = UNSET  # emulation: the metadata server
    layout: Layout | UnsetType = UNSET  # emulation: the default layout
