"""Sentences and cells about plans, for terminal and page."""

from __future__ import annotations

from forebay.plan.answer import Described, Plan, Sized, StoragePlan, Sweep
from forebay.plan.reasons import server_count
from forebay.plan.units import rate_text, size_text, stripe_text
from forebay.quantities import counted, duration, percent

#: Copies that rates predict to be shorter are not told apart.
COPY_S_MIN = 0.1
_ACCESS = {
    "serial": "by one rank",
    "file-per-process": "in one file per process",
    "independent": "with independent calls on a shared file",
    "collective": "with collective calls on a shared file",
}


def headline(told: Plan | Sweep) -> str:
    """Machine and job."""
    return f"{told.machine}: {counted(told.nodes, 'node')}, {counted(told.ranks, 'rank')}"


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


def details(one: StoragePlan) -> list[str]:
    """What is worth saying of a storage besides its row."""
    found = []
    best = one.recommended
    if best is None:
        return found
    found.append(
        f"{rate_text(best.bytes_per_s)}, {percent(best.efficiency)} of the peak of these servers; "
        f"{best.node_hours:.3g} node-hours wait for I/O"
    )
    if one.given:
        found.append(f"as given ({settings(one.kind, one.given)}): {with_band(one.given)}")
    if one.allocation:
        found.append(_allocation(one))
    if one.staging:
        found.append(_staging(one))
    return found


def _allocation(one: StoragePlan) -> str:
    got = one.allocation
    text = f"allocation: {size_text(got.granted_bytes)} on {server_count(one.kind, got.nodes)}"
    if got.lost_bytes > 0:
        text += f", {size_text(got.lost_bytes)} more than the data need"
    if got.is_doubled:
        text += "; some nodes give two grains, which share their bandwidth"
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
