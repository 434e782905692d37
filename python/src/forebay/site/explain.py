"""What a job with a burst buffer waits for, and the next step, from the facts alone."""

import re
from typing import Literal

import msgspec

from forebay.quantities import duration, size
from forebay.site.facts import Allocation, Facts, Staging

State = Literal[
    "held",
    "waits for space",
    "pool drained",
    "waits for node",
    "staging in",
    "waits for Slurm",
    "running",
    "staging out",
    "kept",
    "being freed",
    "ended",
]
#: Allocations that a paragraph names.
NAMED_MAX = 3
#: A call that waits for a staging writes every few seconds.
STALE_S = 120
#: `burst_buffer/datawarp: dws_data_in: text`, `burst_buffer/lua: slurm_bb_setup: text`
_OF_PLUGIN = re.compile(r"burst_buffer/\w+: (?:(?:dws_|slurm_bb_)?[a-z_]+: )?(.*)", re.DOTALL)


class SiteExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """What `forebay why` says of a job with a burst buffer of the site."""

    job: str  # its id in Slurm
    state: State
    paragraph: str  # what it waits for, or why it failed
    next_step: str | None  # a command, or what to change


def explain(facts: Facts, now_s: float) -> SiteExplanation:
    """One paragraph and the next step."""
    state, paragraph, next_step = _told(facts, now_s)
    if facts.problem and state != "held" and facts.problem not in paragraph:
        paragraph += f" Forebay's last error: {facts.problem.rstrip('.')}."
    return SiteExplanation(job=facts.job.id, state=state, paragraph=paragraph, next_step=next_step)


_Told = tuple[State, str, str | None]


def _told(facts: Facts, now_s: float) -> _Told:
    job = facts.job
    name = f"Job {job.id} of {job.user}"
    allocation = facts.site.allocation if facts.site else None
    error = _error(job.reason)
    if job.state == "PENDING":
        return _pending(facts, name, allocation, error, now_s)
    if job.state in ("CONFIGURING", "RUNNING", "SUSPENDED", "COMPLETING"):
        out = " Its results are staged out after its end." if allocation and allocation.has_stage_out else ""
        return "running", f"{name} is {job.state.lower()}, and has its burst buffer.{out}", None
    if job.state == "STAGE_OUT":
        return _staging_out(facts, name, allocation, error, now_s)
    if allocation:
        return _not_freed(name, job.token, allocation)
    return "ended", f"{name} has ended ({job.state}), and its burst buffer is freed.", None


def _error(reason: str) -> tuple[str, str | None] | None:
    """What failed and the remedy, from a reason that the plugin gave."""
    found = _OF_PLUGIN.match(reason)
    if not found or found[1].strip().endswith(" in progress"):
        return None
    what, separator, hint = found[1].strip().partition("; ")
    return what, hint if separator else None


def _pending(
    facts: Facts, name: str, allocation: Allocation | None, error: tuple[str, str | None] | None, now_s: float
) -> _Told:
    token = facts.job.token
    if error:
        what, hint = error
        again = f"scancel {token}, and submit the job again"
        return "held", f"{name} is held: {what}.", f"{hint}; then {again}" if hint else again
    if facts.site is None:
        text = f"{name} waits; Slurm's reason is {facts.job.reason}. Forebay's part of Slurm does not answer."
        return "waits for Slurm", text, "tell the site: scontrol show bbstat pools fails"
    if allocation is None:
        if facts.job.reason == "BurstBufferResources" or facts.job.stage in ("", "pending"):
            return _without_space(facts, name)
        return "waits for Slurm", f"{name} gets its allocation next.", None
    if allocation.phase == "creating":
        if allocation.node_is_online is False:
            return _silent(name, allocation, "its allocation is made there")
        return "staging in", f"{name} waits until {allocation.node} has made its allocation.", None
    if allocation.phase in ("ready", "staging-in") and facts.job.reason != "None":
        return _staging(name, allocation, "in", now_s)
    if allocation.has_problem:
        text = f"{name} could not start: not all of its nodes had the burst buffer. Slurm tries it again."
        return "waits for node", text, f"scontrol show job {token} shows the node in SystemComment"
    start = f" Slurm expects it to start at {facts.job.start}." if facts.job.start[:1].isdigit() else ""
    text = f"{name} has its burst buffer, and waits for Slurm: {facts.job.reason}.{start}"
    return "waits for Slurm", text, None


