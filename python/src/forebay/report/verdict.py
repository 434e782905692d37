"""One sentence on a job: what it waited for."""

from __future__ import annotations

from forebay.profiles import derived
from forebay.profiles.model import Profile
from forebay.report import quantities
from forebay.report.sections import job

#: Below this share of the run time, storage does not hold a job back.
IO_SHARE_MIN = 0.05
#: The mean of the ranks against the slowest one: below this, few ranks do most of the I/O.
FEW_RANKS = 0.5
WAITED_FOR = {
    "write": "Writing",
    "read": "Reading",
    "waiting": "Exchange between ranks and waiting for them",
    "metadata": "Metadata (open, close, file views) and locks",
    "sync": "Syncing",
}


def verdict(profile: Profile) -> str:
    """The sentence. A job that failed is told of first."""
    state = job.state(profile.job)
    failed = (
        f"The job {state}. "
        if state and state.startswith(("failed", "ended"))
        else f"The job: {state}. "
        if state
        else ""
    )
    return failed + _of_io(profile)


def _of_io(profile: Profile) -> str:
    if not any(program.files for program in profile.programs):
        return "Nothing was recorded of its I/O."
    share = derived.io_share(profile)
    whole = None if share is None else share.slowest if share.slowest is not None else share.average
    if whole is None:
        return "How long its I/O took is not told by the source."
    if whole < IO_SHARE_MIN:
        return f"I/O took {quantities.share(whole)} of the run time: storage did not hold this job back."
    parts = _parts(profile)
    if not parts:
        return f"I/O took {quantities.share(whole)} of the run time."
    ink = max(parts, key=parts.__getitem__)
    part = quantities.share(min(1.0, parts[ink] / share.run_s))
    who = "slowest rank" if share.slowest is not None else "mean rank"
    few = (
        share.slowest is not None and share.average is not None and share.average < FEW_RANKS * share.slowest
    )
    others = (
        f" The mean rank spent {quantities.share(share.average)}: few ranks do most of it." if few else ""
    )
    of_all = f"all its I/O {quantities.share(whole)}"
    return f"{WAITED_FOR[ink]} took {part} of the run time of the {who}, {of_all}.{others}"


def _parts(profile: Profile) -> dict[str, float]:
    """Seconds of the slowest rank of each program, by what they were spent in; empty if none are known."""
    found = [parts for program in profile.programs if (parts := derived.slowest_rank_parts(program))]
    sums = {ink: sum(getattr(parts, ink) for parts in found) for ink in WAITED_FOR}
    return sums if any(sums.values()) else {}
