"""Exact arithmetic of DataWarp allocations: granules, nodes, doubled nodes, and jobs that share nodes.

Rules of KAUST18 (the course on Shaheen II's burst buffer, 2018) and NERSC16 (Cori's first users, 2016):
the capacity is rounded up to whole granules. Each storage node gives one granule in turn; when all nodes have
given one, the first node gives a second. Integers in bytes, without rounding by floating point.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import msgspec

from forebay.plan.errors import PlanError
from forebay.plan.machine import Storage
from forebay.plan.units import size_text
from forebay.quantities import counted

#: More granules of one job take too long to place.
GRANULES_MAX = 10_000_000


class Allocation(msgspec.Struct, frozen=True, kw_only=True):
    """What a request for capacity gets."""

    requested_bytes: int
    granted_bytes: int  # whole granules
    granules: int
    nodes: int  # different storage nodes
    nodes_with_more: int  # of these, nodes that give more granules than another node of the allocation
    nodes_doubled: int  # nodes that give two granules or more
    granules_per_node_max: int
    is_doubled: bool  # a node gives two or more granules: its bandwidth is shared


class Pool(msgspec.Struct, frozen=True, kw_only=True):
    """The storage nodes that give granules. Sizes in bytes."""

    name: str
    nodes: int
    granularity_bytes: int
    node_capacity_bytes: int | None = None

    def __post_init__(self) -> None:
        if self.nodes < 1 or self.granularity_bytes < 1:
            raise PlanError(
                f"{self.name}: a pool has at least one node and a granularity", "correct the machine file"
            )
        if self.node_capacity_bytes is not None and self.granules_per_node < 1:
            raise PlanError(
                f"{self.name}: one granule of {size_text(self.granularity_bytes)} does not fit into a node",
                "correct granularity or server_capacity in the machine file",
            )

    @property
    def granules_per_node(self) -> int | None:
        """Whole granules that one node can give; None if its capacity is not known."""
        if self.node_capacity_bytes is None:
            return None
        return self.node_capacity_bytes // self.granularity_bytes

    @property
    def granules_per_node_exact(self) -> Fraction | None:
        """The same with its fraction, as the published 16.19."""
        if self.node_capacity_bytes is None:
            return None
        return Fraction(self.node_capacity_bytes, self.granularity_bytes)

    @property
    def usable_per_node_bytes(self) -> int | None:
        """What jobs can get of one node: whole granules."""
        return None if self.granules_per_node is None else self.granules_per_node * self.granularity_bytes

    @property
    def capacity_without_doubling_bytes(self) -> int:
        """The largest allocation of an empty pool in which no node gives two granules."""
        return self.nodes * self.granularity_bytes

    @property
    def capacity_bytes(self) -> int | None:
        """All granules of the pool; None if the capacity of a node is not known."""
        return (
            None
            if self.granules_per_node is None
            else self.granules_per_node * self.capacity_without_doubling_bytes
        )

    def granules(self, capacity_bytes: int) -> int:
        """The granules of a capacity, rounded up. Raises PlanError for no capacity, and beyond the pool."""
        if capacity_bytes < 1:
            raise PlanError(f"{self.name}: a capacity of {capacity_bytes} bytes", "ask for at least 1 byte")
        if self.capacity_bytes is not None and capacity_bytes > self.capacity_bytes:
            raise PlanError(
                f"{self.name}: {size_text(capacity_bytes)} are more than the "
                f"{size_text(self.capacity_bytes)} of all {counted(self.nodes, 'storage node')}",
                "ask for less, or plan for another storage",
            )
        return -(-capacity_bytes // self.granularity_bytes)

    def allocate(self, capacity_bytes: int) -> Allocation:
        """What an empty pool gives for a capacity."""
        granules = self.granules(capacity_bytes)
        most, more = divmod(granules, self.nodes)
        return Allocation(
            requested_bytes=capacity_bytes,
            granted_bytes=granules * self.granularity_bytes,
            granules=granules,
            nodes=min(granules, self.nodes),
            nodes_with_more=more if most else 0,
            nodes_doubled=max(0, min(granules - self.nodes, self.nodes)),
            granules_per_node_max=most + (more > 0),
            is_doubled=granules > self.nodes,
        )

    def capacity_for(self, nodes: int) -> int:
        """The capacity that gives one granule of each of `nodes` nodes: what to ask for, in bytes."""
        if not 1 <= nodes <= self.nodes:
            raise PlanError(
                f"{self.name}: {nodes} storage nodes, but the pool has {self.nodes}",
                f"ask for 1 to {self.nodes}",
            )
        return nodes * self.granularity_bytes


def pool_of(storage: Storage) -> Pool | None:
    """The pool of a storage with a granularity; None without one."""
    if storage.granularity_bytes is None:
        return None
    capacity = storage.server_capacity_bytes
    return Pool(
        name=storage.name,
        nodes=storage.servers,
        granularity_bytes=round(storage.granularity_bytes),
        node_capacity_bytes=None if capacity is None else round(capacity),
    )


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """Where the allocations of several jobs are."""

    nodes_of_job: list[list[int]]  # storage nodes of each job by number, one entry a granule
    in_use: int  # nodes that at least one job uses
    shared: int  # nodes that more than one job uses

    def sharers(self, job: int) -> list[int]:
        """The other jobs that use a node of this one."""
        mine = set(self.nodes_of_job[job])
        return [other for other, nodes in enumerate(self.nodes_of_job) if other != job and mine & set(nodes)]


def place(pool: Pool, capacities_bytes: Iterable[int]) -> Placement:
    """Places the allocations of concurrent jobs one after the other, as the round robin of DataWarp does.

    The first job begins at node 0; each next one continues where the last ended, and full nodes are skipped.
    Raises PlanError if the pool has too few granules left.
    """
    left = [pool.granules_per_node if pool.granules_per_node is not None else -1] * pool.nodes
    placed: list[list[int]] = []
    next_node = 0
    for number, capacity in enumerate(capacities_bytes):
        wanted = pool.granules(capacity)
        free = sum(left) if left[0] >= 0 or any(one >= 0 for one in left) else wanted
        if wanted > GRANULES_MAX:
            raise PlanError(
                f"{pool.name}: job {number + 1} has {wanted} granules, too many to place one by one",
                f"ask for at most {GRANULES_MAX}",
            )
        if wanted > free:
            raise PlanError(
                f"{pool.name}: job {number + 1} needs {counted(wanted, 'granule')}, and {free} are free",
                "ask for less, or wait for another job to end",
            )
        nodes = []
        while len(nodes) < wanted:
            if left[next_node]:
                left[next_node] -= 1
                nodes.append(next_node)
            next_node = (next_node + 1) % pool.nodes
        placed.append(nodes)
    users = [sum(node in nodes for nodes in map(set, placed)) for node in range(pool.nodes)]
    return Placement(
        nodes_of_job=placed, in_use=sum(map(bool, users)), shared=sum(user > 1 for user in users)
    )
