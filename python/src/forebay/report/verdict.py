"""One sentence on a job: what it waited for."""

from __future__ import annotations

from forebay import quantities
from forebay.advice.advise import has_io, no_io, recorded_share, unknown_share
from forebay.advice.diagnosis import failed_writes
from forebay.advice.thresholds import IO_SHARE_MIN
from forebay.profiles import metrics, time_parts
from forebay.profiles.model import Profile
from forebay.report.sections import job

#: The mean of the ranks against the slowest one: below this, few ranks spend most of the time.
FEW_RANKS = 0.5
#: Such a multiple of the mean rank's bytes is more than its part of the work.
FEW_BYTES = 2
WAITED_FOR = {
    "write": "Writing",
    "read": "Reading",
    "rmw": "Reading in order to write",
    "waiting": "Exchange between ranks and waiting for them",
    "metadata": "Metadata (open, close, file views) and locks",
    "sync": "Syncing",
}


def verdict(profile: Profile) -> str:
    """The sentence. It names a failure first."""
    state = job.state(profile.job)
    failed = (
        f"The job {state}. "
        if state and state.startswith(("failed", "ended"))
        else f"The job: {state}. "
        if state
        else ""
    )
    of_writes = failed_writes(profile.job)
    of_io = _of_io(profile, is_held_back=of_writes is not None)
    return " ".join(filter(None, (failed.strip(), of_writes, of_io)))


def _of_io(profile: Profile, *, is_held_back: bool) -> str:
    if not has_io(profile):
        return no_io(profile)
    share = metrics.io_share(profile)
    whole = None if share is None else share.slowest if share.slowest is not None else share.average
    if whole is None:
        return unknown_share(profile, share)
    unread = f" How much more is not known: {profile.unread[0]}." if profile.unread else ""
    if whole < IO_SHARE_MIN and profile.unread:
        return recorded_share(profile, whole)
    if whole < IO_SHARE_MIN and is_held_back:
        return f"I/O took {quantities.percent(whole)} of the run time."
    if whole < IO_SHARE_MIN:
        return f"I/O took {quantities.percent(whole)} of the run time: storage did not hold this job back."
    parts = _parts(profile, share.slowest_s)
    if not parts:
        return f"I/O took {quantities.percent(whole)} of the run time."
    activity = max(parts, key=parts.__getitem__)
    what, spent_s = WAITED_FOR[activity], parts[activity]
    if activity == "waiting" and parts["rmw"] > max(parts["write"], parts["read"]):
        what, spent_s = "Reading in order to write, and waiting for it,", parts["rmw"] + parts["waiting"]
    part = quantities.at_most(min(1.0, spent_s / share.run_s), share.is_bound)
    who = "slowest rank" if share.slowest is not None else "mean rank"
    few = (
        share.slowest is not None
        and share.average is not None
        and share.average < FEW_RANKS * share.slowest
        and not share.is_bound
    )
    others = f" The mean rank spent {quantities.percent(share.average)}: {_why_few(profile)}." if few else ""
    of_all = f"all its I/O {quantities.at_most(whole, share.is_bound)}"
    return f"{what} took {part} of the run time of the {who}, {of_all}.{others}{unread}"


def _why_few(profile: Profile) -> str:
    """What the ranks that spent most time have done, as far as it is known."""
    found = [one for program in profile.programs for one in metrics.of_own_files(program).values()]
    if len(found) > 1:
        slowest = max(found, key=lambda one: one.seconds)
        if slowest.bytes > FEW_BYTES * sum(one.bytes for one in found) / len(found):
            return "few ranks move most of the data"
    return "some ranks take far longer than the others"


def _parts(profile: Profile, io_s: float | None) -> dict[str, float]:
    """Seconds of the slowest rank of each program, by what they were spent in; empty if none are known.

    Those of programs that ran at the same time are no more than `io_s` together.
    """
    found = [parts for program in profile.programs if (parts := time_parts.slowest_rank_parts(program))]
    sums = {activity: sum(getattr(parts, activity) for parts in found) for activity in WAITED_FOR}
    whole_s = sum(sums.values())
    share = min(1.0, io_s / whole_s) if whole_s and io_s is not None else 1.0
    return {activity: share * spent_s for activity, spent_s in sums.items()} if whole_s else {}
