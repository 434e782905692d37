"""Exact rules of stripes and aggregators: defaults, divisibility, and Lustre's stripe count.

Rules of KAUST18, OLCF18 (the talk on Summit's storage, 2018) and CRAY12 (Cray's course for the XE6, 2012).
"""

from __future__ import annotations

from forebay.plan.errors import PlanError
from forebay.plan.machine_file import StorageKind
from forebay.quantities import counted

#: Aggregators for each DataWarp node at most (KAUST18: k from 2 to 128).
AGGREGATORS_PER_SERVER_MAX = 128
#: OSTs that one process, or one aggregator, writes to at most (CRAY12).
OSTS_PER_PROCESS_MAX = 4


def aggregators_default(kind: StorageKind, *, ranks: int, nodes: int, servers: int) -> int:
    """Aggregators without a hint.

    Cray's MPI: one for each OST or DataWarp node of the file (KAUST18). ROMIO on other file systems: one for
    each node (`cb_config_list` of `*:1`; OLCF18 prints 16 for 16 nodes). Never more than ranks.
    """
    return min(ranks, servers if kind in ("lustre", "datawarp") else nodes)


def aggregator_ranks(aggregators: int, *, ranks: int, nodes: int) -> list[int]:
    """The ranks that aggregate: the first rank of each node in turn, then the second one.

    KAUST18 shows ranks 0, 8, ..., 1144 for 144 aggregators of 1216 ranks on 152 nodes.
    """
    check_ranks(ranks, nodes)
    if not 1 <= aggregators <= ranks:
        raise PlanError(f"{aggregators} aggregators for {counted(ranks, 'rank')}", f"choose 1 to {ranks}")
    per_node = -(-ranks // nodes)
    order = [
        first + at for at in range(per_node) for first in range(0, ranks, per_node) if first + at < ranks
    ]
    return order[:aggregators]


def check_ranks(ranks: int, nodes: int) -> None:
    """Raises PlanError for a job without ranks or nodes, and for nodes without a rank."""
    if ranks < 1:
        raise PlanError(f"a job of {ranks} ranks does no I/O", "give --ranks of at least 1")
    if nodes < 1:
        raise PlanError(f"a job of {nodes} nodes", "give --nodes of at least 1")
    if nodes > ranks:
        raise PlanError(
            f"{counted(ranks, 'rank')} on {nodes} nodes leave nodes empty",
            f"give at most {counted(ranks, 'node')}",
        )


def aggregator_counts(ranks: int, servers: int) -> list[int]:
    """Aggregator counts that balance: `servers` divides them, and they divide the ranks.

    KAUST18: aggregators = k * DataWarp nodes with k of at most 128; ranks = l * aggregators, l of at least 2.
    """
    most = min(ranks // 2, servers * AGGREGATORS_PER_SERVER_MAX)
    return [count for count in range(servers, most + 1, servers) if ranks % count == 0]


def imbalance(ranks: int, aggregators: int, servers: int) -> list[str]:
    """What is unbalanced, as sentences with the nearest counts that are balanced. Empty: nothing."""
    found = []
    if ranks % aggregators:
        found.append(
            f"{aggregators} aggregators do not divide {counted(ranks, 'rank')}: "
            f"choose {_nearest(aggregators, divisors(ranks))}"
        )
    if aggregators % servers and servers % aggregators:
        found.append(
            f"{servers} storage nodes do not divide {aggregators} aggregators: "
            f"choose {_nearest(servers, divisors(aggregators))} storage nodes"
        )
    return found


def divisors(number: int) -> list[int]:
    """All divisors, the smallest first."""
    small = [one for one in range(1, int(number**0.5) + 1) if number % one == 0]
    return small + [number // one for one in reversed(small) if one * one != number]


def _nearest(wanted: int, allowed: list[int]) -> str:
    below = max((one for one in allowed if one <= wanted), default=None)
    above = min((one for one in allowed if one >= wanted), default=None)
    return " or ".join(str(one) for one in dict.fromkeys((below, above)) if one is not None)


def lustre_stripe_count(files: int, targets: int, processes: int, most: int) -> int:
    """Stripes of each file (CRAY12).

    More files than targets: 1. One file: as many as targets or processes, whichever is less. Fewer files than
    targets: as many as use all targets; 4 files on 8 targets have 2 each. `most` is the file system's limit.
    """
    if min(files, targets, processes) < 1:
        raise PlanError(
            "a stripe count needs at least one file, target and process", "check --files and --ranks"
        )
    if files >= targets:
        return 1
    wanted = min(targets, processes) if files == 1 else targets // files
    return max(1, min(wanted, most))
