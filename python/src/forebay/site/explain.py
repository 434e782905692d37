"""What a job with a burst buffer waits for, and the next step, from the facts alone."""

import re
from typing import Literal

import msgspec

from forebay.quantities import duration, size
from forebay.site.facts import Allocation, Facts, Holder, Progress, Staging

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
#: Nodes that a paragraph names.
NODES_MAX = 5
#: A call that waits for a staging writes every few seconds.
STALE_S = 120
#: Phases of an allocation whose job has run.
_OF_EARLIER_RUN = ("running", "ended", "staging-out", "staged-out", "removing")
#: Slurm's reason when pre_run failed. It has removed the allocation, and waits for a release of the job.
_NOT_STARTED = re.compile(r"Burst.buffer.pre.run.error")
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
    state, paragraph, next_step = _explained(facts, now_s)
    if facts.problem and state != "held" and facts.problem not in paragraph:
        paragraph += f" Forebay's last error: {facts.problem.rstrip('.')}."
    return SiteExplanation(job=facts.job.id, state=state, paragraph=paragraph, next_step=next_step)


_Explained = tuple[State, str, str | None]


def _explained(facts: Facts, now_s: float) -> _Explained:
    job = facts.job
    name = f"Job {job.id} of {job.user}"
    allocation = facts.site.allocation if facts.site else None
    error = _error(job.reason)
    if job.state == "PENDING":
        return _pending(facts, name, allocation, error, now_s)
    if job.state == "CONFIGURING" and allocation and allocation.staging:
        return _starting(facts, name, allocation, now_s)
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
) -> _Explained:
    token = facts.job.token
    if _NOT_STARTED.fullmatch(facts.job.reason):
        text = f"{name} is held: it could not start, since not all of its nodes had its burst buffer."
        return (
            "held",
            text,
            f"correct what SystemComment in scontrol show job {token} says; then scontrol release {token}",
        )
    if error and not (allocation and allocation.phase == "staged-out"):
        return "held", f"{name} is held: {error[0]}.", _after_error(error[1], token, allocation)
    if facts.site is None:
        text = f"{name} waits; Slurm's reason is {facts.job.reason}. Forebay's part of Slurm does not answer."
        return "waits for Slurm", text, "tell the site: scontrol show bbstat pools fails"
    if allocation is None:
        if facts.job.reason == "BurstBufferResources" or facts.job.stage in ("", "pending"):
            return _without_space(facts, name)
        return "waits for Slurm", f"{name} gets its allocation next.", None
    if allocation.phase == "waiting":
        return _without_room_of_user(facts, name, allocation)
    if allocation.phase == "creating":
        if _offline(allocation):
            return _silent(name, _offline(allocation), "its allocation is made there")
        where = _named([node.name for node in allocation.nodes]) or "a node"
        return "staging in", f"{name} waits until {where} has made its allocation.", None
    if allocation.phase in _OF_EARLIER_RUN:
        return _of_earlier_run(facts, name, allocation, now_s)
    is_staged_in = allocation.phase in ("ready", "staging-in") and not allocation.is_on_nodes
    if is_staged_in and facts.job.reason != "None":
        return _staging(name, allocation, "in", now_s)
    if allocation.has_problem:
        text = f"{name} could not start: not all of its nodes had the burst buffer."
        return "waits for node", text, f"scontrol show job {token} shows the node in SystemComment"
    start = f" Slurm expects it to start at {facts.job.start}." if facts.job.start[:1].isdigit() else ""
    text = f"{name} has its burst buffer, and waits for Slurm: {facts.job.reason}.{start}"
    return "waits for Slurm", text, None


def _after_error(hint: str | None, token: str, allocation: Allocation | None) -> str:
    again = f"scancel {token}, and submit the job again"
    if allocation and allocation.phase in _OF_EARLIER_RUN and allocation.has_stage_out:
        again = f"after the results are delivered, {again}; an earlier scancel throws them away"
    elif hint:
        again = f"then {again}"
    return f"{hint}; {again}" if hint else again


def _of_earlier_run(facts: Facts, name: str, allocation: Allocation, now_s: float) -> _Explained:
    """The job is in the queue again. After a failed stage-out Slurm 22.05 does not run it again."""
    if allocation.phase == "removing" or not allocation.has_stage_out:
        if _offline(allocation):
            return _silent(name, _offline(allocation), "the allocation of its earlier run is removed there")
        text = f"{name} is in the queue again, and waits until the allocation of its earlier run is freed."
        return "being freed", text, None
    if allocation.phase == "staged-out":
        text = f"{name} is in the queue again. The results of its earlier run are delivered. It starts when"
        text += " Slurm has freed its allocation, which Slurm does not do after a failed stage-out."
        return "being freed", text, f"if this stays so: scancel {facts.job.token}, and submit the job again"
    state, text, step = _staging(name, allocation, "out", now_s)
    return state, f"{name} is in the queue again; the results of its earlier run come first. {text}", step


