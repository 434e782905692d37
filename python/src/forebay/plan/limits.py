"""What a machine cannot do, whatever the time: refused with the number that is possible."""

from __future__ import annotations

from forebay.plan.allocation import pool_of
from forebay.plan.errors import PlanError
from forebay.plan.machine import Machine, Storage
from forebay.plan.pattern import Pattern, Settings
from forebay.plan.units import size_text
from forebay.quantities import counted

#: Ranks for each core at most: processors have up to four hardware threads a core.
RANKS_PER_CORE_MAX = 4


def check_job(pattern: Pattern, machine: Machine) -> None:
    """Refuses more nodes than the machine has, and more ranks than its cores can hold."""
    if machine.nodes is not None and pattern.nodes > machine.nodes:
        raise PlanError(
            f"{machine.name} has {counted(machine.nodes, 'node')}, and the job asks for {pattern.nodes}",
            f"give --nodes of at most {machine.nodes}",
        )
    per_node = -(-pattern.ranks // pattern.nodes)
    if machine.cores_per_node and per_node > RANKS_PER_CORE_MAX * machine.cores_per_node:
        most = RANKS_PER_CORE_MAX * machine.cores_per_node
        raise PlanError(
            f"{counted(per_node, 'rank')} on each node of {machine.name}, "
            f"which has {counted(machine.cores_per_node, 'core')}",
            f"give at most {most} ranks a node: more --nodes, or fewer --ranks",
        )


def why_unsuitable(pattern: Pattern, storage: Storage) -> str | None:
    """Why this storage cannot hold the files of the pattern, as a sentence; None if it can."""
    if storage.kind == "node-local" and pattern.access != "file-per-process" and pattern.nodes > 1:
        return "a file that several nodes share cannot be on storage of one node; use one file per process"
    return None


def why_too_small(storage: Storage, needed_bytes: float, nodes: int) -> str | None:
    """Why this storage, local storage of so many nodes, cannot hold so much; None if it can."""
    if storage.capacity_bytes is None:
        return None
    limit = (
        storage.capacity_bytes
        * (nodes if storage.kind == "node-local" else storage.servers)
        / storage.servers
    )
    pool = pool_of(storage)
    if pool and pool.capacity_bytes is not None:
        limit = min(limit, pool.capacity_bytes)
    if needed_bytes <= limit:
        return None
    return f"{size_text(needed_bytes)} are more than its {size_text(limit)}"


def check_settings(pattern: Pattern, storage: Storage, settings: Settings) -> None:
    """Refuses settings that the storage or the job does not have."""
    most = pattern.nodes if storage.kind == "node-local" else storage.servers
    if settings.servers > most:
        raise PlanError(
            f"{storage.name} has {counted(most, 'server')} for this job, and --servers is {settings.servers}",
            f"give at most {most}",
        )
    stripes = settings.stripe_count or settings.servers
    if storage.kind == "lustre" and stripes > storage.stripe_count_max:
        raise PlanError(
            f"a file on {storage.name} has at most {counted(storage.stripe_count_max, 'stripe')}, "
            f"and --servers is {stripes}",
            f"give at most {storage.stripe_count_max}",
        )
    if pattern.access == "collective" and settings.aggregators > pattern.ranks:
        raise PlanError(
            f"{settings.aggregators} aggregators for {counted(pattern.ranks, 'rank')}",
            f"give --aggregators of at most {pattern.ranks}",
        )
