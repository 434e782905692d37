"""Sentences and cells about plans, for terminal and page."""

from __future__ import annotations

from forebay.plan.answer import Change, CheckpointPlan, Described, Plan, Sized, StoragePlan, Sweep
from forebay.plan.reasons import server_count
from forebay.plan.units import node_hours_text, rate_text, size_text, stripe_text
from forebay.quantities import counted, duration, percent

#: Copies that rates predict to be shorter are not told apart.
COPY_S_MIN = 0.1
_ACCESS = {
    "serial": "by one rank",
    "file-per-process": "in one file per process",
    "independent": "with independent calls on a shared file",
    "collective": "with collective calls on a shared file",
}


def headline(plan: Plan | Sweep) -> str:
    """Machine and job."""
    return f"{plan.machine}: {counted(plan.nodes, 'node')}, {counted(plan.ranks, 'rank')}"


def pattern(one: Described) -> str:
    """What a pattern does."""
    verb = "writes" if one.direction == "write" else "reads"
    calls = f", {counted(one.calls, 'call')} of each rank" if one.calls else ""
    return f"{one.name}: {verb} {size_text(one.total_bytes)} {_ACCESS[one.access]}{calls}"


def with_band(one: Sized) -> str:
    """A time with its band."""
    return f"{duration(one.io_s)} ({duration(one.low_s)} to {duration(one.high_s)})"


def counts(values: list[int | None]) -> str:
    """One value if all patterns have the same."""
    different = list(dict.fromkeys(values))
    return ", ".join("–" if value is None else str(value) for value in different)


def sizes(values: list[int]) -> str:
    """Stripe units."""
    return ", ".join(stripe_text(value) for value in dict.fromkeys(values))


def settings(kind: str, one: Sized) -> str:
    """Servers, aggregators and stripe unit."""
    words = [server_count(kind, one.servers)]
    if any(value is not None for value in one.aggregators):
        words.append(
            f"{counts(one.aggregators)} {'aggregator' if set(one.aggregators) == {1} else 'aggregators'}"
        )
    if any(value is not None for value in one.stripe_counts):
        words.append(f"stripe count {counts(one.stripe_counts)}")
    if kind in ("datawarp", "lustre"):
        words.append(f"stripe unit {sizes(one.stripe_bytes)}")
    return ", ".join(words)


def node_hours(one: Sized) -> str:
    """The price of the I/O."""
    total = node_hours_text(one.node_hours + one.storage_node_hours)
    if not one.storage_node_hours:
        return f"{total} node-hours wait for the I/O"
    of_storage = node_hours_text(one.storage_node_hours)
    return f"{total} node-hours, {of_storage} of them of storage"


def details(one: StoragePlan) -> list[str]:
    """What is worth saying of a storage besides its row."""
    found = []
    best = one.recommended
    if best is None:
        return found
    if one.script:
        found.append(_script(one))
    found.append(
        f"{rate_text(best.bytes_per_s)}, {percent(best.efficiency)} of the peak of these servers; "
        f"{node_hours(best)}"
    )
    if one.faster:
        found.append(
            f"{_faster(best.io_s / one.faster.io_s)}, at a higher price: {settings(one.kind, one.faster)}: "
            f"{with_band(one.faster)}; {node_hours(one.faster)}"
        )
    if one.given and not one.script:
        found.append(f"as given ({settings(one.kind, one.given)}): {with_band(one.given)}")
    if one.allocation:
        found.append(_allocation(one))
    if one.staging:
        found.append(_staging(one))
    return found


def _script(one: StoragePlan) -> str:
    """What the script has, and what would be better."""
    has, best = one.script, one.recommended
    assert has is not None and best is not None
    text = f"the script has {_predicted(one.kind, has)}"
    if has == best:
        return f"{text}: nothing that was tried costs less"
    word = "better" if best.io_s <= has.io_s else "cheaper"
    return f"{text}; {word}: {_predicted(one.kind, best)}"


def _predicted(kind: str, one: Sized) -> str:
    hours = node_hours_text(one.node_hours + one.storage_node_hours)
    return f"{settings(kind, one)} (predicted {duration(one.io_s)}, {hours} node-hours)"


def change(one: Change) -> str:
    """Which line is another."""
    if one.line is None:
        return "a new line"
    if one.last_line in (None, one.line):
        return f"line {one.line} of the script becomes"
    return f"lines {one.line} to {one.last_line} of the script become"


def _faster(factor: float) -> str:
    return f"{100 * (factor - 1):.0f} % faster" if factor < 2 else f"{factor:.2g} times as fast"


def _allocation(one: StoragePlan) -> str:
    got = one.allocation
    text = f"allocation: {size_text(got.granted_bytes)} on {server_count(one.kind, got.nodes)}"
    if got.lost_bytes > 0:
        text += f", {size_text(got.lost_bytes)} more than the data need"
    if got.is_doubled:
        text += "; some nodes give two granules, which share their bandwidth"
    return text


def _staging(one: StoragePlan) -> str:
    copied = one.staging
    waiting = ", and its nodes wait" if copied.nodes_wait else ""
    parts = []
    if copied.stage_in_s:
        amount = size_text(copied.in_bytes)
        when = f"after the job starts{waiting}" if copied.nodes_wait else "before the job starts"
        parts.append(f"stage in {amount} from {copied.file_system}: {_copy_time(copied.stage_in_s)} {when}")
    if copied.stage_out_s:
        hidden = f", {duration(copied.hidden_s)} of it while the job computes" if copied.hidden_s else ""
        after = waiting if copied.after_s else ""
        parts.append(f"stage out to {copied.file_system}: {_copy_time(copied.stage_out_s)}{hidden}{after}")
    return "; ".join(parts) or "nothing to stage"


def _copy_time(seconds: float) -> str:
    """Rates alone say nothing of shorter copies."""
    return duration(seconds) if seconds >= COPY_S_MIN else f"less than {duration(COPY_S_MIN)}"


def checkpoint_headline(plan: CheckpointPlan) -> str:
    """Where to write checkpoints, how often, and what that costs."""
    best = plan.levels[0]
    return (
        f"{plan.machine}: write a checkpoint to {best.storage} every {duration(best.interval_s)}; "
        f"{percent(best.waste)} of the time is lost to checkpoints and failures"
    )


def checkpoint_details(plan: CheckpointPlan) -> list[str]:
    """What is worth saying of each level besides its row."""
    found = []
    for one in plan.levels:
        total = node_hours_text(one.node_hours_per_day)
        of_job = node_hours_text(24.0 * plan.nodes)
        on = server_count(one.kind, one.servers)
        text = f"{one.storage}, {on}: {total} of the job's {of_job} node-hours a day"
        if one.storage_node_hours_per_day:
            text += f", {node_hours_text(one.storage_node_hours_per_day)} of them of storage"
        found.append(text)
        if one.drain_s:
            rate = rate_text(one.drain_bytes_per_s_min)
            found.append(f"{one.storage}: the drain needs {rate} to end before the next checkpoint")
        if one.is_drain_limiting:
            found.append(f"{one.storage}: the drain is slower than the best interval, and sets it")
    return found
