"""Staging next to a run: how long it takes, and whether the run hides it."""

from __future__ import annotations

import math

import msgspec

from forebay.plan.machine import Machine, Storage

#: Kinds of storage that outlive a job: data are staged from and to them.
PERMANENT = ("lustre", "spectrum-scale")
#: Kinds of storage that are emptied after a job: data are staged to and from them.
BURST_BUFFERS = ("datawarp", "node-local")


class Staging(msgspec.Struct, frozen=True, kw_only=True):
    """Copies between a burst buffer and the parallel file system. Times in seconds."""

    file_system: str  # name of the permanent storage
    bytes_per_s: float  # of staging, at the peaks of both sides
    in_bytes: float  # staged in
    stage_in_s: float  # before the program starts
    stage_out_s: float  # of all output
    hidden_s: float  # of stage_out_s, while the job computes
    after_s: float  # of stage_out_s, after the program
    nodes_wait: (
        bool  # whether the job's own nodes copy, before and after; else storage nodes do, without them
    )


def permanent_storage(machine: Machine) -> Storage | None:
    """The storage to stage from and to: the first that outlives a job."""
    return next((one for one in machine.storage.values() if one.kind in PERMANENT), None)


def staging(
    machine: Machine, storage: Storage, servers: int, in_bytes: float, out_bytes: float, compute_s: float
) -> Staging | None:
    """How long staging takes with that many servers; None if the storage needs none, or there is no other.

    Copies are in large requests, so the lower of both peaks limits. A drain copies each file once it is
    closed, so what fits into the computing time is hidden. DataWarp's nodes copy by themselves; local storage
    is filled by its node, through the node's network, when the job has begun.
    """
    permanent = permanent_storage(machine)
    if storage.kind not in BURST_BUFFERS or permanent is None:
        return None
    is_local = storage.kind == "node-local"
    network = servers * machine.node_bytes_per_s if is_local and machine.node_bytes_per_s else math.inf
    inwards = min(
        servers * storage.server_write_bytes_per_s,
        permanent.servers * permanent.server_read_bytes_per_s,
        network,
    )
    outwards = min(
        servers * storage.server_read_bytes_per_s,
        permanent.servers * permanent.server_write_bytes_per_s,
        network,
    )
    out_s = out_bytes / outwards
    hidden_s = min(out_s, compute_s)
    return Staging(
        file_system=permanent.name,
        bytes_per_s=outwards,
        in_bytes=in_bytes,
        stage_in_s=in_bytes / inwards,
        stage_out_s=out_s,
        hidden_s=hidden_s,
        after_s=out_s - hidden_s,
        nodes_wait=is_local,
    )
