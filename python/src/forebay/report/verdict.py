"""One sentence on a job: what it waited for."""

from __future__ import annotations

from forebay.profiles import derived
from forebay.profiles.model import Profile
from forebay.report import quantities
from forebay.report.sections import job, time_spent
from forebay.report.sections._base import Scene

#: Below this share of the run time, storage does not hold a job back.
IO_SHARE_MIN = 0.05
WAITED_FOR = {
    "write": "Writing",
    "read": "Reading",
    "waiting": "Exchange between ranks and waiting for them",
    "metadata": "Opening, closing and other metadata",
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
    who = "of the slowest rank" if share.slowest is not None else "of the ranks' mean"
    of_all = f"all I/O {who} {quantities.share(whole)}"
    return f"{WAITED_FOR[ink]} took {part} of the run time; {of_all}."


def _parts(profile: Profile) -> dict[str, float]:
    """Seconds of a rank, on average, by what they were spent in, at the layer the application called."""
    parts = dict.fromkeys(WAITED_FOR, 0.0)
    for program in profile.programs:
        for _, split in time_spent.split_of_layers(Scene(profile, program))[:1]:
            for ink in parts:
                parts[ink] += split[ink]
    return parts if any(parts.values()) else {}
