"""Checkpoints on each storage of a machine, with the rates that the model predicts."""

from __future__ import annotations

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
from forebay.plan.search import Fixed, Searcher
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
    """The interval for each storage, the least waste first. Raises PlanError for what does not fit."""
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
        machine=found.name, failure_s=failure_s, levels=sorted(intervals, key=lambda one: one.waste)
    )


def _interval(
    machine: Machine, storage: Storage, permanent: Storage | None, pattern: Pattern, failure_s: float
) -> Interval:
    def seconds(of: Pattern) -> tuple[float, int]:
        searcher = Searcher(
            machine=machine,
            storage=storage,
            patterns=[of],
            fixed=Fixed(),
            parameters=fitted().parameters,
            capacity_bytes=int(of.total_bytes) if storage.kind == "datawarp" else 0,
        )
        best = searcher.recommend(searcher.trials())
        return best.io_s, best.servers

    write_s, servers = seconds(pattern)
    restart_s, _ = seconds(msgspec.structs.replace(pattern, direction="read"))
    drained = staging(machine, storage, servers, 0.0, pattern.total_bytes, 0.0) if permanent else None
    return plan_interval(
        storage.name,
        total_bytes=pattern.total_bytes,
        write_s=write_s,
        restart_s=restart_s,
        failure_s=failure_s,
        drain_s=drained.stage_out_s if drained else 0.0,
        survives_node_loss=storage.kind != "node-local",
    )
