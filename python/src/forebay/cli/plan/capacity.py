"""`forebay plan capacity`: from capacity to storage nodes and back, exactly."""

from __future__ import annotations

from fractions import Fraction

import click
import msgspec

from forebay.cli.plan.pattern_options import ExactSize
from forebay.plan.allocation import Pool, place, pool_of
from forebay.plan.answer import Capacity, PlacedJob
from forebay.plan.errors import PlanError
from forebay.plan.job_lines import allocation_line, exact_size
from forebay.plan.machine import Machine, Storage, read_machine
from forebay.quantities import counted

_GIB, _TIB = 1 << 30, 1 << 40


@click.command(
    "capacity",
    epilog="""\b
Examples:
  forebay plan capacity 60TiB --machine shaheen2
  forebay plan capacity --nodes 64 --machine shaheen2
  forebay plan capacity --machine shaheen2 --job 23552GiB --job 23552GiB --job 60TiB""",
)
@click.argument("size", required=False, type=ExactSize())
@click.option("--machine", required=True, metavar="NAME", help="Machine file: an installed name or a path.")
@click.option("--storage", metavar="NAME", help="Storage with a granularity. [the only one]")
@click.option("--nodes", type=click.INT, metavar="N", help="The capacity that gives N storage nodes.")
@click.option(
    "--job", "jobs", multiple=True, type=ExactSize(), help="Jobs at the same time: which nodes they share."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    size: int | None,
    machine: str,
    storage: str | None,
    nodes: int | None,
    jobs: tuple[int, ...],
    as_json: bool,
) -> None:
    """Show how many storage nodes a capacity gives, or which capacity gives so many nodes.

    Capacities are rounded up to whole granules. Each node gives one granule in turn. Numbers are exact. TB is
    1000^4 bytes and TiB 1024^4; published tables of DataWarp often write TB for TiB.
    """
    if size is not None and nodes is not None:
        raise PlanError("SIZE and --nodes ask for different things", "give one of them")
    found = read_machine(machine)
    chosen, pool = _pool(found, storage)
    asked = pool.capacity_for(nodes) if nodes is not None else size
    capacity = _capacity(found, chosen, pool, asked, jobs)
    if as_json:
        click.echo(msgspec.json.encode(capacity).decode())
        return
    for line in _lines(capacity):
        click.echo(line)


def _pool(machine: Machine, name: str | None) -> tuple[Storage, Pool]:
    pools = {one.name: pool for one in machine.storage.values() if (pool := pool_of(one))}
    if name is None and len(pools) == 1:
        (name,) = pools
    if name is None:
        which = f"has {len(pools)} storages with a granularity"
        raise PlanError(
            f"{machine.name} {which}", "give one with --storage" if pools else "choose another machine"
        )
    storage = machine.choose(name)
    if name not in pools:
        raise PlanError(
            f"{storage.name} of {machine.name} has no granularity", "choose a storage of kind datawarp"
        )
    return storage, pools[name]


def _capacity(
    machine: Machine, storage: Storage, pool: Pool, asked: int | None, jobs: tuple[int, ...]
) -> Capacity:
    got = pool.allocate(asked) if asked is not None else None
    placed = place(pool, jobs) if jobs else None
    exact = pool.granules_per_node_exact
    return Capacity(
        machine=machine.name,
        storage=storage.name,
        pool_nodes=pool.nodes,
        granularity_bytes=pool.granularity_bytes,
        grains_per_node=pool.granules_per_node,
        grains_per_node_exact=None if exact is None else float(round(exact, 4)),
        usable_per_node_bytes=pool.usable_per_node_bytes,
        largest_without_doubling_bytes=pool.capacity_without_doubling_bytes,
        requested_bytes=asked,
        granted_bytes=got and got.granted_bytes,
        grains=got and got.granules,
        nodes=got and got.nodes,
        nodes_doubled=None if got is None else got.nodes_doubled,
        is_doubled=None if got is None else got.is_doubled,
        directive=_line(got.granted_bytes, storage, pool) if got else None,
        jobs=[
            PlacedJob(
                requested_bytes=wanted,
                nodes=placed.nodes_of_job[number],
                shares_with=[other + 1 for other in placed.sharers(number)],
            )
            for number, wanted in enumerate(jobs)
        ]
        if placed
        else [],
        nodes_in_use=placed and placed.in_use,
        nodes_shared=placed.shared if placed else None,
    )


def _line(capacity_bytes: int, storage: Storage, pool: Pool) -> str:
    return allocation_line(capacity_bytes, storage.pool, pool.granularity_bytes)


def _lines(capacity: Capacity) -> list[str]:
    pool = f"{counted(capacity.pool_nodes, 'node')}, granules of {exact_size(capacity.granularity_bytes)}"
    lines = [f"{capacity.storage} of {capacity.machine}: {pool}"]
    if capacity.grains_per_node is not None:
        ones = "whole one" if capacity.grains_per_node == 1 else "whole ones"
        whole = f"{capacity.grains_per_node} {ones}, {_tib(capacity.usable_per_node_bytes)}"
        lines.append(f"a node has {capacity.grains_per_node_exact:.2f} granules: {whole}")
    lines.append(f"above {_tib(capacity.largest_without_doubling_bytes)}, nodes give two granules")
    if capacity.granted_bytes is not None:
        placed = f"{counted(capacity.grains, 'granule')} on {counted(capacity.nodes, 'node')}"
        granted = exact_size(capacity.granted_bytes, capacity.granularity_bytes)
        lines.append(f"{exact_size(capacity.requested_bytes)}: {placed}, {granted} granted")
        if capacity.is_doubled:
            gives = "gives" if capacity.nodes_doubled == 1 else "give"
            lines.append(f"warning: {counted(capacity.nodes_doubled, 'node')} {gives} two granules or more")
        lines.append(f"  {capacity.directive}")
    for number, job in enumerate(capacity.jobs, 1):
        others = ", ".join(map(str, job.shares_with))
        shares = f"shares nodes with job {others}" if others else "shares no node"
        used = counted(len(set(job.nodes)), "node")
        lines.append(f"job {number}: {exact_size(job.requested_bytes)}, {used}, {shares}")
    if capacity.jobs:
        lines.append(
            f"{counted(capacity.nodes_in_use, 'node')} in use, {capacity.nodes_shared} by more than one job"
        )
    return lines


def _tib(size_bytes: int) -> str:
    return f"{float(Fraction(size_bytes, _TIB)):.2f} TiB ({size_bytes // _GIB} GiB)"
