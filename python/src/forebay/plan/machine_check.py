"""Checks of machine files that compare figures, or that find a wrong unit."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from forebay.plan.errors import PlanError
from forebay.plan.units import Kind, rate_text, size_text
from forebay.quantities import printable

#: Two statements of the same figure may differ so much: publications round.
FACTOR_MAX = 1.3
#: What two statements that differ by about this factor often have wrong.
_SUSPECTS = (
    (8.0, "bits and bytes"),
    (1000.0, "a prefix of the unit, such as MB and GB"),
    (1e6, "two prefixes"),
)
#: No machine has more nodes or servers.
COUNT_MAX = 10_000_000
#: What `#DW` lines take as the name of a pool.
_POOL = re.compile(r"[A-Za-z0-9_.-]{1,64}")
#: Values outside are taken for a wrong unit: (smallest, largest) by the end of the key.
_PLAUSIBLE: dict[str, tuple[float, float]] = {
    "nodes": (1, COUNT_MAX),
    "servers": (1, COUNT_MAX),
    "server_write_bandwidth": (1e6, 1e12),
    "server_read_bandwidth": (1e6, 1e12),
    "node_bandwidth": (1e6, 1e13),
    "write_bandwidth": (1e6, 1e15),
    "read_bandwidth": (1e6, 1e15),
    "memory_per_node": (1 << 26, 1e15),
    "granularity": (1 << 20, 1e15),
    "stripe_size": (1 << 12, 1 << 33),
    "server_capacity": (1 << 20, 1e17),
    "capacity": (1 << 20, 1e20),
    "request_time": (1e-8, 10.0),
    "switch_time": (0.0, 10.0),
    "operation_time": (1e-8, 10.0),
    "stripe_time": (0.0, 10.0),
}


def check_plausible(path: Path, key: str, kind: Kind, value: float) -> None:
    """Refuses a figure that no machine has: its unit is wrong."""
    low, high = _PLAUSIBLE.get(key.rpartition(".")[2], (0.0, float("inf")))
    if low <= value <= high:
        return
    text = {"rate": rate_text, "size": size_text, "count": str}.get(kind, lambda number: f"{number:g} s")
    message = f"{path}: {key} is {text(value)}, outside of {text(low)} to {text(high)}"
    hint = "check its unit: k, M, G and T are powers of 1000, and B is a byte"
    raise PlanError(message, "check the number" if kind == "count" else hint)


def check_pool(key: str, pool: str) -> None:
    """Refuses a name that would be more than one word of a `#DW` line."""
    if not _POOL.fullmatch(pool):
        raise PlanError(
            f"{key}.pool = {printable(repr(pool))}: it is no name of a pool",
            "use letters, digits, `_`, `.` and `-`",
        )


def servers(key: str, kind: str, given: int | None, nodes: int) -> int:
    """The number of servers. That of node-local storage is the number of nodes."""
    if kind != "node-local":
        if given is None:
            raise PlanError(
                f"{key}.servers is missing", "give the number of OSTs, storage nodes or NSD servers"
            )
        return given
    if given not in (None, nodes):
        raise PlanError(
            f"{key}.servers is {given}, but compute.nodes is {nodes}",
            "leave servers out: each node has its storage",
        )
    return nodes


def of_one_server(
    key: str, name: str, value: Callable[[str], float | None], server_count: int
) -> float | None:
    """The figure of one server, from `name` (all together) or `server_name`. None: neither is given.

    Raises PlanError if both are given and differ, with what may be wrong.
    """
    total, one = value(name), value(f"server_{name}")
    if total is None or one is None:
        return one if total is None else total / server_count
    factor = max(total, one * server_count) / min(total, one * server_count)
    if factor <= FACTOR_MAX:
        return one
    text = rate_text if name.endswith("bandwidth") else size_text
    message = (
        f"{key}.{name} is {text(total)}, but {server_count} servers of server_{name} {text(one)} "
        f"are {text(one * server_count)}"
    )
    suspect = next((what for size, what in _SUSPECTS if 0.7 < factor / size < 1.4), None)
    about = f"they differ by a factor of {factor:.3g}"
    hint = (
        f"{about}: check for {suspect}" if suspect else f"{about}: correct servers, {name} or server_{name}"
    )
    raise PlanError(message, hint)


def check_granularity(
    key: str, is_needed: bool, granularity: float | None, server_capacity: float | None
) -> None:
    """A granule must fit into one server."""
    if granularity is None:
        if is_needed:
            raise PlanError(f"{key}.granularity is missing", "dwstat pools or scontrol show burst prints it")
        return
    if server_capacity is not None and granularity > server_capacity:
        message = (
            f"{key}.granularity is {size_text(granularity)}, more than the "
            f"{size_text(server_capacity)} of one server"
        )
        raise PlanError(message, "check both units: a server holds at least one granule")


def check_stripes(key: str, count: int, most: int, server_count: int) -> None:
    """A file has at most as many stripes as there are servers."""
    for name, stripes in (("stripe_count_max", most), ("stripe_count", count)):
        if stripes > server_count:
            raise PlanError(
                f"{key}.{name} is {stripes}, but there are {server_count} servers",
                f"give at most {server_count}",
            )
    if count > most:
        raise PlanError(f"{key}.stripe_count is {count}, more than stripe_count_max", f"give at most {most}")
