"""What a verdict means for the whole job: its run time in the same pairs of runs that decided.

The search compares seconds in I/O: settings change these, and they are free of the noise of the computation.
A setting may make I/O faster and the job slower. So the run times of the job are paired as well. If the job
took longer with the setting, it is refused. If the gain is lost in their noise, the report says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

import msgspec

from forebay.tune.decide import statistics
from forebay.tune.model import Configuration, Pairing, Run, Verdict, key

#: The time of the same computation is thought to vary about so much, as the deviation of its logarithm, where
#: a job has its processors for itself. The runs say how much it does; this counts while they are few.
COMPUTATION_USUAL = 0.02


def job_pairing(runs: Sequence[Run], configuration: Configuration, confidence: float) -> Pairing | None:
    """Run times of the job in the final round, default and `configuration`. None: fewer than two pairs."""
    final = _last_final([run for run in runs if not run.replay])
    default_s = [run.job_s for run in final if not run.configuration and _counts(run)]
    tuned_s = [run.job_s for run in final if key(run.configuration) == key(configuration) and _counts(run)]
    pairs = list(zip(default_s, tuned_s, strict=False))
    if len(pairs) < 2:
        return None
    # Runs of the default before the round say, too, how much its run time varies; see statistics.pairing.
    paired = {run.number for run in final}
    others = [run for run in runs if not run.replay and not run.configuration and run.number not in paired]
    anchors_s = [run.job_s or 0.0 for run in others if _counts(run)]
    before_s, after_s = ([times[who] for times in pairs] for who in (0, 1))
    usual = _usual([run for run in final if not run.configuration and _counts(run)])
    return statistics.pairing(before_s, after_s, confidence, [anchors_s], usual=usual)


def _usual(defaults: Sequence[Run]) -> float:
    """What the job's log time deviates by, it is thought: as I/O in its share, as computation in the rest."""
    shares = [run.io_s / run.job_s for run in defaults if run.io_s is not None and run.job_s]
    share = median(shares) if shares else 1.0
    return math.hypot(share * statistics.NOISE_USUAL, (1 - share) * COMPUTATION_USUAL)


def _counts(run: Run) -> bool:
    return run.status in ("ok", "ineffective") and bool(run.job_s)


def _last_final(runs: Sequence[Run]) -> list[Run]:
    begin = len(runs)
    while begin and runs[begin - 1].phase != "final":  # a study that was extended, without another round
        begin -= 1
    runs = runs[:begin]
    while begin and runs[begin - 1].phase == "final":
        begin -= 1
    return list(runs[begin:])


def with_job_time(verdict: Verdict, runs: Sequence[Run], confidence: float) -> Verdict:
    """The verdict on I/O time with what the run time of the job says to it."""
    if not verdict.recommended:
        return verdict
    job = job_pairing(runs, verdict.recommended, confidence)
    if job is None:
        return verdict
    interval = f" ({confidence:.0%} interval {job.interval})" if job.interval else ""
    if job.ratio < 1:
        slower = "is slower" if job.high < 1 else "took longer"
        reason = (
            f"in I/O the best setting was {verdict.reason}, but the job as a whole {slower} with it: "
            f"{job.ratio:.3f} times as fast{interval}"
        )
        return msgspec.structs.replace(verdict, recommended={}, reason=reason)
    if job.low > 1:
        said = f"the job as a whole {job.ratio:.2f} times{interval}"
    else:
        said = f"in the run time of the whole job that is lost in its noise: {job.ratio:.2f} times{interval}"
    return msgspec.structs.replace(verdict, reason=f"I/O is {verdict.reason}; {said}")
