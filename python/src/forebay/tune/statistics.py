"""What repeated runs say: times relative to the default's, which runs were disturbed, and how sure a gain is.

Noise of run times is taken as multiplicative, so all is done on logarithms. Another job on the machine makes
a run slower, never faster: what is far above its like is disturbed, what is far below is not.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from scipy import stats

from forebay.tune.model import Configuration, Pairing, Plan, Run, key
from forebay.tune.strategies import History, Trial

#: A run this many standard deviations above the middle of its like is disturbed ...
DISTURBED_DEVIATIONS = 3.5
#: ... if it is at least this much slower: below, it is not worth a run to find out.
DISTURBED_RATIO = 1.2
#: Logs are drawn in to so many standard deviations from the median, and the variance is corrected for it.
#: Found by simulation of two to four pairs, so that the interval holds what it says:
#: docs/decisions/0013-search.md.
WINSORIZED = 2.0
WINSORIZED_CORRECTION = 1.4
DEVIATION_MIN = math.log(1.02)
#: A standard deviation of normal values in units of their median absolute deviation.
NORMAL = 1.4826

#: The noise of a run of which nothing is known.
NOISE_USUAL = 0.1

#: Runs of one configuration, as natural logarithms of seconds, by number of the run.
Logs = dict[int, float]


def counts(run: Run) -> bool:
    """Whether a run has a time that may be compared."""
    return run.status in ("ok", "ineffective") and run.seconds is not None and run.seconds > 0


def _level(middles: Sequence[float], index: int) -> float:
    """The running median of three anchors; of two, the faster one."""
    if len(middles) < 3:
        return min(middles)
    begin = min(max(index - 1, 0), len(middles) - 3)
    return statistics.median(middles[begin : begin + 3])


def ratios(runs: Sequence[Run]) -> list[float | None]:
    """The time of each run relative to the default's at that time; below 1 it was faster. None: it has no
    time.

    The default's time is the running median of three anchors, so that one disturbed anchor moves nothing, and
    is interpolated between anchors, so that a machine that becomes slower slows both alike. Runs of the job
    and of its recorded I/O are not compared.
    """
    found: list[float | None] = [None] * len(runs)
    for replay in (False, True):
        chosen = [index for index, run in enumerate(runs) if run.replay == replay and counts(run)]
        anchors = [index for index in chosen if not runs[index].configuration]
        if not anchors:
            continue
        logs = {index: math.log(runs[index].seconds or 0) for index in chosen}
        middles = [logs[index] for index in anchors]
        levels = [_level(middles, index) for index in range(len(anchors))]
        for index in chosen:
            found[index] = math.exp(logs[index] - float(np.interp(index, anchors, levels)))
    return found


def log_seconds(runs: Sequence[Run], replay: bool) -> dict[tuple, Logs]:
    """By configuration: logarithm of the seconds, by number of run."""
    groups: dict[tuple, Logs] = {}
    for run in runs:
        if counts(run) and run.replay == replay:
            groups.setdefault(key(run.configuration), {})[run.number] = math.log(run.seconds or 0)
    return groups


def disturbed(groups: Mapping[tuple, Logs]) -> set[int]:
    """Numbers of the runs that are far slower than others of the same configuration.

    The standard deviation is that of all configurations together, from their median absolute deviation, which
    a few disturbed runs do not move. With two runs of a configuration the faster one is the measure.
    """
    deviation = _deviation([np.array(list(group.values())) for group in groups.values()])
    if deviation == 0:
        return set()
    allowed = max(DISTURBED_DEVIATIONS * deviation, math.log(DISTURBED_RATIO))
    found = set()
    for group in groups.values():
        middle = statistics.median_low(list(group.values()))
        # The difference of two has more room than one value from the middle of many.
        wider = math.sqrt(2) if len(group) == 2 else 1
        found |= {number for number, log in group.items() if log - middle > wider * allowed}
    return found


def _deviation(groups: Sequence[np.ndarray]) -> float:
    """The standard deviation within groups, from their median absolute deviation: a few disturbed runs do not
    move it.

    A group's median takes a degree of freedom: its smallest deviation, which is the median's own, does not
    count.
    """
    deviations = [d for group in groups for d in np.sort(np.abs(group - np.median(group)))[1:]]
    return NORMAL * float(np.median(deviations)) if deviations else 0.0


def pairing(
    default_s: Sequence[float],
    tuned_s: Sequence[float],
    confidence: float,
    others: Sequence[Sequence[float]] = (),
) -> Pairing:
    """The ratio default / tuned of runs made in turn, with Student's t interval of the mean log ratio.

    `others`: times of further runs, one sequence for each configuration, in any unit. They say nothing of the
    ratio, but how much runs of the same thing differ: the variance is pooled over all, as in an analysis of
    variance, which makes the interval of two or three pairs a usable one. Logs are Winsorized at two standard
    deviations from their configuration's median, so that one disturbed run does not decide; the variance is
    corrected for that.

    Raises ValueError if nothing was run twice, so that nothing is known of the differences.
    """
    if len(default_s) != len(tuned_s):
        raise ValueError(f"{len(default_s)} and {len(tuned_s)} runs are no pairs")
    groups = [np.log(np.asarray(seconds, float)) for seconds in (default_s, tuned_s, *others) if len(seconds)]
    freedom = sum(len(group) - 1 for group in groups)
    if freedom == 0:
        raise ValueError("one pair of runs has no interval")
    width = max(WINSORIZED * _deviation(groups), DEVIATION_MIN)
    groups = [np.clip(group, np.median(group) - width, np.median(group) + width) for group in groups]
    variance = WINSORIZED_CORRECTION * sum(float(group.var()) * len(group) for group in groups) / freedom
    middle = float(groups[0].mean() - groups[1].mean())
    half = float(stats.t.ppf((1 + confidence) / 2, freedom)) * math.sqrt(2 * variance / len(default_s))
    return Pairing(
        pairs=len(default_s),
        ratio=math.exp(middle),
        low=math.exp(middle - half),
        high=math.exp(middle + half),
        confidence=confidence,
        default_s=statistics.median(default_s),
        tuned_s=statistics.median(tuned_s),
    )


def trials(
    runs: Sequence[Run], canonical: Callable[[Configuration], Configuration], replay: bool
) -> tuple[Trial, ...]:
    """What was tried, in the order of first runs: medians of undisturbed ratios; failed once is failed."""
    relative = dict(zip((run.number for run in runs), ratios(runs), strict=True))
    out = disturbed(log_seconds(runs, replay))
    found: dict[tuple, Trial] = {}
    for run in runs:
        chosen = canonical(run.configuration)
        if not chosen or (run.replay != replay and run.status != "failed"):
            continue
        like = [other for other in runs if canonical(other.configuration) == chosen]
        fair = [one for one in like if one.replay == replay and one.number not in out]
        known = [ratio for one in fair if (ratio := relative[one.number]) is not None]
        failed = not known or any(other.status == "failed" for other in like)
        ratio = None if failed else statistics.median(known)
        found[key(chosen)] = Trial(chosen, ratio, any(other.status == "ok" for other in like))
    return tuple(found.values())


def noise(runs: Sequence[Run], replay: bool) -> float:
    """The standard deviation of the log of one run's time, from the default's runs.

    From differences of successive ones, into which a slow drift of the machine hardly comes. While there are
    few, what is usual on a shared file system weighs as two more.
    """
    groups = log_seconds(runs, replay)
    out = disturbed(groups)
    default = [log for number, log in groups.get((), {}).items() if number not in out]
    squares = sum((b - a) ** 2 for a, b in itertools.pairwise(default)) / 2
    return math.sqrt((squares + 2 * NOISE_USUAL**2) / (max(len(default) - 1, 0) + 2))


def history_of(
    plan: Plan,
    runs: Sequence[Run],
    canonical: Callable[[Configuration], Configuration],
    forbidden: Callable[[Configuration], str | None],
) -> History:
    """What a strategy is given. With a replay only runs of the recorded I/O have a time there."""
    replay = plan.confirm_pairs is not None
    return History(plan, trials(runs, canonical, replay), canonical, forbidden, noise(runs, replay))
