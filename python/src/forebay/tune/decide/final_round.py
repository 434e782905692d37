"""The final round: the best few and the default in turn, forth and back, and the verdict from these runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

import msgspec

from forebay.tune.decide.statistics import history_of, is_comparable, log_seconds, pairing
from forebay.tune.model import Configuration, Pairing, Plan, Run, Step, Verdict, key
from forebay.tune.strategies import History, Regression, Trial

#: What is not expected to be at least this much faster does not come to the final round.
CANDIDATE_RATIO = 0.99
#: A gain below this is not worth a line in a script, however sure it is.
GAIN_MIN = 1.02
#: Rounds in which all finalists run, and all rounds; those beyond the first are between the best and the
#: default.
PAIRS_MIN, PAIRS_MAX = 2, 6
#: No more than this share of all runs is kept for the end.
SHARE_MAX = 0.67
#: A plan with so many runs has one finalist more.
MANY_RUNS = 30
#: The interval is looked at after each round and may end it. So it is wider at the first looks, by the root
#: of the rounds that there may be over those that were run (O'Brien and Fleming), and at the last by this.
LAST_LOOK = 1.05
#: Few runs measure the noise, which may be larger by this factor. One finalist too many costs the best its
#: pairs.
NOISE_MORE = 1.3
#: So much of a gain that the search promises is believed before it was run again.
UNTESTED = 0.6
#: Student's t of few degrees of freedom and one more for power: plans how many pairs a gain needs.
STUDENT_LIKELY = 4.2


def candidates(history: History) -> list[Trial]:
    """What may be better than the default, the best first, in the eyes of the regression over all trials."""
    ran = history.fastest()
    if not ran:
        return []
    regression = Regression(history, history.noise)
    expected = {key(trial.configuration): regression.expected(trial) for trial in ran}
    found = [t for t in ran if expected[key(t.configuration)] < math.log(CANDIDATE_RATIO)]
    return sorted(found, key=lambda trial: expected[key(trial.configuration)])


def reserve(history: History) -> int:
    """How many of the runs are kept for the end: as many as the best so far will need to be proven.

    A gain that is large against the noise needs two pairs, a small one more. Where all that may be kept would
    not do, the search has not found what it looks for yet, and the least is kept.
    """
    plan = history.plan
    pairs = _pairs_needed(history)
    most = max(round(plan.runs_max * SHARE_MAX), 2 * PAIRS_MIN)
    wanted = _runs(_width(plan, pairs, most), min(pairs, PAIRS_MAX)) if pairs else 2 * PAIRS_MIN
    return 2 * (plan.confirm_pairs or 0) + min(wanted, most, max(plan.runs_max - 2, 0))


def begun(history: History, runs: Sequence[Run], left: int) -> bool:
    """Whether the runs left are those that are kept for the end, by what was known before its first run."""
    done = _last(runs)
    before = runs[: len(runs) - len(done)]
    known = history_of(history.plan, before, history.canonical, history.forbidden)
    return left + len(done) <= reserve(known)


def is_wanted(history: History, runs: Sequence[Run]) -> bool:
    """Whether a final round has begun, or has something to compare."""
    return bool(_last(runs) or candidates(history))


def _pairs_needed(history: History) -> int:
    best = candidates(history)[:1]
    if not best:
        return 0
    gain = -Regression(history, history.noise).expected(best[0])
    return max(PAIRS_MIN, math.ceil(2 * (STUDENT_LIKELY * NOISE_MORE * history.noise / gain) ** 2))


def _runs(finalists: int, pairs: int) -> int:
    """Runs of a final round: all in the first rounds, then the best and the default."""
    return PAIRS_MIN * (finalists + 1) + 2 * (pairs - PAIRS_MIN)


def _width(plan: Plan, pairs: int, left: int) -> int:
    """How many finalists there may be, so that the best still has its pairs; one where noise is large."""
    if pairs > PAIRS_MIN:
        return 1
    most = 3 if plan.runs_max >= MANY_RUNS else 2
    return max([n for n in range(1, most + 1) if _runs(n, min(pairs, PAIRS_MAX)) <= left], default=1)


def step(history: History, runs: Sequence[Run], left: int) -> Step | Verdict:
    """The next run of the final round, or the verdict."""
    plan = history.plan
    if not history.trials and begun(history, runs, left):
        return cut_short("the search: no setting was timed")
    if plan.confirm_pairs is None:
        return _Final(history, runs, False).step(left)
    real = [run for run in runs if not run.replay]
    confirmed = len(_last(real))
    replayed = _Final(history, [run for run in runs if run.replay], True)
    chosen = replayed.step(left + confirmed - 2 * plan.confirm_pairs)
    if isinstance(chosen, Step) or not chosen.recommended:
        return chosen
    return _Final(history, real, False, chosen.recommended).step(left)


def cut_short(what: str) -> Verdict:
    """The default is kept for want of runs: nothing is shown."""
    return Verdict(recommended={}, reason=f"the budget left no room for {what}", is_cut_short=True)


def contradicts(runs: Sequence[Run], shown: Configuration) -> bool:
    """Whether runs after a final round that showed a gain can take it back.

    They do if one of them with the setting failed, or if there are as many pairs as a proof needs.
    """
    if any(run.status == "failed" and key(run.configuration) == key(shown) for run in runs):
        return True
    final = [key(run.configuration) for run in runs if run.phase == "final" and is_comparable(run)]
    return min(final.count(()), final.count(key(shown))) >= PAIRS_MIN


def _last(runs: Sequence[Run]) -> list[Run]:
    """The runs at the end that are of the final round."""
    begin = len(runs)
    while begin and runs[begin - 1].phase == "final":
        begin -= 1
    return list(runs[begin:])


class _Final:
    """The rounds that were run, read from the runs, and what is missing in the last one.

    `only`: the one configuration that is to be confirmed, if that is decided.
    """

    def __init__(
        self, history: History, runs: Sequence[Run], replay: bool, only: Configuration | None = None
    ):
        self.history, self.plan, self.replay, self.only = history, history.plan, replay, only
        self.runs, self.done = list(runs), _last(runs)
        self.failed = {key(run.configuration) for run in runs if run.status == "failed"}
        #: For each round: configuration -> its run.
        self.rounds: list[dict[tuple, Run]] = []
        #: Runs that may still be made.
        self.left = 0

    def step(self, left: int) -> Step | Verdict:
        """Goes through the runs, round by round, until one is missing or the rounds are over."""
        rest = list(self.done)
        while members := self._members(left + len(rest), len(self.runs) - len(rest)):
            order = [{}, *members] if len(self.rounds) % 2 == 0 else [*reversed(members), {}]
            found: dict[tuple, Run] = {}
            self.rounds.append(found)
            wanted = {key(one) for one in order}
            while rest and wanted - set(found):
                run = rest.pop(0)
                if key(run.configuration) in wanted:
                    found[key(run.configuration)] = run
            missing = [one for one in order if key(one) not in found and key(one) not in self.failed]
            if missing and left > 0:
                what = "one of the best" if missing[0] else "the default"
                reason = f"{what}, in turn with the other, round {len(self.rounds)}"
                return Step(configuration=missing[0], phase="final", reason=reason, replay=self.replay)
            if missing:
                self.left = 0
                break
        found = self._verdict()
        most = PAIRS_MAX if self.only is None else self.plan.confirm_pairs or 0
        is_cut_short = found.is_cut_short or bool(0 < len(self.rounds) < most and not found.recommended)
        return msgspec.structs.replace(found, is_cut_short=is_cut_short)

    def _members(self, left: int, made: int) -> list[Configuration]:
        """Who runs in the next round, with so many runs made and left at its beginning."""
        self.left = left
        rounds = len(self.rounds)
        if self.only is not None:
            over = rounds >= (self.plan.confirm_pairs or 0) or left < 2 or key(self.only) in self.failed
            return [] if over else [self.only]
        if rounds >= PAIRS_MAX or left < 2 or (rounds >= PAIRS_MIN and self._verdict().recommended):
            return []
        found = candidates(self._before())
        width = _width(self.plan, _pairs_needed(self._before()), left)
        if not rounds:
            names = [trial.configuration for trial in found if key(trial.configuration) not in self.failed]
            return names[:width]
        together = [dict(one) for one in self.rounds[0] if one and one not in self.failed]
        if rounds < PAIRS_MIN and len(together) > 1:
            return together
        gains = self._gains(found, self._known(made))
        return [dict(max(gains, key=lambda one: gains[one]))] if gains else []

    def _gains(self, found: Sequence[Trial], now: History) -> dict[tuple, float]:
        """Expected log gain of each candidate: what its pairs say, or what the search says if there is none.

        So a finalist that disappoints makes room for the next. The search is seen in the light of the runs of
        the default since: a default that was fast by luck hid what is faster.
        """
        regression = Regression(now, now.noise)
        gains = {}
        for trial in (*found, *candidates(now)):
            one = key(trial.configuration)
            pairing = self._pairing(one) if self._pairs(one) else None
            if one not in self.failed:
                gains[one] = math.log(pairing.ratio) if pairing else -UNTESTED * regression.expected(trial)
        return gains

    def _before(self) -> History:
        """What was known when the final round began."""
        return self._known(len(self.runs) - len(self.done))

    def _known(self, made: int) -> History:
        """What was known after so many runs."""
        return history_of(self.plan, self.runs[:made], self.history.canonical, self.history.forbidden)

    def _verdict(self) -> Verdict:
        tuned = self._winner()
        if tuned is None:
            return self._unpaired()
        found = self._pairing(key(tuned))
        if found is None or found.pairs < PAIRS_MIN:
            more = "more than one pair of runs, which is too little to show that a setting is better"
            return cut_short(more)
        return _judged(tuned, found)

    def _pairing(self, one: tuple) -> Pairing | None:
        """What the rounds say of a finalist. None: that is too little."""
        pairs = self._pairs(one)
        seconds = [[found[who].seconds or 0 for found in pairs] for who in ((), one)]
        try:
            found = pairing(seconds[0], seconds[1], self._confidence(len(pairs)), *self._others(one))
        except ValueError:
            return None
        return msgspec.structs.replace(found, confidence=self.plan.confidence)

    def _confidence(self, done: int) -> float:
        """Of a look at so many pairs of a finalist: all looks at all of them together are to err as the
        plan's confidence says."""
        most = max(done, min(done + self.left // 2, PAIRS_MAX if self.only is None else done))
        deviations = LAST_LOOK * math.sqrt(most / done) * NormalDist().inv_cdf((1 + self.plan.confidence) / 2)
        finalists = len({one for found in self.rounds for one in found if one}) or 1
        return 1 - 2 * NormalDist().cdf(-deviations) / finalists

    def _pairs(self, one: tuple) -> list[dict[tuple, Run]]:
        """The rounds in which both the default and this one have a time."""
        both = [found for found in self.rounds if () in found and one in found]
        return [found for found in both if is_comparable(found[()]) and is_comparable(found[one])]

    def _winner(self) -> Configuration | None:
        """What is surest to be faster: whose interval begins highest, of those with enough pairs."""
        names = sorted({one for found in self.rounds for one in found if one and one not in self.failed})
        pairs = {one: len(self._pairs(one)) for one in names}
        enough = min(PAIRS_MIN, max(pairs.values(), default=0)) or 1
        found = {one: self._pairing(one) for one in names if pairs[one] >= enough}
        lows = {one: pairing.low if pairing else 0.0 for one, pairing in found.items()}
        return dict(max(lows, key=lambda one: lows[one])) if lows else None

    def _others(self, tuned: tuple) -> tuple[list[list[float]], list[float]]:
        """Seconds of the runs outside of the pairs: of other finalists, and of the default.

        A finalist's run of the search is no fair sample: it was chosen because it was fast.
        """
        used = {found[()].number for found in self._pairs(tuned)}
        final = log_seconds(self.done, self.replay)
        others = [
            [math.exp(log) for log in logs.values()] for one, logs in final.items() if one not in ((), tuned)
        ]
        default = log_seconds(self.runs, self.replay).get((), {})
        return others, [math.exp(log) for number, log in default.items() if number not in used]

    def _unpaired(self) -> Verdict:
        """No setting ran in turn with the default: there was none, or there were no runs for it."""
        tried = self.history.trials
        ran = [trial.ratio for trial in tried if trial.ratio is not None]
        if not ran:
            return Verdict(recommended={}, reason=f"none of the {len(tried)} settings tried has run well")
        if self.failed and self.only:
            return Verdict(recommended={}, reason="the best setting failed in the real job")
        if self._unproven() and min(ran) < 1:
            looked = f"the best of {len(ran)} tried looked {1 / min(ran):.2f} times as fast as the default"
            return cut_short(f"the final round, which shows whether a setting is better: {looked}")
        best = f"the best of {len(ran)} settings tried took {min(ran):.2f} of the default's time"
        return Verdict(recommended={}, reason=f"nothing was found to be faster than the default: {best}")

    def _unproven(self) -> bool:
        """Is there a setting for the final round, one that did not fail?"""
        found = [self.only] if self.only else [one.configuration for one in candidates(self._before())]
        return any(key(one) not in self.failed for one in found)


def _judged(tuned: Configuration, found: Pairing) -> Verdict:
    pairs = "1 pair" if found.pairs == 1 else f"{found.pairs} pairs"
    interval = f" ({found.confidence:.0%} interval {found.interval})" if found.interval else ""
    said = f"{found.ratio:.2f} times as fast as the default in {pairs} of runs{interval}"
    if found.low > 1 and found.ratio >= GAIN_MIN:
        return Verdict(recommended=tuned, reason=said, pairing=found)
    why = "the gain is too small to matter" if found.low > 1 else "it is not shown to be better"
    return Verdict(recommended={}, reason=f"the best setting was {said}: {why}", pairing=found)
