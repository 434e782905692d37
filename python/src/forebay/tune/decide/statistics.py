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

from forebay.tune.model import Configuration, Pairing, Plan, Run, key
from forebay.tune.strategies import History, Trial

#: A run this many standard deviations above the middle of its like is disturbed ...
DISTURBED_DEVIATIONS = 3.5
#: ... if it is at least this much slower: below, it is not worth a run to find out.
DISTURBED_RATIO = 1.2
#: What is known of noise before a run is repeated: the standard deviation of a run's log time is near the
#: first, hardly four times more or less; a tenth of runs are disturbed, and up to ten times slower.
NOISE_USUAL, NOISE_FACTOR = 0.2, 2.0
#: The machine's own speed wanders by so much between the search and the final round.
DRIFT = 0.1
DISTURBED_SHARE, DISTURBED_LOG_MAX = 0.1, math.log(10)
#: Standard deviations and steps of log time that posteriors are computed on.
DEVIATIONS = np.geomspace(0.015, 0.6, 24)
LOG_STEP = 0.01
#: A standard deviation of normal values in units of their median absolute deviation.
NORMAL = 1.4826

#: Runs of one configuration, as natural logarithms of seconds, by number of the run.
Logs = dict[int, float]


def is_comparable(run: Run) -> bool:
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
        chosen = [index for index, run in enumerate(runs) if run.replay == replay and is_comparable(run)]
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
        if is_comparable(run) and run.replay == replay:
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
    earlier_s: Sequence[float] = (),
    usual: float = NOISE_USUAL,
) -> Pairing:
    """The ratio default / tuned of runs made in turn: median and interval of a mixture's posterior.

    A log time is normal around its configuration's, and in a share of the runs later by anything up to a
    largest disturbance. So a slow run neither moves the ratio much nor widens the interval, if others agree.
    The standard deviation is one for all, unknown, and integrated out. `others`, times of further runs, one
    sequence for each configuration, in any unit, tell of that deviation only; `earlier_s`, runs of the
    default before those in turn, also of the default, but for the machine's drift since. `usual`: what the
    deviation of a log time is thought to be near, before any of this.

    Raises ValueError if nothing was run twice, so that nothing is known of the differences.
    """
    from scipy.ndimage import gaussian_filter1d  # late: SciPy takes longer to load than a report to be made

    if len(default_s) != len(tuned_s):
        raise ValueError(f"{len(default_s)} and {len(tuned_s)} runs are no pairs")
    if all(len(group) < 2 for group in (default_s, tuned_s, *others)) and not len(earlier_s):
        raise ValueError("one pair of runs has no interval")
    both = _places([*default_s, *earlier_s])
    default = _likelihood(default_s, both) * gaussian_filter1d(
        _likelihood(earlier_s, both), DRIFT / LOG_STEP, axis=1, mode="nearest"
    )
    at_tuned = _places(tuned_s)
    tuned = _likelihood(tuned_s, at_tuned)
    weights = np.exp(-((np.log(DEVIATIONS / usual) / math.log(NOISE_FACTOR)) ** 2) / 2)
    for group in others:
        weights = weights * (_likelihood(group, _places(group)).sum(axis=1) if len(group) > 1 else 1)
    gain = sum(
        weight * np.convolve(one, other[::-1])
        for weight, one, other in zip(weights, default, tuned, strict=True)
    )
    logs = both[0] - at_tuned[-1] + LOG_STEP * np.arange(len(gain))
    low, middle, high = np.interp(
        [(1 - confidence) / 2, 0.5, (1 + confidence) / 2], np.cumsum(gain) / gain.sum(), logs
    )
    return Pairing(
        pairs=len(default_s),
        ratio=math.exp(middle),
        low=math.exp(low),
        high=math.exp(high),
        confidence=confidence,
        default_s=statistics.median(default_s),
        tuned_s=statistics.median(tuned_s),
    )


def _places(seconds: Sequence[float]) -> np.ndarray:
    """Where the log of a configuration's undisturbed time may be."""
    return np.arange(math.log(min(seconds)) - 1, math.log(max(seconds)) + 1, LOG_STEP)


def _likelihood(seconds: Sequence[float], places: np.ndarray) -> np.ndarray:
    """Of a configuration's runs, up to a factor: deviations x places."""
    from scipy import special  # late: as in `pairing`

    away = (np.log(np.asarray(seconds, float)) - places[:, None]) / DEVIATIONS[:, None, None]
    delayed = special.ndtr(away) - special.ndtr(away - DISTURBED_LOG_MAX / DEVIATIONS[:, None, None])
    normal = np.exp(-(away**2) / 2) / (math.sqrt(2 * math.pi) * DEVIATIONS[:, None, None])
    density = (1 - DISTURBED_SHARE) * normal + DISTURBED_SHARE / DISTURBED_LOG_MAX * delayed
    logs = np.log(np.maximum(density, 1e-300)).sum(axis=2)
    return np.exp(logs - logs.max())


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


def is_beyond_noise(run: Run, runs: Sequence[Run], confidence: float) -> bool:
    """Whether a run took another time than the default's runs among `runs`, by more than their noise."""
    logs = list(log_seconds(runs, run.replay).get((), {}).values())
    if not logs or not is_comparable(run):
        return False
    deviation = noise(runs, run.replay) * math.sqrt(1 + 1 / len(logs))
    away = abs(math.log(run.seconds or 0) - statistics.median(logs))
    return away > deviation * statistics.NormalDist().inv_cdf((1 + confidence) / 2)


def history_of(
    plan: Plan,
    runs: Sequence[Run],
    canonical: Callable[[Configuration], Configuration],
    forbidden: Callable[[Configuration], str | None],
) -> History:
    """What a strategy is given. With a replay only runs of the recorded I/O have a time there."""
    replay = plan.confirm_pairs is not None
    return History(plan, trials(runs, canonical, replay), canonical, forbidden, noise(runs, replay))
