"""Checkpoints on each storage of a machine, with the rates that the model predicts."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from forebay.plan.answer import CheckpointPlan
from forebay.plan.checkpoint import Interval, plan_interval
from forebay.plan.errors import PlanError
from forebay.plan.limits import check_job
from forebay.plan.machine import Machine, Storage, read_machine
from forebay.plan.parameters import fitted
from forebay.plan.pattern import Access, Pattern
from forebay.plan.planner import Question, checkpoint_storages, unsuitable
from forebay.plan.search import Fixed, Searcher, Trial
from forebay.plan.staging import staging


def levels(
    *,
    machine: str,
    size: float,
    nodes: int,
    ranks: int,
    mtbf: float | None,
    node_mtbf: float | None,
    access: Access,
    storages: Sequence[str],
) -> CheckpointPlan:
    """The interval for each storage, the fewest node-hours first. Raises PlanError for what does not fit."""
    if (mtbf is None) == (node_mtbf is None):
        raise PlanError("the time between failures is not clear", "give one of --mtbf and --node-mtbf")
    found = read_machine(machine)
    failure_s = mtbf if mtbf is not None else node_mtbf / max(1, nodes)
    pattern = Pattern(
        name="checkpoint",
        access=access,
        ranks=ranks,
        nodes=nodes,
        total_bytes=size,
        transfer_bytes=min(8 << 20, size / max(1, ranks)),
        files=ranks if access == "file-per-process" else 1,
    )
    check_job(pattern, found)
    names = list(storages) or list(found.storage)
    chosen = [found.choose(name).name for name in names]
    pairs = [(one, to) for one, to in checkpoint_storages(found) if one.name in chosen]
    question = Question(machine=found, patterns=(pattern,))
    usable = [(one, to) for one, to in pairs if unsuitable(question, one) is None]
    if not usable:
        raise PlanError(
            f"no storage of {found.name} can hold the checkpoint", "give a smaller --size, or other --access"
        )
    intervals = [_interval(found, one, to, pattern, failure_s) for one, to in usable]
    return CheckpointPlan(
        machine=found.name,
        failure_s=failure_s,
        nodes=nodes,
        levels=sorted(intervals, key=lambda one: one.node_hours_per_day),
    )


def _interval(
    machine: Machine, storage: Storage, permanent: Storage | None, pattern: Pattern, failure_s: float
) -> Interval:
    """On the number of servers that costs the fewest node-hours a day."""
    writes = Searcher(
        machine=machine,
        storage=storage,
        patterns=[pattern],
        fixed=Fixed(),
        parameters=fitted().parameters,
        capacity_bytes=math.ceil(pattern.total_bytes) if storage.kind == "datawarp" else 0,
    )
    reads = msgspec.structs.replace(writes, patterns=[msgspec.structs.replace(pattern, direction="read")])

    def on(trial: Trial) -> Interval:
        servers = trial.servers
        drained = staging(machine, storage, servers, 0.0, pattern.total_bytes, 0.0) if permanent else None
        return plan_interval(
            storage.name,
            kind=storage.kind,
            total_bytes=pattern.total_bytes,
            write_s=trial.io_s,
            restart_s=reads.best_on(servers).io_s,
            failure_s=failure_s,
            nodes=pattern.nodes,
            servers=servers,
            held_nodes=writes.held_nodes(servers),
            working_nodes=writes.working_nodes(servers),
            drain_s=drained.stage_out_s if drained else 0.0,
            survives_node_loss=storage.kind != "node-local",
        )

    return min(map(on, writes.trials()), key=lambda one: (one.node_hours_per_day, one.servers))