def _without_space(facts: Facts, name: str) -> _Told:
    pool = facts.pool
    if pool is None:
        return (
            "waits for space",
            f"{name} waits for space in a pool that the site does not have.",
            "name another pool=",
        )
    if pool.is_drained:
        text = f"{name} waits: the site gives no space of the pool {pool.name} to new jobs."
        return "pool drained", text, f"wait until the site ends that, or name another pool= than {pool.name}"
    grain = pool.granularity_bytes
    wanted = -(-facts.wanted_bytes // grain) * grain
    free, whole = pool.free * grain, pool.quantity * grain
    text = (
        f"{name} needs {size(wanted)} of the pool {pool.name}, which has {size(free)} of {size(whole)} free."
    )
    if wanted > whole:
        return "waits for space", text, f"ask for at most capacity={size(whole).replace(' ', '')}"
    if wanted <= free:
        return "waits for space", f"{text} Slurm gives space at its next look.", None
    named = [
        f"{one.token} of {one.user} ({size(one.capacity_bytes)}{_end(one.token, facts.ends)})"
        for one in pool.allocations[:NAMED_MAX]
    ]
    more = len(pool.allocations) - len(named)
    text += f" The largest allocations are {', '.join(named)}{f', and {more} more' if more > 0 else ''}."
    step = "wait until one of them ends, or ask for less"
    return "waits for space", text, step


def _end(token: str, ends: dict[str, str]) -> str:
    return f", ends by {ends[token]}" if token in ends else ""


def _silent(name: str, allocation: Allocation, why: str) -> _Told:
    text = f"{name} waits for the node {allocation.node}, which does not answer: {why}."
    return "waits for node", text, f"tell the site: forebay-noded on {allocation.node} must run"


def _staging(name: str, allocation: Allocation, word: Literal["in", "out"], now_s: float) -> _Told:
    state: State = "staging in" if word == "in" else "staging out"
    staging = allocation.staging
    if staging is None or staging.direction.lower() != word:
        return state, f"{name} is staged {word} on {allocation.node}; nothing is copied yet.", None
    if staging.silent_since_unix_s is not None:
        since = duration(max(0, now_s - staging.silent_since_unix_s))
        return _silent(name, allocation, f"the data are staged {word} there (silent for {since})")
    if staging.failures:
        times = "once" if staging.failures == 1 else f"{staging.failures} times"
        text = f"{name} is staged {word}. That failed {times}; Forebay tries again."
        return (
            state,
            text,
            "look at the destinations in the script; Slurm's reason names the error when Forebay gives up",
        )
    return state, f"{name} {_progress(allocation, staging, word)}{_stale(staging, now_s)}", None


def _progress(allocation: Allocation, staging: Staging, word: str) -> str:
    progress = staging.progress
    if progress is None or not (progress.is_waiting or progress.files):
        return f"is staged {word} on {allocation.node}: its files are being counted."
    if progress.is_waiting:
        return f"waits for its turn to be staged {word} on {allocation.node}: other stagings run there."
    done, whole = progress.bytes_done, progress.bytes
    percent = f" ({100 * done // whole} %)" if whole else ""
    files = "one file" if progress.files == 1 else f"{progress.files} files"
    copied = f"{size(done)} of {size(whole)} in {files} are copied{percent}"
    return f"is staged {word} on {allocation.node}: {copied}."


def _stale(staging: Staging, now_s: float) -> str:
    age_s = now_s - staging.seen_unix_s
    return f" That was {duration(age_s)} ago." if age_s > STALE_S else ""


def _staging_out(
    facts: Facts, name: str, allocation: Allocation | None, error: tuple[str, str | None] | None, now_s: float
) -> _Told:
    if error:
        what, hint = error
        text = f"{name} has ended, but its results are not delivered: {what}."
        step = hint or f"ask the site for forebay control deliver {facts.job.token}"
        return "kept", text, step
    if allocation is None or allocation.phase in ("staged-out", "removing"):
        return (
            "being freed",
            f"{name} has ended; its results are delivered, and its space is being freed.",
            None,
        )
    return _staging(name, allocation, "out", now_s)


def _not_freed(name: str, token: str, allocation: Allocation) -> _Told:
    text = f"{name} has ended, and still has {size(allocation.capacity_bytes)} of the pool {allocation.pool}."
    if allocation.has_problem:
        return (
            "being freed",
            f"{text} It could not be removed yet.",
            f"ask the site to look at forebay control status ({token})",
        )
    return "being freed", f"{text} It is being removed.", None