def _without_space(facts: Facts, name: str) -> _Explained:
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
    granule = pool.granularity_bytes
    wanted = -(-facts.wanted_bytes // granule) * granule
    free, whole = pool.free * granule, pool.quantity * granule
    text = (
        f"{name} needs {size(wanted)} of the pool {pool.name}, which has {size(free)} of {size(whole)} free."
    )
    if wanted > whole:
        return "waits for space", text, f"ask for at most capacity={size(whole).replace(' ', '')}"
    if wanted <= free:
        return "waits for space", f"{text} Slurm gives space at its next look.", None
    text += f" The largest allocations are {_holders(pool.allocations, facts)}."
    step = "wait until one of them ends, or ask for less"
    return "waits for space", text, step


def _without_room_of_user(facts: Facts, name: str, allocation: Allocation) -> _Explained:
    pool = (
        next((pool for pool in facts.site.pools if pool.name == allocation.pool), None)
        if facts.site
        else None
    )
    most = f"{size(pool.user_bytes_max)} of " if pool and pool.user_bytes_max else ""
    wanted = size(allocation.capacity_bytes)
    text = f"{name} waits for {wanted}: a user may have {most}the pool {allocation.pool}."
    if allocation.in_the_way:
        text += f" The user's other allocations are {_holders(allocation.in_the_way, facts)}."
    return "waits for space", text, "wait until one of them ends, or name another pool="


def _holders(holders: list[Holder], facts: Facts) -> str:
    named = [
        f"{one.token} of {one.user} ({size(one.capacity_bytes)}{_end(one.token, facts.ends)})"
        for one in holders[:NAMED_MAX]
    ]
    more = len(holders) - len(named)
    return f"{', '.join(named)}{f', and {more} more' if more > 0 else ''}"


def _end(token: str, ends: dict[str, str]) -> str:
    return f", ends by {ends[token]}" if token in ends else ""


def _named(nodes: list[str]) -> str:
    more = ", ..." if len(nodes) > NODES_MAX else ""
    return f"{', '.join(nodes[:NODES_MAX])}{more}"


def _offline(allocation: Allocation) -> list[str]:
    return [node.name for node in allocation.nodes if node.is_online is False and not node.is_delivered]


def _silent(name: str, nodes: list[str], why: str) -> _Explained:
    which = "the node" if len(nodes) == 1 else "the nodes"
    verb = "does" if len(nodes) == 1 else "do"
    text = f"{name} waits for {which} {_named(nodes)}, which {verb} not answer: {why}."
    return "waits for node", text, f"tell the site: forebay-noded on {_named(nodes)} must run"


def _starting(facts: Facts, name: str, allocation: Allocation, now_s: float) -> _Explained:
    """A job whose nodes get their parts of the allocation and its input."""
    staging = allocation.staging
    if staging is None or not staging.full_nodes:
        return _staging(name, allocation, "in", now_s)
    which = "the node has" if len(staging.full_nodes) == 1 else "the nodes have"
    text = f"{name} starts when {which} room for its burst buffer: {_named(staging.full_nodes)}."
    if allocation.in_the_way:
        text += f" The largest allocations there are {_holders(allocation.in_the_way, facts)}."
    return "waits for space", text, "wait until one of them ends, or ask for less"


def _staging(name: str, allocation: Allocation, word: Literal["in", "out"], now_s: float) -> _Explained:
    state: State = "staging in" if word == "in" else "staging out"
    staging = allocation.staging
    if staging is None or staging.direction.lower() != word:
        where = _named([node.name for node in allocation.nodes])
        return state, f"{name} is staged {word} on {where}; nothing is copied yet.", None
    silent = [node for node in staging.nodes if node.silent_since_unix_s is not None]
    if silent:
        since = duration(max(0, now_s - min(node.silent_since_unix_s or 0 for node in silent)))
        why = f"the data are staged {word} there (silent for {since})"
        return _silent(name, [node.node for node in silent], why)
    failing = [node for node in staging.nodes if node.failures]
    if failing:
        failures = max(node.failures for node in failing)
        times = "once" if failures == 1 else f"{failures} times"
        where = f" on {_named([node.node for node in failing])}" if allocation.is_on_nodes else ""
        text = f"{name} is staged {word}. That failed {times}{where}; Forebay tries again."
        return (
            state,
            text,
            "look at the destinations in the script; Slurm's reason names the error when Forebay gives up",
        )
    return state, f"{name} {_progress(allocation, staging, word)}{_stale(staging, now_s)}", None


def _progress(allocation: Allocation, staging: Staging, word: str) -> str:
    where = _named([node.node for node in staging.nodes])
    known = [node.progress for node in staging.nodes if node.progress]
    if known and all(progress.is_waiting for progress in known):
        return f"waits for its turn to be staged {word} on {where}: other stagings run there."
    progress = _sum(known)
    if not progress.files:
        return f"is staged {word} on {where}: its files are being counted."
    done, whole = progress.bytes_done, progress.bytes
    percent = f" ({100 * done // whole} %)" if whole else ""
    files = "one file" if progress.files == 1 else f"{progress.files} files"
    copied = f"{size(done)} of {size(whole)} in {files} are copied{percent}"
    complete = len(allocation.nodes) - len(staging.nodes)
    others = f" {complete} of {len(allocation.nodes)} nodes are done." if complete > 0 else ""
    return f"is staged {word} on {where}: {copied}.{others}"


def _sum(known: list[Progress]) -> Progress:
    return Progress(
        is_waiting=False, files=sum(one.files for one in known), bytes=sum(one.bytes for one in known),
        bytes_done=sum(one.bytes_done for one in known),
    )  # fmt: skip


def _stale(staging: Staging, now_s: float) -> str:
    age_s = now_s - staging.seen_unix_s
    return f" That was {duration(age_s)} ago." if age_s > STALE_S else ""


def _staging_out(
    facts: Facts, name: str, allocation: Allocation | None, error: tuple[str, str | None] | None, now_s: float
) -> _Explained:
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


def _not_freed(name: str, token: str, allocation: Allocation) -> _Explained:
    text = f"{name} has ended, and still has {size(allocation.capacity_bytes)} of the pool {allocation.pool}."
    if allocation.has_problem and _offline(allocation):
        return _silent(name, _offline(allocation), "its allocation is removed there")
    if allocation.has_problem:
        return (
            "being freed",
            f"{text} It could not be removed yet.",
            f"ask the site to look at forebay control status ({token})",
        )
    return "being freed", f"{text} It is being removed.", None
